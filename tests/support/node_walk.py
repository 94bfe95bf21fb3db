"""A random walk of payers, a merchant and miners on a full node: its own index is always right.

Without an explorer nothing that waits is seen before its block: the shop has what blocks had and
have. `WALK_SEED=3 WALK_STEPS=100` makes the night's walks others.

As a script this file is what killed checks come from (see forge.py).
"""

import contextlib
import json
import os
import random
import signal
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any, NamedTuple

from btcpay.bitcoin.tx import Tx, TxOut, parse_tx
from btcpay.chain.explorers.pool import open_explorers
from btcpay.chain.pool import open_sources
from btcpay.check.run import Checker
from btcpay.http.clock_skew import ClockSkew
from btcpay.prices.price import Prices
from btcpay.proofs.document import check_document
from btcpay.sandbox.node.script import script_of
from btcpay.settings import settings
from storage.database import open_database
from tests.support.bitcoin_node import NOBODY, BitcoinNode, ChangeRefused, NodeError
from tests.support.builders import TickerServer
from tests.support.databases import ON_POSTGRES, raw, tables
from tests.support.dying import die_before
from tests.support.fake_esplora import Json
from tests.support.forge import Forge, fork_for_each_order
from tests.support.node_till import NodeTill, open_chain, open_node_till
from tests.support.spending import spend_p2wpkh

STEPS = int(os.environ.get("WALK_STEPS", "15" if ON_POSTGRES else "30"))
SEED = int(os.environ.get("WALK_SEED", "5"))
Over = Callable[[BitcoinNode], dict[str, str]]

MOST_INVOICES = 14
CONFIRMATIONS = {25: 1, 150: 3}  # by amount in USD
COINBASE_MATURITY = 100
DEEPEST = 12  # reorganisation
FEE_SATS = 500


def live(order: dict[str, Any]) -> None:
    """One check at a time that is told, killed before its so manieth commit."""
    signal.alarm(60)  # one that hangs fails the test and does not hold it up
    die_before(order["moment"])
    read = settings.read(os.environ)
    at = datetime.fromisoformat(order["at"])
    db = open_database(read.database_url)
    explorers = open_explorers(read, None)
    means = (
        db,
        read,
        open_sources(read, db, lambda: at) or explorers,
        Prices(read),
        lambda: at,
    )
    Checker(*means, explorers=explorers).run(order["words"])


class Where(NamedTuple):
    """An output in the best chain, in the columns of its row."""

    amount_sats: int
    block_height: int
    block_hash: str
    coinbase: bool
    spent_height: int | None


Outpoint = tuple[str, int]
Confirmed = dict[Outpoint, Where]
Waiting = dict[Outpoint, int]


@dataclass
class Order:
    """One invoice, and what the walk knows of it."""

    invoice: Json
    confirmations: int
    expires_at: datetime | None
    in_time: set[Outpoint] = field(default_factory=set)
    mined: set[Outpoint] = field(default_factory=set)  # in a block at any time
    status: str = "open"

    def __post_init__(self) -> None:
        self.address, self.amount_sats = (
            self.invoice[n] for n in ("deposit_address", "amount_sats")
        )
        self.script = script_of(self.address)

    def is_deep(self, where: Where, tip: int) -> bool:
        needed = COINBASE_MATURITY if where.coinbase else self.confirmations
        return tip - where.block_height + 1 >= needed

    def has_time_at(self, at_s: float) -> bool:
        return self.expires_at is None or at_s < self.expires_at.timestamp()


