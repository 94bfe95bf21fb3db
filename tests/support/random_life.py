"""A random life of shop and chain: after every step the books are right, after every check too.

The chain is real, and so is the socket. The oracle is the blocks themselves (chain_model.py).
`STATEFUL_EXAMPLES=5000 pytest tests/nightly/check/test_random_lives.py` looks longer, elsewhere.
"""

import os
import tempfile
from collections import Counter
from collections.abc import Callable, Sequence
from contextlib import ExitStack, suppress
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

import requests
from builders import REGTEST, Clock, TickerServer, dump
from chain_model import (
    CONFIRMATIONS,
    TOLERANCE_PERCENT,
    Book,
    Rows,
    View,
    confirmations_of,
    deadline_of,
    needed_sats,
    waiting_of,
)
from click.testing import CliRunner
from databases import raw
from fake_esplora import Json, Reply, dropped, open_lied_to, say, truncated
from hd_wallet import HdWallet
from hypothesis import HealthCheck, seed, settings
from hypothesis import strategies as st
from hypothesis.stateful import (
    RuleBasedStateMachine,
    initialize,
    invariant,
    precondition,
    rule,
    run_state_machine_as_test,
)

from btcpay.bitcoin.tx import TxOut
from btcpay.cli.invoice import invoice as invoice_command
from btcpay.merchants.account import parse_account
from btcpay.merchants.merchants import add_merchant
from btcpay.sandbox.errors import BadRequest, Rejected
from btcpay.sandbox.node.block import Block
from btcpay.sandbox.node.script import script_of
from btcpay.sandbox.payer.coins import Spendable, sign
from btcpay.sandbox.payer.key import Key
from btcpay.sandbox.payer.misbehave import double_spends, replace
from btcpay.values.errors import CommandError
from storage.queries.totals import balances

STEPS = 20
MOST_INVOICES = 4
FEE_SATS = 1_000
# All addresses stay watched for as long as a test's clock can run: the books must be complete.
SETTINGS = {
    "BTCPAY_CONFIRMATIONS": "1 3@100",
    "BTCPAY_UNDERPAYMENT_TOLERANCE_PERCENT": str(TOLERANCE_PERCENT),
}
WALLET = HdWallet.from_seed(b"a merchant whose coins move")
PLACES = {
    "everything": ".",
    "the tip": "/blocks/tip",
    "headers": "/header$|/blocks(/[0-9]+)?$",
    "blocks": "/raw$",
    "addresses": "/address/",
}
FAILURES: dict[str, Reply] = {
    "500": say("oops", 500),
    "404": say("not found", 404),
    "a page": say("<html>"),
    "nothing": say(""),
    "half an answer": truncated(b"[]"),
    "a closed connection": dropped,
}
Shown = Callable[[str, View], View]
TRUE: Shown = lambda _, view: view  # noqa: E731

pick = st.integers(0, 5)
Situation = tuple[str, tuple[str, ...], datetime, dict[str, list[Any]]]


asks = st.tuples(
    st.sampled_from(list(CONFIRMATIONS)), st.sampled_from([None, 1, 24]), st.integers(0, 1)
)
# What follows at once: otherwise most payments would never be more than waiting. A block (m),
# a check (c), a look at every address (l), an hour (h), a reorganisation that lets them wait again
# (r) or makes them void (v), a check that gets no blocks (f), a look that is shown nothing (e).
ends = st.sampled_from(
    [
        *("", "l", "m", "mc", "lmmmc", "mcr", "mcvc", "mhcrc", "lhmcr", "mmcmcvl"),
        *("hfc", "lel", "mfmc", "lvl"),
    ]
)
parts = st.sampled_from(["exactly", "one short", "one", "half", "the rest", "too much"])


