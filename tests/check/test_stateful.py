"""A random life of shop and chain: after every step the books are right, after every check too.

The chain is real, and so is the socket. The oracle is the best branch itself (chain_model.py).
`STATEFUL_EXAMPLES=5000 pytest tests/test_stateful.py` looks longer, and elsewhere each time.
"""

import dataclasses
import os
import tempfile
from collections import Counter
from collections.abc import Callable
from contextlib import ExitStack, suppress
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
import requests
from bit import PrivateKeyTestnet
from builders import REGTEST, Clock, TickerServer, dump
from chain_model import (
    CONFIRMATIONS,
    TOLERANCE_PERCENT,
    Book,
    Rows,
    Sight,
    View,
    as_waiting,
    completing,
    confirmations_of,
    deadline_of,
    deep,
    needed_sats,
    view_of,
)
from click.testing import CliRunner
from databases import ON_POSTGRES, raw
from fake_esplora import Json, Reply, Till, dropped, open_lied_to, say, truncated
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

from btcpay.bitcoin.tx import Outpoint, TxOut
from btcpay.cli.invoice import invoice as invoice_command
from btcpay.errors import CommandError
from btcpay.sandbox.errors import BadRequest, Rejected
from btcpay.sandbox.node.script import script_of
from btcpay.sandbox.payer.coins import Spendable, sign
from btcpay.sandbox.payer.mischief import double_spends, replace
from btcpay.settings import Settings
from btcpay.wallet.account import parse_account
from btcpay.wallet.merchants import add_merchant
from storage.queries import balances

EXAMPLES = int(os.environ.get("STATEFUL_EXAMPLES", "12" if ON_POSTGRES else "24"))
PARTS = 4  # that may run beside each other
STEPS = 20
MOST_INVOICES = 4
FEE_SATS = 1_000
# All addresses stay watched for as long as a test's clock can run: the books must be complete.
SETTINGS = {
    "BTCPAY_CONFIRMATIONS": "1 3@100",
    "BTCPAY_UNDERPAYMENT_TOLERANCE_PERCENT": str(TOLERANCE_PERCENT),
    "BTCPAY_WATCH_AFTER_EXPIRY_H": "87600",
    "BTCPAY_EXPLORER_CALLS_PER_HOUR": "10000000",
}
# A clock may be set back, but by less than the two hours that a block's time may be off.
FARTHEST_BACK = timedelta(hours=1)
WALLET = HdWallet.from_seed(b"a merchant whose coins move")