class Walk:
    """A shop, and everything that may happen to it."""

    def __init__(self, till: NodeTill, forge: Forge) -> None:
        self.till = till
        self.node = till.node
        self.forge = forge
        self.dice = random.Random(SEED)
        self.orders: list[Order] = []
        self.did: Counter[str] = Counter()
        self.by_blocks = not till.settings.explorers

    @property
    def now(self) -> datetime:
        return self.till.clock()

    # Each event says whether it could happen.
    def invoice(self) -> bool:
        if len(self.orders) >= MOST_INVOICES:
            return False
        usd = self.dice.choice(list(CONFIRMATIONS))
        hours = self.dice.choice([None, 1, 1])
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
            sats = self.dice.choice(
                [whole, whole, whole // 2, whole - whole // 2, whole - 1]
            )
            parts += [(order.address, sats)] * self.dice.choice([1, 1, 1, 2])
        self.node.pay_many(parts)
        return True

    def spend(self) -> bool:
        """The merchant moves coins of one invoice, also those that wait, perhaps to another."""
        order = self.dice.choice(self.orders)
        earned = self.node.coins(order.script, coinbases=True)
        (tip, _) = self.node.tip()
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

    def mine(self) -> bool:
        self.node.mine(self.dice.choice([1, 1, 1, 2, 3]))
        return True

    def coinbase(self) -> bool:
        """A miner earns what is mined at an invoice's address."""
        self.node.mine(1, self.dice.choice(self.orders).address)
        return True

    def reorganise(self) -> bool:
        """Up to twelve blocks; some of what they paid is spent otherwise, or forgotten."""
        depth = self.dice.choice(
            [1, 2, 3, *self.dice.choices(range(4, DEEPEST + 1), k=2)]
        )
        chain = self.node.chain()
        fork = len(chain) - 1 - depth
        instead: list[Tx] = []
        for block in chain[fork + 1 :]:
            for tx in block.txs[1:]:
                match self.dice.choice(["waits", "again", "otherwise", "otherwise"]):
                    case "again":
                        instead.append(tx)
                    case "otherwise":
                        instead += self._otherwise(tx.txid)
        raws = [tx.raw for tx in possible(self.node, instead, fork)]
        try:
            self.node.reorganise(depth, instead=raws)
        except ChangeRefused as error:  # the node would be left between two branches
            raise AssertionError("the other branch is not valid") from error
        self.did["blocks of the deepest"] = max(
            self.did["blocks of the deepest"], depth
        )
        self.did["transactions of other branches"] += len(raws)
        return True

    def _otherwise(self, txid: str) -> list[Tx]:
        """The coins of a payment go back to the wallet, or to an invoice; none of others' coins."""
        try:
            coins = self.node.spent_by(txid)
        except NodeError:
            return []
        if any(coin.output.script not in self.node.wallet.scripts for coin in coins):
            return []
        order = self.dice.choice(self.orders)
        parts = []
        if self.dice.random() < 0.5:
            most_sats = sum(coin.output.value_sats for coin in coins) - FEE_SATS
            parts = [(order.address, min(order.amount_sats, most_sats))]
        try:
            return [parse_tx(self.node.wallet.build(parts, coins))]
        except ValueError:  # too little for the fee
            return []

    def drop(self) -> bool:
        waiting = self.node.mempool()
        if waiting:
            self.node.drop(self.dice.choice(waiting))
        return bool(waiting)

    def replace(self) -> bool:
        """A block has a double spend of what waits."""
        instead = [tx for txid in self.node.mempool() for tx in self._otherwise(txid)]
        instead = possible(self.node, instead, self.node.tip()[0])[:1]
        for tx in instead:
            self.node.mine_conflict(tx.raw)
        return bool(instead)

    def kill(self) -> None:
        """A check dies before one of its commits."""
        moment = self.dice.randint(1, 20)
        ended = self.forge.run(
            self.till.shop.environ, self._ids(), moment=moment, at=self.now.isoformat()
        )
        assert ended.status in (0, -signal.SIGKILL), ended.errors
        self.did["killed" if ended.status else "survived"] += 1

    def check(self) -> None:
        """Cron's run, and then a look for each invoice."""
        for ids in (None, self._ids()):
            run = self.checker().run(ids)
            assert run.complete, run

    def checker(self) -> Checker:
        db = self.till.shop.service.db
        checker = self.till.checker(db, in_flight=1)
        sources = open_sources(checker.settings, db, lambda: self.now)
        if not sources:
            return checker
        sources.clock_skew = (
            ClockSkew()
        )  # bcoin greets by the machine's clock, not by `set_time`
        return replace(checker, sources=sources)

    def _ids(self) -> list[str]:
        return [order.invoice["id"] for order in self.orders]

    def index(self, order: Order) -> tuple[Confirmed, Waiting]:
        """What the node's index says of an invoice's address, and so is in time."""
        confirmed = Confirmed()
        waiting = Waiting()
        chain = self.node.chain()
        history = self.node.history(order.script)
        spends = {
            tuple(spent.outpoint): height
            for tx, height in history
            if height >= 0
            for spent in tx.inputs
        }
        for tx, height in history:
            for vout, output in enumerate(tx.outputs):
                outpoint = (tx.txid, vout)
                sats = output.value_sats
                if output.script == order.script and height < 0:
                    waiting[outpoint] = sats
                elif output.script == order.script:
                    block = chain[height]
                    of_block = (height, block.hash, tx.is_coinbase)
                    confirmed[outpoint] = Where(sats, *of_block, spends.get(outpoint))
                    if order.has_time_at(block.time):
                        order.in_time.add(outpoint)
        if order.has_time_at(self.now.timestamp()):
            order.in_time |= confirmed.keys() | (
                set() if self.by_blocks else waiting.keys()
            )
        order.mined |= confirmed.keys()
        return confirmed, waiting

    def decide(
        self, order: Order, confirmed: Confirmed, waiting: Waiting, tip: int
    ) -> set[str]:
        """The status that it may have now, given its former one."""
        in_time = {
            one: where for one, where in confirmed.items() if one in order.in_time
        }
        deep = [where for where in in_time.values() if order.is_deep(where, tip)]
        if order.status == "expired":
            return {"expired"}
        if sum(where.amount_sats for where in deep) >= order.amount_sats:
            return {"paid"}
        if order.has_time_at(self.now.timestamp()):
            return {"open"}
        came_sats = sum(where.amount_sats for where in in_time.values())
        came_sats += sum(sats for one, sats in waiting.items() if one in order.in_time)
        # A payment that vanished just now may hold it until the next look.
        return {"open"} if came_sats >= order.amount_sats else {"open", "expired"}

    def compare(self) -> None:
        """The shop has what the index has, and nothing else."""
        tip = self.node.tip()[0]
        with raw(self.till.settings.database_url) as connection:
            rows = tables(connection)
        confirmed_sats = total_sats = 0
        for invoice_id, order in zip(self._ids(), self.orders, strict=True):
            confirmed, waiting = self.index(order)
            outputs = [row for row in rows["output"] if row["invoice_id"] == invoice_id]
            shown = {
                (row["txid"], row["vout"]): row["amount_sats"]
                for row in outputs
                if row["block_height"] is None and row["vanished_ms"] is None
            }
            if self.by_blocks:
                assert shown.keys() <= order.mined - confirmed.keys()
                waiting = shown
            assert shown == waiting
            assert confirmed == {
                (row["txid"], row["vout"]): Where(
                    *(row[name] for name in Where._fields)
                )
                for row in outputs
                if row["block_height"] is not None
            }
            deep = {
                one for one, where in confirmed.items() if order.is_deep(where, tip)
            }
            sums: Counter[str] = Counter()
            for one in deep:
                sums[one[0]] += confirmed[one].amount_sats
            payments = [
                row
                for row in rows["payment"]
                if row["address_invoice_id"] == invoice_id
            ]
            paid = [(row["tx_hash"], row["amount_sats"]) for row in payments]
            assert sorted(paid) == sorted(sums.items())
            proofs = [
                row["document"]
                for row in rows["proof"]
                if row["invoice_id"] == invoice_id
            ]
            proven = [check_document(json.loads(document)) for document in proofs]
            mined = {(one[0], where.block_hash) for one, where in confirmed.items()}
            assert {(one.txid, one.block_hash) for one in proven} == mined
            status = next(
                row["status"] for row in rows["invoice"] if row["id"] == invoice_id
            )
            assert status in self.decide(order, confirmed, waiting, tip), (
                status,
                order,
            )
            order.status = status
            settled = any(row["invoice_id"] == invoice_id for row in payments)
            assert (status == "paid") == settled
            unspent = {
                o: w.amount_sats for o, w in confirmed.items() if w.spent_height is None
            }
            confirmed_sats += sum(sats for one, sats in unspent.items() if one in deep)
            total_sats += sum(unspent.values()) + sum(waiting.values())
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
        if (
            tx.txid not in possible
            and not outpoints & spent
            and all(map(is_there, froms))
        ):
            possible[tx.txid] = tx
            spent |= outpoints
    return list(possible.values())


HAPPENS = {
    Walk.invoice: 3, Walk.pay: 10, Walk.spend: 4, Walk.mine: 8,
    Walk.coinbase: 2, Walk.reorganise: 5, Walk.drop: 2, Walk.replace: 6,
}  # fmt: skip


def run(
    folder: Path, ticker: TickerServer, steps: int = STEPS, over: Over | None = None
) -> None:
    """A walk of so many steps; after each the shop has what the node's index says.

    `over` has the settings of a shop that asks the node alone, and no explorer. A night's walk of
    its usual length must have happened upon everything.
    """
    with contextlib.ExitStack() as stack:
        chain = stack.enter_context(open_chain())
        environ = {"BLOCKTILL_CONFIRMATIONS": "1 3@100"}
        if over:
            environ |= {"BLOCKTILL_EXPLORERS": "none"} | over(chain[0])
        till = stack.enter_context(open_node_till(folder, ticker, chain, **environ))
        forge = Forge(__file__)
        stack.callback(forge.close)
        walk = Walk(till, forge)
        # what lies two hours before the first invoice stays
        walk.till.mine(DEEPEST + 1)
        for step in range(steps):
            go(walk, step, steps // 2)
        print(walk.did)
    assert walk.orders
    if steps >= 30 and SEED == 5:
        assert {event.__name__ for event in HAPPENS} | {"killed"} <= walk.did.keys()
        assert walk.did["blocks of the deepest"] >= 10
        assert {order.status for order in walk.orders} >= {"paid", "expired"}


def go(walk: Walk, step: int, half: int) -> None:
    """Some of what may happen, and what the shop finds then."""
    # Ids differ from run to run, and what is done to which; what happens does not.
    dice = random.Random(f"{SEED} {step}")
    happened = []
    walk.till.clock.move(minutes=dice.choice([11, 15, 25]))
    walk.node.set_time(walk.till.now)
    if step == half:
        walk.node.mine(COINBASE_MATURITY)
    happens = [] if walk.orders else [Walk.invoice] * 4
    is_killed = dice.random() < 0.4
    happens += dice.choices(list(HAPPENS), list(HAPPENS.values()), k=dice.randint(1, 4))
    for number, event in enumerate(happens):
        walk.dice = random.Random(f"{SEED} {step} {number}")
        with contextlib.suppress(ChangeRefused, StopIteration):
            if event(walk):
                walk.did[event.__name__] += 1
                happened.append(event.__name__)
    if is_killed:
        walk.kill()
    print(step, *happened, "killed" if is_killed else "")
    walk.check()
    walk.compare()


if __name__ == "__main__":
    fork_for_each_order(live)
