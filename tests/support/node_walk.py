"""A random walk of payers, a merchant and miners on a full node: its own index is always right.

Without an explorer nothing that waits is seen before its block: the shop has what blocks had and
have. `WALK_SEEDS="1 2 3" WALK_STEPS=100` makes the night's walks others.

As a script this file is what killed checks come from (see forge.py).
"""

import contextlib
import json
import os
import random
import signal
import sys
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any, NamedTuple
from urllib.parse import urlsplit

from bitcoin_node import NOBODY, BitcoinNode, NodeError, Refused
from builders import TickerServer, at_once
from databases import ON_POSTGRES, raw, tables
from dying import die_before
from fake_esplora import Json
from forge import Forge, fork_for_each_order
from node_till import NodeTill, open_chain, open_node_till
from spending import Coin, spend_p2wpkh

from btcpay.bitcoin.tx import Tx, TxOut, parse_tx
from btcpay.chain.explorers.pool import open_explorers
from btcpay.chain.pool import open_sources
from btcpay.check.run import Checker
from btcpay.http.clock_skew import ClockSkew
from btcpay.prices.price import new_prices
from btcpay.proofs.verify import check_document
from btcpay.sandbox.node.script import script_of
from btcpay.settings import settings
from storage.database import Database, open_database

STEPS = int(os.environ.get("WALK_STEPS", "15" if ON_POSTGRES else "30"))
SEEDS = [int(seed) for seed in os.environ.get("WALK_SEEDS", "2").split()]
Over = Callable[[BitcoinNode], dict[str, str]]

MOST_INVOICES = 14
CONFIRMATIONS = {25: 1, 150: 3}  # by amount in USD
COINBASE_MATURITY = 100
DEEPEST = 12  # reorganisation
FATES = ("back", "elsewhere")  # of the coins of a payment that comes no more
FEE_SATS = 500


def live(order: dict[str, Any]) -> None:
    """One check at a time that is told, killed before its so manieth commit.

    Prints whom it connects to, or looks up.
    """
    sys.addaudithook(print_connections)
    signal.alarm(60)  # one that hangs fails the test and does not hold it up
    die_before(order["moment"])
    read, at = settings.read(os.environ), datetime.fromisoformat(order["at"])
    db = open_database(read.database_url)
    explorers, sources = open_explorers(read, None), open_sources(read, db, lambda: at)
    Checker(db, read, explorers, new_prices(read), lambda: at, sources=sources).run(order["words"])


def print_connections(event: str, args: tuple[Any, ...]) -> None:
    if event in ("socket.connect", "socket.getaddrinfo"):
        host, port = args[1] if event == "socket.connect" else args[:2]
        print(f"{host}:{port}", flush=True)


class Where(NamedTuple):
    """An output in the best chain, and the height of its spend."""

    amount_sats: int
    height: int
    block_hash: str
    is_coinbase: bool
    spent_height: int | None


Outpoint = tuple[str, int]


@dataclass
class Index:
    """The payments to one address: outputs in the best chain, and those that wait."""

    confirmed: dict[Outpoint, Where] = field(default_factory=dict)
    waiting: dict[Outpoint, int] = field(default_factory=dict)


@dataclass
class Order:
    """One invoice, and what the walk knows of it."""

    invoice: Json
    confirmations: int
    expires_at: datetime | None
    in_time: set[Outpoint] = field(default_factory=set)
    mined: set[Outpoint] = field(default_factory=set)  # in a block at any time
    status: str = "open"

    @property
    def address(self) -> str:
        return self.invoice["deposit_address"]

    @property
    def script(self) -> bytes:
        return script_of(self.address)

    @property
    def amount_sats(self) -> int:
        return self.invoice["amount_sats"]