class World(RuleBasedStateMachine):
    """A shop with two merchants, its chain, and everything that may happen to them."""

    def __init__(self, ticker: TickerServer, folder: Path) -> None:
        super().__init__()
        self.stack = ExitStack()
        self.ticker, self.folder = ticker, folder
        self.invoices: list[Json] = []
        self.books: dict[str, Book] = {}
        self.dropped: list[bytes] = []
        self.remembered: dict[str, tuple[list[Json], View]] = {}
        self.blocks: dict[str, Block] = {}
        self.by_hand: set[str] = set()
        self.clear: Situation | None = None

    @initialize(
        asked=st.lists(asks, min_size=1, max_size=3),
        paid=st.lists(st.tuples(pick, parts, ends), max_size=3),
    )
    def open(
        self, asked: list[tuple[int, int | None, int]], paid: list[tuple[int, str, str]]
    ) -> None:
        """Most lives begin with some money, since without it little happens."""
        # A thread that notes the use of keys may still write while the folder is removed.
        temporary = tempfile.TemporaryDirectory(dir=self.folder, ignore_cleanup_errors=True)
        folder = Path(self.stack.enter_context(temporary))
        self.clock = Clock()
        self.till = self.stack.enter_context(
            open_lied_to(folder, self.ticker, self.clock, **SETTINGS)
        )
        self.chain, self.wallet = self.till.sandbox.chain, self.till.sandbox.wallet
        db = self.till.shop.service.db
        xpub = WALLET.at("m/49'/1'/0'").xpub()
        account = parse_account(xpub, REGTEST, "p2sh-p2wpkh")
        sweeper_id = add_merchant(db, "sweeper", account, self.clock())["id"]
        self.merchant_ids = (self.till.shop.merchant_id, sweeper_id)
        self.connection = self.stack.enter_context(raw(self.till.settings.database_url))
        for ask in asked:
            self.make_invoice(*ask)
        self.last = Rows(self.connection)
        for payment in paid:
            self.pay_one(*payment)

    def teardown(self) -> None:
        self.stack.close()

    # What people do

    @precondition(lambda self: len(self.invoices) < MOST_INVOICES)
    @rule(ask=asks)
    def ask(self, ask: tuple[int, int | None, int]) -> None:
        self.make_invoice(*ask)

    def make_invoice(self, usd: int, hours: int | None, merchant: int) -> None:
        body = {"amount_usd": usd} | ({} if hours is None else {"expires_in_hours": hours})
        shop = self.till.shop
        response = shop.post("/invoices", body, shop.issue("write", self.merchant_ids[merchant]))
        assert response.status_code == 201, response.text
        self.invoices.append(response.json)
        self.books[response.json["id"]] = Book(script_of(response.json["deposit_address"]))

    def invoice(self, number: int) -> Json:
        return self.last.invoices[self.invoices[number % len(self.invoices)]["id"]]

    @rule(of=pick, part=parts, end=ends)
    def pay(self, of: int, part: str, end: str) -> None:
        self.pay_one(of, part, end)

    def pay_one(self, of: int, part: str, end: str) -> None:
        invoice = self.invoice(of)
        with suppress(BadRequest, Rejected):
            self.till.pay(invoice, self.part_of(invoice, part))
        self.go_on(end)

    def part_of(self, invoice: Json, part: str) -> int:
        """In satoshis, at least one; the rest of an invoice is what the last look has missed."""
        needed = needed_sats(invoice)
        return {
            "exactly": needed,
            "one short": needed - 1,
            "one": 1,
            "half": needed // 2,
            "the rest": max(1, needed - self.books[invoice["id"]].alive_sats(deadline_of(invoice))),
            "too much": invoice["amount_sats"] * 2,
        }[part]

    @rule(first=pick, second=pick, part=parts, other=parts, end=ends)
    def pay_twice_at_once(self, first: int, second: int, part: str, other: str, end: str) -> None:
        one, two = self.invoice(first), self.invoice(second)
        with suppress(BadRequest, Rejected):
            self.till.pay_outputs((one, self.part_of(one, part)), (two, self.part_of(two, other)))
        self.go_on(end)

    def go_on(self, end: str) -> None:
        steps: dict[str, Callable[[], None]] = {
            "m": self.till.mine,
            "c": self.check,
            "l": self.look,
            "h": lambda: self.clock.move(hours=1),
            "r": lambda: self.branch_off(1, "wait"),
            "v": lambda: self.branch_off(1, "void"),
            "f": lambda: self.check_under_failure("blocks", "500"),
            "e": lambda: self.look_at_nothing(None),
        }
        for step in end:
            steps[step]()

    @rule(of=pick, then=st.none() | pick)
    def sweep(self, of: int, then: int | None) -> None:
        """The merchant moves a coin, into another wallet or to an invoice's address."""
        invoice = self.invoice(of)
        if invoice["merchant_id"] != self.merchant_ids[1]:
            return
        script = script_of(invoice["deposit_address"])
        movable = [
            (outpoint, coin.output.value_sats)
            for outpoint, coin in self.chain.ledger.coins.items()
            if coin.output.script == script
            and coin.output.value_sats > 2 * FEE_SATS
            and outpoint not in self.chain.mempool.spenders
        ]
        if not movable:
            return
        outpoint, sats = movable[0]
        key = WALLET.at(f"m/49'/1'/0'/0/{invoice['address_index']}").secret
        address = self.wallet.address if then is None else self.invoice(then)["deposit_address"]
        output = TxOut(sats - FEE_SATS, script_of(address))
        coin = Spendable(outpoint, sats, waiting=False)
        raw = sign(Key(key), [coin], [output], rbf=True)
        with suppress(Rejected):
            self.chain.accept(raw, self.till.now)

    @precondition(lambda self: not self.has("canceled"))
    @rule(of=pick, force=st.booleans())
    def cancel(self, of: int, force: bool) -> None:
        invoice = self.invoice(of)
        on_its_way = self.books[invoice["id"]].alive_sats(deadline_of(invoice))
        allowed = invoice["status"] == "open" and (force or not on_its_way)
        self.command(allowed, "cancel", invoice["id"], *(["--force"] if force else []))
        after = Rows(self.connection).invoices[invoice["id"]]["status"]
        assert after == ("canceled" if allowed else invoice["status"])

    @rule(of=pick)
    def settle_by_hand(self, of: int) -> None:
        invoice = self.invoice(of)
        came = any(memory.payment for memory in self.books[invoice["id"]].memories.values())
        allowed = invoice["status"] != "paid" and came
        self.command(allowed, "settle", invoice["id"], "--reason", "good enough")
        after = Rows(self.connection).invoices[invoice["id"]]["status"]
        assert after == ("paid" if allowed else invoice["status"])
        if allowed:
            self.by_hand.add(invoice["id"])

    def has(self, status: str) -> bool:
        return any(invoice["status"] == status for invoice in self.last.invoices.values())

    def command(self, allowed: bool, *words: str) -> None:
        """`btcpay invoice ...`, which must be done or refused."""
        environ = {name: None for name in os.environ if name.startswith("BTCPAY_")}
        result = CliRunner().invoke(
            invoice_command, words, env=environ | self.till.shop.environ, standalone_mode=False
        )
        refused = isinstance(result.exception, CommandError)
        assert refused != allowed and (refused or not result.exception), result

    # What the network does

    @rule(blocks=st.integers(1, 4), only=st.sampled_from(["all", "one", "none"]))
    def mine(self, blocks: int, only: str) -> None:
        """Blocks with all that waits, with one transaction each, or empty ones."""
        for _ in range(blocks):
            waiting = list(self.chain.mempool.entries)
            txids = {"all": None, "one": waiting[-1:], "none": []}[only]
            self.chain.mine(1, self.till.now, txids)

    @precondition(lambda self: self.wallet.payments())
    @rule(of=pick, away=st.booleans())
    def replace(self, of: int, away: bool) -> None:
        waiting = self.wallet.payments()
        with suppress(BadRequest, Rejected):
            replace(self.wallet, self.till.now, waiting[of % len(waiting)], away)

    @precondition(lambda self: self.chain.mempool.entries)
    @rule(of=pick)
    def drop(self, of: int) -> None:
        """A transaction leaves the mempool, as after two weeks of waiting."""
        mempool = self.chain.mempool
        lost = mempool.descendants({list(mempool.entries)[of % len(mempool.entries)]})
        self.dropped += [entry.tx.raw for txid, entry in mempool.entries.items() if txid in lost]
        mempool.remove(lost)

    @precondition(lambda self: self.dropped)
    @rule()
    def send_again(self) -> None:
        for tx in self.dropped:
            with suppress(Rejected):
                self.chain.accept(tx, self.till.now)
        self.dropped.clear()

    @rule(
        depth=st.integers(1, 12), fate=st.sampled_from(["wait", "move", "void", "half"]), end=ends
    )
    def reorganise(self, depth: int, fate: str, end: str) -> None:
        self.branch_off(depth, fate)
        self.go_on(end)

    def branch_off(self, depth: int, fate: str) -> None:
        """The transactions wait again, are in other blocks, spent elsewhere, or some of each."""
        self.note_blocks()
        ledger = self.chain.ledger
        lost = [tx for hash in ledger.hashes[-depth:] for tx in ledger.blocks[hash].txs[1:]]
        voided = double_spends(self.wallet, depth) if fate in ("void", "half") else []
        moved = [tx.raw for tx in lost] if fate == "move" else []
        if fate == "half":
            voided, moved = voided[:1], [tx.raw for tx in lost[1:]]
        with suppress(Rejected):
            self.chain.reorganise(depth, self.till.now, [*voided, *moved])

    @rule(seconds=st.sampled_from([1, 60, 600, 3_600, 10 * 86_400]))
    def move_clock(self, seconds: int) -> None:
        self.clock.move(seconds=seconds)

    @rule(of=pick, seconds=st.sampled_from([-1, 0, 1]))
    def wait_for_deadline(self, of: int, seconds: int) -> None:
        deadline = deadline_of(self.invoice(of))
        if deadline:
            self.clock.at = max(self.clock.at, deadline + timedelta(seconds=seconds))

    # What the check makes of it

    @rule()
    def check(self) -> None:
        self.checked(honest=True)

    @rule(of=pick)
    def open_page(self, of: int) -> None:
        self.till.open_page(self.invoice(of))
        self.checked(honest=True)

    @rule()
    def look(self) -> None:
        self.checked(self.invoices, honest=True)

    @rule()
    def check_until_it_is_clear(self) -> None:
        """The look that misses waiting money does not also expire; the next one decides."""
        for _ in range(2):
            self.clock.move(minutes=1)
            self.look()
        for invoice in self.last.invoices.values():
            deadline = deadline_of(invoice)
            if invoice["status"] == "open" and deadline and self.clock.at >= deadline:
                book = self.books[invoice["id"]]
                assert book.alive_sats(deadline) >= needed_sats(invoice)  # else it had expired
        self.clear = self.situation()

    @precondition(lambda self: self.clear and self.clear == self.situation())
    @rule(times=st.integers(1, 3))
    def check_again(self, times: int) -> None:
        self.till.liar.lies = {}
        for _ in range(times):
            assert self.till.check().changed == {}
        assert self.situation() == self.clear

    @rule(place=st.sampled_from(list(PLACES)), failure=st.sampled_from(list(FAILURES)))
    def check_while_it_fails(self, place: str, failure: str) -> None:
        self.check_under_failure(place, failure)

    def check_under_failure(self, place: str, failure: str) -> None:
        lies = {PLACES[place]: lambda _: FAILURES[failure]}
        self.checked(self.invoices, lies)

    @rule(of=pick | st.none())
    def look_at_nothing(self, of: int | None) -> None:
        chosen = self.invoice(of)["deposit_address"] if of is not None else ""
        lies = {f"/address/{chosen}.*/mempool": lambda _: []}
        self.checked(self.invoices, lies, lambda at, view: {} if chosen in ("", at) else view)

    @rule(blocks=st.integers(1, 5))
    def check_with_an_older_tip(self, blocks: int) -> None:
        old = self.chain.ledger.hashes[-1 - blocks]
        self.checked(self.invoices, {"/blocks/tip/hash": lambda _: old})

    @rule()
    def remember(self) -> None:
        for invoice in self.invoices:
            address = invoice["deposit_address"]
            url = f"{self.till.liar.honest}/address/{address}/txs/mempool"
            waiting = waiting_of(self.chain, address)
            self.remembered[address] = requests.get(url, timeout=10).json(), waiting

    @precondition(lambda self: self.remembered)
    @rule()
    def check_while_it_is_behind(self) -> None:
        old = self.remembered
        self.checked(
            self.invoices,
            {f"/address/{address}/": lambda _, old=old: old for address, (old, _) in old.items()},
            lambda address, view: old[address][1] if address in old else view,
        )

    def situation(self) -> Situation:
        with self.chain.lock:
            waiting = tuple(self.chain.mempool.entries)
            return self.chain.ledger.tip.hash, waiting, self.clock.at, dump(self.till.shop)

    def note_blocks(self) -> None:
        self.blocks |= self.chain.ledger.blocks

    def checked(
        self,
        looked_for: Sequence[Json] = (),
        lies: dict[str, Callable[[Any], Any]] | None = None,
        shown: Shown = TRUE,
        honest: bool = False,
    ) -> None:
        """A check under these lies, of what is due or of these alone; `shown` is what they show."""
        self.clear = None
        self.note_blocks()
        self.till.liar.lies = lies or {}
        self.till.liar.asked.clear()
        run = self.till.look_for(*looked_for) if looked_for else self.till.check()
        before, after, now = self.last, Rows(self.connection), self.clock.at
        whole = not (run.behind or run.stuck or run.chain_failed)
        reopened = self.take_back(before, after)
        for invoice in before.invoices.values():
            book, address = self.books[invoice["id"]], invoice["deposit_address"]
            book.follow(after.read(self.blocks), now)
            asked = any(f"/address/{address}/txs/mempool" in path for path in self.till.liar.asked)
            looked = asked and invoice["id"] not in run.failed
            if looked:
                book.look(shown(address, waiting_of(self.chain, address)), now, whole)
            self.compare(invoice, book, after)
            status = "open" if invoice["id"] in reopened else invoice["status"]
            if status == "open":
                status = book.verdict(invoice, looked and whole, now)
            assert after.invoices[invoice["id"]]["status"] == status, (invoice, book)
        self.last = after
        if honest:
            assert run.failed == [] and whole
            assert after.chain[-1]["hash"] == self.chain.ledger.tip.hash
        for place, merchant_id in enumerate(self.merchant_ids):
            books = [
                self.books[i["id"]]
                for i in after.invoices.values()
                if i["merchant_id"] == merchant_id
            ]
            assert self.balance(balances.OF_MERCHANT, merchant_id) == {
                "confirmed_sats": sum(book.unspent_sats(counted=True) for book in books),
                "total_sats": sum(book.unspent_sats(counted=False) for book in books),
            }, place

    def take_back(self, before: Rows, after: Rows) -> set[str]:
        """The invoices whose payments are gone, as their blocks must be: they are open again."""
        best, reopened = {row["hash"] for row in after.chain}, set()
        for payment_id in before.payments.keys() - after.payments.keys():
            payment = before.payments[payment_id]
            mined = {o["block_hash"] for o in before.outputs if o["payment_id"] == payment_id}
            assert not mined & best
            if payment["invoice_id"]:
                reopened.add(payment["address_invoice_id"])
                self.by_hand.discard(payment["address_invoice_id"])
        return reopened

    def compare(self, invoice: Json, book: Book, after: Rows) -> None:
        """What is known of its address is what the read blocks and the looks say, no more."""
        mine = [row for row in after.outputs if row["invoice_id"] == invoice["id"]]
        rows = {(row["txid"], row["vout"]): row for row in mine}
        assert rows.keys() == book.memories.keys()
        for at, memory in book.memories.items():
            row = rows[at]
            memory.payment = row["payment_id"]
            found = row["amount_sats"], row["block_hash"], row["spent_height"] is not None
            assert found == (memory.sats, memory.block, memory.spent), at
            assert (row["vanished_at"] is None) == memory.alive, at
        paid = {at for at, memory in book.memories.items() if memory.payment}
        assert paid == book.deep(after.tip, confirmations_of(invoice))

    def balance(self, query: Any, merchant_id: int) -> dict[str, int]:
        return self.till.shop.service.db.only(query, merchant_id=merchant_id)

    # What holds after every step

    @invariant()
    def books_are_right(self) -> None:
        rows = Rows(self.connection)
        self.final_states_stay(rows)
        self.last = rows
        for merchant_id in self.merchant_ids:
            assert self.balance(balances.OF_MERCHANT, merchant_id) == self.balance(
                balances.RECOMPUTED, merchant_id
            )
        invoices, payments = rows.invoices.values(), rows.payments
        assert len({row["deposit_address"] for row in invoices}) == len(invoices)
        assert len({(r["merchant_id"], r["address_index"]) for r in invoices}) == len(invoices)
        counted = [row for row in rows.outputs if row["payment_id"]]
        assert len({(row["txid"], row["vout"]) for row in counted}) == len(counted)
        mined = {(r["invoice_id"], r["txid"]) for r in rows.outputs if r["block_hash"]}
        assert rows.proofs == mined
        backing = Counter[str]()
        for row in rows.outputs:
            for payment in payments.values():
                same = row["invoice_id"], row["txid"]
                if same == (payment["address_invoice_id"], payment["tx_hash"]):
                    assert row["payment_id"] == payment["id"]
                    backing[payment["id"]] += row["amount_sats"]
        assert backing == {row["id"]: row["amount_sats"] for row in payments.values()}
        settled = Counter[str]()
        for payment in payments.values():
            if payment["invoice_id"]:
                settled[payment["invoice_id"]] += payment["amount_sats"]
        for invoice in invoices:
            enough = settled[invoice["id"]] >= needed_sats(invoice) or invoice["id"] in self.by_hand
            assert enough if invoice["status"] == "paid" else not settled[invoice["id"]]

    def final_states_stay(self, rows: Rows) -> None:
        """But for a settlement by hand."""
        for invoice_id, old in self.last.invoices.items():
            if old["status"] in ("expired", "canceled") and invoice_id not in self.by_hand:
                assert rows.invoices[invoice_id]["status"] == old["status"]


def live(ticker: TickerServer, folder: Path, examples: int, part: int) -> None:
    """So many lives; `part` is the seed, unless STATEFUL_EXAMPLES asks for other ones."""

    def life() -> World:
        return World(ticker, folder)

    run_state_machine_as_test(
        life if "STATEFUL_EXAMPLES" in os.environ else seed(part)(life),
        settings=settings(
            max_examples=examples,
            stateful_step_count=STEPS,
            deadline=None,
            database=None,
            suppress_health_check=list(HealthCheck),
        ),
    )