PLACES = {
    "everything": ".",
    "the tip": "/blocks/tip",
    "blocks": "/block-height/|/header",
    "transactions": "/tx/",
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
# What an explorer says of an address when it does not say the truth, and what that shows.
LIES: dict[str, tuple[Callable[[Any], Any], Callable[[View], View]]] = {
    "empty": (lambda _: [], lambda _: {}),
    "no blocks": (
        lambda txs: [tx | {"status": {"confirmed": False}} for tx in txs],
        as_waiting,
    ),
}

pick = st.integers(0, 5)
Situation = tuple[str, tuple[str, ...], datetime, dict[str, list[Any]]]


class Honest(Till):
    """The same shop, which asks the chain itself: faster, and most checks have no faults."""

    root = ""

    @property
    def settings(self) -> Settings:
        return dataclasses.replace(super().settings, explorers=(self.root,))


asks = st.tuples(
    st.sampled_from(list(CONFIRMATIONS)), st.sampled_from([None, 1, 24]), st.integers(0, 1)
)
# What follows at once: otherwise most payments would never be more than waiting. A block (m),
# a check (c), an hour (h), a reorganisation that lets them wait again (r) or makes them void (v),
# a check that cannot ask for addresses (f), one that is told that there is nothing (e).
ends = st.sampled_from(
    ["", "c", "m", "mc", "cmmmc", "mcr", "mcvc", "mhcrc", "chmcr", "mmcmcvc", "hfc", "cec", "mcefc"]
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
        self.by_hand: set[str] = set()
        self.clear: Situation | None = None

    @initialize(
        honest_too=st.sampled_from([False, False, True]),
        asked=st.lists(asks, min_size=1, max_size=3),
        paid=st.lists(st.tuples(pick, parts, ends), max_size=3),
    )
    def open(
        self,
        honest_too: bool,
        asked: list[tuple[int, int | None, int]],
        paid: list[tuple[int, str, str]],
    ) -> None:
        """Most lives begin with some money, since without it little happens."""
        # A thread that notes the use of keys may still write while the folder is removed.
        temporary = tempfile.TemporaryDirectory(dir=self.folder, ignore_cleanup_errors=True)
        folder = Path(self.stack.enter_context(temporary))
        self.clock, self.honest_too = Clock(), honest_too
        self.latest = self.clock.at
        self.till = self.stack.enter_context(
            open_lied_to(folder, self.ticker, self.clock, honest_too, **SETTINGS)
        )
        self.honest = Honest(self.till.shop, self.till.sandbox, self.clock)
        self.honest.root = self.till.liar.honest
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
        self.books[response.json["id"]] = Book()

    def invoice(self, number: int) -> Json:
        """The row of an invoice as it was after the last step."""
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
        """Two outputs of one transaction, to one invoice or to two."""
        one, two = self.invoice(first), self.invoice(second)
        with suppress(BadRequest, Rejected):
            self.till.pay_outputs((one, self.part_of(one, part)), (two, self.part_of(two, other)))
        self.go_on(end)

    def go_on(self, end: str) -> None:
        steps: dict[str, Callable[[], None]] = {
            "m": self.till.mine,
            "c": self.check_honestly,
            "h": lambda: self.set_clock(self.clock.at + timedelta(hours=1)),
            "r": lambda: self.branch_off(1, "wait"),
            "v": lambda: self.branch_off(1, "void"),
            "f": lambda: self.check_under_failure("addresses", "500", None),
            "e": lambda: self.check_under_lie("empty", None),
        }
        for step in end:
            steps[step]()

    @rule(of=pick, then=st.none() | pick)
    def sweep(self, of: int, then: int | None) -> None:
        """The merchant moves a coin, into another wallet or to an invoice's address."""
        invoice = self.invoice(of)
        if invoice["merchant_id"] != self.merchant_ids[1]:
            return
        view = view_of(self.chain, invoice["deposit_address"])
        movable = [
            (at, sight)
            for at, sight in view.items()
            if sight.sats > 2 * FEE_SATS and not sight.spent
            if Outpoint(*at) not in self.chain.mempool.spenders
        ]
        if not movable:
            return
        at, sight = movable[0]
        key = WALLET.at(f"m/49'/1'/0'/0/{invoice['address_index']}").secret
        address = self.wallet.address if then is None else self.invoice(then)["deposit_address"]
        output = TxOut(sight.sats - FEE_SATS, script_of(address))
        coin = Spendable(Outpoint(*at), sight.sats, waiting=False)
        raw = sign(PrivateKeyTestnet.from_bytes(key), [coin], [output], rbf=True)
        with suppress(Rejected):
            self.chain.accept(raw, self.till.now)

    @precondition(lambda self: not self.has("canceled"))
    @rule(of=pick, force=st.booleans())
    def cancel(self, of: int, force: bool) -> None:
        """Refused for a finished invoice, and without force while money is on its way."""
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

    @rule(depth=st.integers(1, 3), fate=st.sampled_from(["wait", "move", "void", "half"]), end=ends)
    def reorganise(self, depth: int, fate: str, end: str) -> None:
        self.branch_off(depth, fate)
        self.go_on(end)

    def branch_off(self, depth: int, fate: str) -> None:
        """The transactions wait again, are in other blocks, are spent elsewhere, or some of each.

        Three blocks, since six are final, and three more may come before the next check.
        """
        ledger = self.chain.ledger
        lost = [tx for hash in ledger.hashes[-depth:] for tx in ledger.blocks[hash].txs[1:]]
        voided = double_spends(self.wallet, depth) if fate in ("void", "half") else []
        moved = [tx.raw for tx in lost] if fate == "move" else []
        if fate == "half":
            voided, moved = voided[:1], [tx.raw for tx in lost[1:]]
        with suppress(Rejected):
            self.chain.reorganise(depth, self.till.now, [*voided, *moved])

    @rule(seconds=st.sampled_from([1, 60, 600, 3_600, 10 * 86_400, -1, -60, -1_800]))
    def move_clock(self, seconds: int) -> None:
        self.set_clock(self.clock.at + timedelta(seconds=seconds))

    def set_clock(self, at: datetime) -> None:
        if at >= self.latest - FARTHEST_BACK:
            self.clock.at, self.latest = at, max(self.latest, at)

    @rule(of=pick, seconds=st.sampled_from([-1, 0, 1]))
    def wait_for_deadline(self, of: int, seconds: int) -> None:
        deadline = deadline_of(self.invoice(of))
        if deadline:
            self.set_clock(deadline + timedelta(seconds=seconds))

    # What the check makes of it

    @rule()
    def check(self) -> None:
        self.check_honestly()

    def check_honestly(self) -> None:
        self.checked({}, lambda _, view: view, honest=True)

    @rule()
    def check_until_it_is_clear(self) -> None:
        """The look that misses waiting money does not also expire; the next one decides."""
        self.check_honestly()
        self.check_honestly()
        for invoice in self.last.invoices.values():
            self.compare_with_the_branch(invoice)
        self.clear = self.situation()

    @precondition(lambda self: self.clear and self.clear == self.situation())
    @rule(times=st.integers(1, 3))
    def check_again(self, times: int) -> None:
        """Nothing has happened: nothing changes."""
        for _ in range(times):
            assert self.honest.check().changed == {}
        assert self.situation() == self.clear

    @rule(
        place=st.sampled_from(list(PLACES)),
        failure=st.sampled_from(list(FAILURES)),
        of=pick | st.none(),
    )
    def check_while_it_fails(self, place: str, failure: str, of: int | None) -> None:
        self.check_under_failure(place, failure, of)

    def check_under_failure(self, place: str, failure: str, of: int | None) -> None:
        """Who could not be asked has not been looked at: only a second explorer may help."""
        pattern, asked = PLACES[place], self.last
        if place == "addresses" and of is not None:
            pattern += self.invoice(of)["deposit_address"]
        before = dump(self.till.shop)
        lies = {pattern: lambda _: FAILURES[failure]}
        self.checked(lies, lambda _, view: view, honest=False)
        if self.honest_too or place in ("blocks", "transactions"):
            return
        assert place == "addresses" or dump(self.till.shop) == before
        for invoice in asked.invoices.values():
            if place != "addresses" or invoice["deposit_address"] in pattern or of is None:
                assert self.last.invoices[invoice["id"]]["looks"] == invoice["looks"]

    @rule(lie=st.sampled_from(list(LIES)), of=pick | st.none())
    def check_while_it_lies(self, lie: str, of: int | None) -> None:
        self.check_under_lie(lie, of)

    def check_under_lie(self, lie: str, of: int | None) -> None:
        chosen = self.invoice(of)["deposit_address"] if of is not None else ""
        said, seen = LIES[lie]
        self.checked(
            {f"/address/{chosen}": said},
            lambda address, view: seen(view) if chosen in ("", address) else view,
            honest=False,
        )

    @rule(blocks=st.sampled_from([-5, -3, -2, -1, 1, 1_000]))
    def check_with_another_tip(self, blocks: int) -> None:
        lies = {"/blocks/tip/height": lambda text: str(int(text) + blocks)}
        self.checked(lies, lambda _, view: view, honest=False)

    @rule()
    def remember(self) -> None:
        """What the explorer says of the addresses now, for a later check."""
        for invoice in self.invoices:
            address = invoice["deposit_address"]
            url = f"{self.till.liar.honest}/address/{address}/txs"
            view = view_of(self.chain, address)
            self.remembered[address] = requests.get(url, timeout=10).json(), view

    @precondition(lambda self: self.remembered)
    @rule()
    def check_while_it_is_behind(self) -> None:
        """An explorer whose lists of transactions are old ones."""
        remembered = self.remembered
        self.checked(
            {
                f"/address/{address}": lambda _, old=old: old
                for address, (old, _) in remembered.items()
            },
            lambda address, view: remembered[address][1] if address in remembered else view,
            honest=False,
        )

    def situation(self) -> Situation:
        """Everything that a check can learn from."""
        with self.chain.lock:
            waiting = tuple(self.chain.mempool.entries)
            return self.chain.ledger.tip.hash, waiting, self.clock.at, dump(self.till.shop)

    def checked(
        self, lies: dict[str, Callable[[Any], Any]], seen: Callable[[str, View], View], honest: bool
    ) -> None:
        """A check under these lies; `seen` is what they show of an address instead of the truth."""
        self.clear = None
        self.till.liar.lies = lies
        run = (self.honest if honest else self.till).check()
        before, after = self.last, Rows(self.connection)
        reopened = self.take_back(before, after)
        for invoice in before.invoices.values():
            now = after.invoices[invoice["id"]]
            looked = now["looks"] > invoice["looks"]
            assert looked or not honest
            status = "open" if invoice["id"] in reopened else invoice["status"]
            book, misses = self.books[invoice["id"]], False
            if looked:
                view = view_of(self.chain, invoice["deposit_address"])
                misses = book.look(seen(invoice["deposit_address"], view), self.clock.at)
            self.note_payments(invoice, before, after)
            if looked and status == "open":
                status = book.verdict(invoice, misses, self.clock.at)
            assert now["status"] == status, (invoice["id"], invoice["status"], now["status"])
        self.last = after
        if honest:
            assert run.complete
            self.compare_payments()

    def take_back(self, before: Rows, after: Rows) -> set[str]:
        """Notes the payments that are gone, as their blocks must be; the invoices open again."""
        best, reopened = set(self.chain.ledger.hashes), set()
        for row in after.outputs:
            memory = self.books[row["invoice_id"]].memories.get((row["txid"], row["vout"]))
            if memory and memory.proven and not memory.payment and not row["proven"]:
                assert memory.sight.block not in best or row["block_hash"] != memory.sight.block
                memory.leave_block()
        for payment_id in before.payments.keys() - after.payments.keys():
            payment = before.payments[payment_id]
            assert not before.blocks_of(payment_id) & best
            invoice_id = payment["address_invoice_id"]
            self.books[invoice_id].undo(payment_id)
            if payment["invoice_id"]:
                reopened.add(invoice_id)
                self.by_hand.discard(invoice_id)
        return reopened

    def note_payments(self, invoice: Json, before: Rows, after: Rows) -> None:
        """Takes over what the service has proven and counts; what is new must be on the branch."""
        chain, memories = self.chain, self.books[invoice["id"]].memories
        view = view_of(chain, invoice["deposit_address"])
        countable = deep(view, chain.ledger.height, confirmations_of(invoice))
        for row in after.outputs:
            if row["invoice_id"] != invoice["id"]:
                continue
            at = row["txid"], row["vout"]
            memory = memories[at]
            memory.proven, memory.payment = bool(row["proven"]), row["payment_id"]
            if memory.payment and memory.payment not in before.payments:
                assert at in countable and countable[at].sats == row["amount_sats"]
                memory.sight = countable[at]

    # What the best branch says

    def compare_payments(self) -> None:
        """After a check without faults the payments are the branch's, and so is the balance."""
        confirmed, total = Counter[int](), Counter[int]()
        for invoice in self.last.invoices.values():
            view = view_of(self.chain, invoice["deposit_address"])
            counted = deep(view, self.chain.ledger.height, confirmations_of(invoice))
            mine = [row for row in self.last.outputs if row["invoice_id"] == invoice["id"]]
            assert {(r["txid"], r["vout"]) for r in mine if r["payment_id"]} == counted.keys()
            merchant_id = invoice["merchant_id"]
            confirmed[merchant_id] += sum(s.sats for s in counted.values() if not s.spent)
            total[merchant_id] += self.books[invoice["id"]].unspent_sats()
        for merchant_id in self.merchant_ids:
            assert self.balance(balances.OF_MERCHANT, merchant_id) == {
                "confirmed_sats": confirmed[merchant_id],
                "total_sats": total[merchant_id],
            }

    def compare_with_the_branch(self, invoice: Json) -> None:
        """Paid exactly if what is deep enough and came in time reaches what was asked for."""
        status, book = invoice["status"], self.books[invoice["id"]]
        if status in ("canceled", "expired") or invoice["id"] in self.by_hand:
            return
        view, deadline = view_of(self.chain, invoice["deposit_address"]), deadline_of(invoice)
        counted = deep(view, self.chain.ledger.height, confirmations_of(invoice))

        def in_time(at: tuple[str, int], sight: Sight) -> bool:
            times = book.memories[at].first_seen_at, sight.mined_at
            return deadline is None or any(time < deadline for time in times if time)

        settled = {at: sight for at, sight in counted.items() if in_time(at, sight)}
        paid_sats = sum(sight.sats for sight in settled.values())
        assert (status == "paid") == (paid_sats >= needed_sats(invoice))
        if status == "paid":
            assert invoice["tx_hash"] in completing(settled, needed_sats(invoice))
        elif deadline and self.clock.at >= deadline:
            assert book.alive_sats(deadline) >= needed_sats(invoice)  # else it had expired

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
        assert sorted(rows.proofs) == sorted(payments)
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


@pytest.mark.parametrize("part", range(PARTS))
def test_a_random_life_of_shop_and_chain(part: int, ticker: TickerServer, tmp_path: Path) -> None:
    def life() -> World:
        return World(ticker, tmp_path)

    run_state_machine_as_test(
        life if "STATEFUL_EXAMPLES" in os.environ else seed(part)(life),
        settings=settings(
            max_examples=EXAMPLES // PARTS,
            stateful_step_count=STEPS,
            deadline=None,
            database=None,
            suppress_health_check=list(HealthCheck),
        ),
    )