class Walk:
    """A shop, and everything that may happen to it."""

    def __init__(self, till: NodeTill, forge: Forge, seed: int) -> None:
        self.till, self.node = till, till.node
        self.forge, self.seed, self.dice = forge, seed, random.Random(seed)
        self.orders: list[Order] = []
        self.did: Counter[str] = Counter()
        self.by_blocks = not till.settings.explorers
        self.ticker = urlsplit(till.shop.environ["BTCPAY_PRICE_SOURCES"]).netloc

    @property
    def now(self) -> datetime:
        return self.till.clock()

    # Each event says whether it could happen.
    def invoice(self) -> bool:
        if len(self.orders) >= MOST_INVOICES:
            return False
        usd, hours = self.dice.choice(list(CONFIRMATIONS)), self.dice.choice([None, 1, 1])
        fields = {"expires_in_hours": hours} if hours else {}
        made = self.till.shop.invoice(usd, **fields)
        expires_at = self.now + timedelta(hours=hours) if hours else None
        self.orders.append(Order(made, CONFIRMATIONS[usd], expires_at))
        return True

    def pay(self) -> bool:
        """One to three outputs, to one or several invoices, of any amount."""
        parts = []
        for _ in range(self.dice.choice([1, 1, 2, 3])):
            order = self.dice.choice(self.orders)
            whole = order.amount_sats
            sats = self.dice.choice([whole, whole, whole // 2, whole - whole // 2, whole - 1])
            parts += [(order.address, sats)] * self.dice.choice([1, 1, 1, 2])
        self.node.pay_many(parts)
        return True

    def spend(self) -> bool:
        """The merchant moves coins of one invoice, also those that wait, perhaps to another."""
        order = self.dice.choice(self.orders)
        earned, (tip, _) = self.node.coins(order.script, coinbases=True), self.node.tip()
        coins = self.node.coins(order.script)
        coins += [coin for coin in earned if tip - coin.height >= COINBASE_MATURITY]
        if not coins:
            return False
        moved = self.dice.sample(coins, self.dice.randint(1, len(coins)))
        to = self.dice.choice([NOBODY, NOBODY, self.dice.choice(self.orders).address])
        sats = sum(coin.output.value_sats for coin in moved) - FEE_SATS
        key = self.till.key_of(order.invoice)
        self.node.send(spend_p2wpkh(key, moved, [TxOut(sats, script_of(to))]).raw)
        return True

    def pay_and_spend_in_one_block(self) -> bool:
        order = self.dice.choice(self.orders)
        txid = self.node.pay(order.address, order.amount_sats)
        self.till.sweep(order.invoice, txid)
        return self.mine()

    def mine(self) -> bool:
        self.node.mine(self.dice.choice([1, 1, 1, 2, 3]))
        return True

    def coinbase(self) -> bool:
        """A miner earns what is mined at an invoice's address."""
        self.node.mine(1, self.dice.choice(self.orders).address)
        return True

    def reorganise(self) -> bool:
        """Up to twelve blocks; some of what they paid is spent otherwise, or forgotten."""
        depth = self.dice.choice([1, 2, 3, *self.dice.choices(range(4, DEEPEST + 1), k=2)])
        height, _ = self.node.tip()
        lost = [
            tx
            for each in range(height - depth + 1, height + 1)
            for tx in self.node.block(self.node.rpc("getblockhash", each)).txs[1:]
        ]
        instead: list[Tx] = []
        for tx in lost:
            fate = self.dice.choice(["waits", "again", *FATES])
            with contextlib.suppress(NodeError, ValueError):
                if fate == "again":
                    instead.append(tx)
                elif fate != "waits":
                    instead.append(self._otherwise(tx.txid, fate))
        raws = [tx.raw for tx in possible(self.node, instead, height - depth)]
        try:
            self.node.reorganise(depth, instead=raws)
        except Refused as error:  # the node would be left between two branches
            raise AssertionError("the other branch is not valid") from error
        self.did["blocks of the deepest"] = max(self.did["blocks of the deepest"], depth)
        self.did["transactions of other branches"] += len(raws)
        return True

    def _coins_of(self, txid: str) -> list[Coin]:
        """The wallet's coins that a payment spends. Raises ValueError when it is no payment."""
        coins = self.node.spent_by(txid)
        if any(coin.output.script not in self.node.wallet.scripts for coin in coins):
            raise ValueError("not the wallet's")
        return coins

    def _otherwise(self, txid: str, fate: str) -> Tx:
        """The coins of a payment go back to the wallet, or to another invoice."""
        coins = self._coins_of(txid)
        if fate == "back":
            return parse_tx(self.node.wallet.build([], coins))
        order = self.dice.choice(self.orders)
        most_sats = sum(coin.output.value_sats for coin in coins) - FEE_SATS
        part = (order.address, min(order.amount_sats, most_sats))
        return parse_tx(self.node.wallet.build([part], coins))

    def drop(self) -> bool:
        waiting = self.node.mempool()
        if waiting:
            self.node.drop(self.dice.choice(waiting))
        return bool(waiting)

    def replace(self) -> bool:
        """A block has a double spend of what waits."""
        waiting = self.node.mempool()
        for txid in waiting:
            with contextlib.suppress(ValueError):
                coins = self._coins_of(txid)
                if not {coin.outpoint.txid for coin in coins} & set(waiting):
                    self.node.mine_conflict(self._otherwise(txid, self.dice.choice(FATES)).raw)
                    return True
        return False

    def kill(self) -> None:
        """A check dies before one of its commits; without an explorer it has asked none."""
        moment = self.dice.randint(1, 20)
        order = {"moment": moment, "at": self.now.isoformat()}
        ended = self.forge.run(self.till.shop.environ, self._ids(), **order)
        assert ended.status in (0, -signal.SIGKILL), ended.errors
        self.did["killed" if ended.status else "survived"] += 1
        if self.by_blocks:
            connected = set(ended.output.split())
            assert connected <= {self.node.place, self.ticker}
            self.did["traced"] += len(connected)

    def check_twice_at_once(self) -> None:
        """Two runners, each with connections of its own."""

        def check(_: int) -> None:
            with contextlib.closing(open_database(self.till.settings.database_url)) as db:
                run = self.checker(db).run(self._ids())
                assert not (run.failed or run.chain_failed), run

        at_once(2, check)

    def check(self) -> None:
        """Cron's run, and then a look for each invoice."""
        for ids in (None, self._ids()):
            run = self.checker(self.till.shop.service.db).run(ids)
            assert run.complete, run

    def checker(self, db: Database) -> Checker:
        checker = self.till.checker(db, in_flight=1)
        sources = open_sources(checker.settings, db, lambda: self.now)
        if not sources:
            return checker
        sources.clock_skew = ClockSkew()  # bcoin greets by the machine's clock, not by `set_time`
        return replace(checker, sources=sources)

    def _ids(self) -> list[str]:
        return [order.invoice["id"] for order in self.orders]

    def index(self) -> list[Index]:
        """For each invoice what the node's index says of its address."""
        headers: dict[int, Json] = {}

        def header(height: int) -> Json:
            if height not in headers:
                block_hash = self.node.rpc("getblockhash", height)
                headers[height] = self.node.rpc("getblockheader", block_hash)
            return headers[height]

        def one(order: Order) -> Index:
            found, history = Index(), self.node.history(order.script)
            spends = {
                tuple(each.outpoint): height
                for tx, height in history
                if height >= 0
                for each in tx.inputs
            }
            for tx, height in history:
                for vout, output in enumerate(tx.outputs):
                    if output.script != order.script:
                        continue
                    outpoint, sats = (tx.txid, vout), output.value_sats
                    if height < 0:
                        found.waiting[outpoint] = sats
                        continue
                    spent, block_hash = spends.get(outpoint), header(height)["hash"]
                    where = Where(sats, height, block_hash, tx.is_coinbase, spent)
                    found.confirmed[outpoint] = where
                    mined_at = header(height)["time"]
                    if order.expires_at is None or mined_at < order.expires_at.timestamp():
                        order.in_time.add(outpoint)
            if order.expires_at is None or self.now < order.expires_at:
                seen = set() if self.by_blocks else found.waiting.keys()
                order.in_time |= seen | found.confirmed.keys()
            order.mined |= found.confirmed.keys()
            return found

        return [one(order) for order in self.orders]

    def deep(self, order: Order, found: Index, tip: int) -> dict[Outpoint, Where]:
        def is_deep(where: Where) -> bool:
            needed = COINBASE_MATURITY if where.is_coinbase else order.confirmations
            return tip - where.height + 1 >= needed

        return {outpoint: where for outpoint, where in found.confirmed.items() if is_deep(where)}

    def decide(
        self, before: str, order: Order, found: Index, deep: dict[Outpoint, Where]
    ) -> set[str]:
        """The status that it may have now, given its former one."""
        paid_sats = sum(w.amount_sats for one, w in deep.items() if one in order.in_time)
        if before == "expired":
            return {"expired"}
        if paid_sats >= order.amount_sats:
            return {"paid"}
        if order.expires_at is None or self.now < order.expires_at:
            return {"open"}
        came = {one: w.amount_sats for one, w in found.confirmed.items()} | found.waiting
        came_sats = sum(sats for one, sats in came.items() if one in order.in_time)
        # A payment that vanished just now may hold it until the next look.
        return {"open"} if came_sats >= order.amount_sats else {"open", "expired"}

    def compare(self) -> None:
        """The shop has what the index has, and nothing else."""
        tip, found = self.node.tip()[0], self.index()
        with raw(self.till.settings.database_url) as connection:
            rows = tables(connection)
        confirmed_sats = total_sats = 0
        for invoice_id, order, index in zip(self._ids(), self.orders, found, strict=True):
            outputs = [row for row in rows["output"] if row["invoice_id"] == invoice_id]
            assert _confirmed(outputs) == index.confirmed
            if self.by_blocks:
                index.waiting = _waiting(outputs)
                assert index.waiting.keys() <= order.mined - index.confirmed.keys()
            assert _waiting(outputs) == index.waiting
            deep = self.deep(order, index, tip)
            payments = [row for row in rows["payment"] if row["address_invoice_id"] == invoice_id]
            assert len({row["tx_hash"] for row in payments}) == len(payments)
            assert {row["tx_hash"]: row["amount_sats"] for row in payments} == _sums(deep)
            proofs = [row for row in rows["proof"] if row["invoice_id"] == invoice_id]
            assert _proven(proofs) == {(one[0], w.block_hash) for one, w in index.confirmed.items()}
            status = next(row["status"] for row in rows["invoice"] if row["id"] == invoice_id)
            assert status in self.decide(order.status, order, index, deep), (status, order)
            order.status = status
            settled = [row["tx_hash"] for row in payments if row["invoice_id"] == invoice_id]
            assert (status == "paid") == bool(settled)
            unspent = {o: w for o, w in index.confirmed.items() if w.spent_height is None}
            confirmed_sats += sum(w.amount_sats for o, w in unspent.items() if o in deep)
            total_sats += sum(w.amount_sats for w in unspent.values()) + sum(index.waiting.values())
        assert self.till.balance() == (confirmed_sats, total_sats)


def possible(node: BitcoinNode, txs: list[Tx], height: int) -> list[Tx]:
    """Those that spend what there is at this height, or each other's, and nothing twice."""
    possible: dict[str, Tx] = {}
    spent: set[Any] = set()

    def is_there(txid: str) -> bool:
        block_hash = node.rpc("getrawtransaction", txid, 1).get("blockhash")
        return block_hash and node.rpc("getblockheader", block_hash)["height"] <= height

    for tx in txs:
        outpoints = {each.outpoint for each in tx.inputs}
        froms = {each.txid for each in outpoints} - possible.keys()
        if tx.txid not in possible and not outpoints & spent and all(map(is_there, froms)):
            possible[tx.txid] = tx
            spent |= outpoints
    return list(possible.values())


def _confirmed(outputs: list[Json]) -> dict[Outpoint, Where]:
    return {
        (row["txid"], row["vout"]): Where(
            row["amount_sats"],
            row["block_height"],
            row["block_hash"],
            bool(row["coinbase"]),
            row["spent_height"],
        )
        for row in outputs
        if row["block_height"] is not None
    }


def _waiting(outputs: list[Json]) -> dict[Outpoint, int]:
    return {
        (row["txid"], row["vout"]): row["amount_sats"]
        for row in outputs
        if row["block_height"] is None and row["vanished_at"] is None
    }


def _sums(deep: dict[Outpoint, Where]) -> dict[str, int]:
    sums: Counter[str] = Counter()
    for (txid, _), where in deep.items():
        sums[txid] += where.amount_sats
    return dict(sums)


def _proven(proofs: list[Json]) -> set[tuple[str, str]]:
    proven = [check_document(json.loads(row["document"])) for row in proofs]
    return {(one.txid, one.block_hash) for one in proven}


HAPPENS = {
    Walk.invoice: 3, Walk.pay: 10, Walk.spend: 4, Walk.pay_and_spend_in_one_block: 2, Walk.mine: 8,
    Walk.coinbase: 1, Walk.reorganise: 5, Walk.drop: 2, Walk.replace: 3,
}  # fmt: skip


def run(
    folder: Path, ticker: TickerServer, seed: int, steps: int, over: Over | None = None
) -> Walk:
    """A walk of so many steps; after each the shop has what the node's index says.

    `over` has the settings of a shop that asks the node alone, and no explorer.
    """
    with contextlib.ExitStack() as stack:
        chain = stack.enter_context(open_chain())
        environ = {"BTCPAY_CONFIRMATIONS": "1 3@100"}
        if over:
            environ |= {"BTCPAY_EXPLORERS": "none"} | over(chain[0])
        opened = open_node_till(folder, ticker, chain, **environ)
        till = stack.enter_context(opened)
        forge = Forge(__file__)
        stack.callback(forge.close)
        walk = Walk(till, forge, seed)
        walk.till.mine(DEEPEST + 1)  # what lies two hours before the first invoice stays
        for step in range(steps):
            go(walk, step, steps // 2)
        print(walk.did)
    return walk


def run_long(folder: Path, ticker: TickerServer, seed: int, over: Over | None = None) -> Walk:
    """A night's walk; of its usual length it must have happened upon everything."""
    walk = run(folder, ticker, seed, STEPS, over)
    if STEPS >= 30 and SEEDS == [2]:
        assert {event.__name__ for event in HAPPENS} | {"killed"} <= walk.did.keys()
        assert walk.did["traced"] or not over
        assert walk.did["blocks of the deepest"] >= 10
        assert {order.status for order in walk.orders} >= {"paid", "expired"}
    return walk


def go(walk: Walk, step: int, half: int) -> None:
    """Some of what may happen, and what the shop finds then."""
    # Ids differ from run to run, and what is done to which; what happens does not.
    dice, happened = random.Random(f"{walk.seed} {step}"), []
    walk.till.clock.move(minutes=dice.choice([11, 15, 25]))
    walk.node.set_time(walk.till.now)
    if step == half:
        walk.node.mine(COINBASE_MATURITY)
    happens = [] if walk.orders else [Walk.invoice] * 4
    # Two at once is what a server's database is for; with SQLite they wait for each other.
    before = dice.choice(["", "kill", "twice" if ON_POSTGRES else ""])
    happens += dice.choices(list(HAPPENS), list(HAPPENS.values()), k=dice.randint(1, 4))
    for number, event in enumerate(happens):
        walk.dice = random.Random(f"{walk.seed} {step} {number}")
        with contextlib.suppress(Refused, StopIteration):
            if event(walk):
                walk.did[event.__name__] += 1
                happened.append(event.__name__)
    if before == "kill":
        walk.kill()
    elif before == "twice":
        walk.check_twice_at_once()
    print(step, before, *happened)
    walk.check()
    walk.compare()


if __name__ == "__main__":
    fork_for_each_order(live)
