"""Random histories of refunds against a plain model, whose blocks are read in any order.

The model knows what docs/merchants/refunds.md says, and looks at the whole chain each time.
"""

import random
from dataclasses import dataclass, field
from types import SimpleNamespace

import pytest

from btcpay.chain.follow import add_header
from btcpay.parts.refunds import actions, blocks, manual, queries, steps
from btcpay.parts.refunds.decide import WATCHED_BLOCKS
from btcpay.proofs.verify import Branch, Evidence
from btcpay.sandbox.node.script import script_of
from btcpay.values.times import from_unix_s
from storage.queries import blocks as headers
from storage.queries import meta
from tests.support.shop_refunds import address, found, made, paid

pytestmark = pytest.mark.both_databases
SUMS = (1_000, 2_000, 3_000)
PAID = (*SUMS, 700, 2_900, 2_500_000_000)
ADDRESSES = (address(1), address(2))
STEPS = 120
REFUNDS = 14


@dataclass
class Block:
    """A block as the part reads it, of transactions with one output each or several."""

    height: int
    txids: list[str]
    paid: dict[str, list[tuple[int, int, int]]]
    is_read: bool = False

    @property
    def contents(self):
        return SimpleNamespace(
            outputs_by_script={
                script_of(to): outputs for to, outputs in self.paid.items() if outputs
            }
        )

    @property
    def mined_at(self):
        return from_unix_s(self.height)

    def txid(self, position):
        return self.txids[position]

    def evidence(self, position):
        branch = Branch(b"", position, [])
        return Evidence(branch, branch, [b""])

    def outputs(self, to):
        """Outpoint, height and satoshis in the block's order."""
        for position, vout, sats in sorted(self.paid[to]):
            yield (self.txids[position], vout), self.height, sats


@dataclass
class Waiting:
    """A refund in the model, oldest first in its list."""

    id: str
    to: str
    sats: int
    above: int
    named: tuple[str, int] | None = None
    is_canceled: bool = False


@dataclass
class History:
    till: object
    dice: random.Random
    refunds: list[Waiting] = field(default_factory=list)
    chain: list[Block] = field(default_factory=list)
    did: set[str] = field(default_factory=set)
    made: int = 0

    def __post_init__(self):
        self.db = self.till.shop.service.db
        self.invoice = paid(self.till)

    @property
    def tip(self):
        return self.till.sandbox.chain.ledger.height

    def in_model(self, to):
        """What sends each refund to this address by the blocks that are read, and what is again."""
        outputs = [
            one
            for block in sorted(self.chain, key=lambda one: one.height)
            if block.is_read
            for one in block.outputs(to)
        ]
        there = {outpoint: height for outpoint, height, _ in outputs}
        waiting = [one for one in self.refunds if one.to == to and not one.is_canceled]
        sent = {one.id: one.named for one in waiting if one.named in there}
        for outpoint, height, sats in outputs:
            if outpoint not in sent.values():
                for one in waiting:
                    if one.id not in sent and one.sats == sats and one.above < height:
                        sent[one.id] = outpoint
                        break
        again = {
            outpoint
            for outpoint, height, sats in outputs
            if outpoint not in sent.values()
            for one in waiting
            if one.id in sent and one.sats == sats and one.above < height
            if height <= there[sent[one.id]] + WATCHED_BLOCKS
        }
        others = {
            one.id: {
                outpoint
                for outpoint, height, _ in outputs
                if height > one.above and outpoint not in sent.values()
            }
            for one in waiting
            if one.id not in sent
        }
        return sent, again, others

    def compare(self):
        for to in ADDRESSES:
            sent, again, others = self.in_model(to)
            rows = [found(self.till, one) for one in self.refunds if one.to == to]
            by = {
                row.id: (row.tx_hash, row.vout) for row in rows if row.status == "sent"
            }
            assert by == sent
            script = script_of(to).hex()
            exact = self.db.rows(queries.EXACT, script=script)
            assert {(one.txid, one.vout) for one in exact if one.again_of} == again
            for row in rows:
                shown = [
                    (one.txid, one.vout) for one in manual.candidates(self.db, row)
                ]
                expected = others.get(row.id, set())
                assert set(shown) <= expected and len(shown) == min(len(expected), 5)

    def refund(self):
        if len(self.refunds) < REFUNDS:
            to = self.dice.choice(ADDRESSES)
            sats = self.dice.choice(SUMS)
            row = made(self.till, self.invoice, sats, to)
            self.refunds.append(Waiting(row.id, to, sats, self.tip))

    def cancel(self):
        ready = [one for one in self.refunds if found(self.till, one).status == "ready"]
        for one in ready[:1]:
            actions.drop(self.db, one.id, steps.CANCELED, self.till.clock())
            one.is_canceled = True
            one.named = None

    def grow(self, kept=()):
        """A block with some payments, among them transactions that another block had."""
        self.till.sandbox.chain.mine(1, self.till.now)
        self.know(self.tip)
        block = Block(self.tip, [], {to: [] for to in ADDRESSES})
        for txid, outputs in kept:
            block.txids.append(txid)
            for to, vout, sats in outputs:
                block.paid[to].append((len(block.txids) - 1, vout, sats))
        for _ in range(self.dice.randrange(3)):
            self.made += 1
            block.txids.append(f"{self.made:064x}")
            for vout in range(self.dice.randrange(1, 3)):
                sats = self.dice.choice(PAID)
                to = self.dice.choice(ADDRESSES)
                block.paid[to].append((len(block.txids) - 1, vout, sats))
        self.chain.append(block)

    def know(self, height):
        ledger = self.till.sandbox.chain.ledger
        with self.db.write():
            add_header(
                self.db,
                height,
                ledger.blocks[ledger.hashes[height]].header,
                is_read=True,
            )

    def read(self):
        unread = [one for one in self.chain if not one.is_read]
        if not unread:
            return
        block = self.dice.choice(unread)
        settings = self.till.settings
        now = self.till.clock()
        paid_there = blocks.matches(self.db, block.height, block)
        if paid_there:
            with self.db.write():
                meta.lock(self.db)
                blocks.connect_block(
                    self.db, settings, block.height, block, paid_there, {}, now
                )
        block.is_read = True

    def say(self):
        """The merchant says that some other money was the refund."""
        for one in self.refunds:
            for output in manual.candidates(self.db, found(self.till, one))[:1]:
                outpoint = manual.Outpoint(output.txid, output.vout)
                now = self.till.clock()
                manual.confirm_sent(self.db, self.till.settings, one.id, outpoint, now)
                one.named = tuple(outpoint)
                self.did.add("said")
                return

    def reorganise(self):
        depth = self.dice.randint(1, 3)
        if len(self.chain) < depth:
            return
        fork = self.tip - depth
        lost = [one for one in self.chain if one.height > fork]
        self.chain = [one for one in self.chain if one.height <= fork]
        with self.db.write():
            meta.lock(self.db)
            blocks.disconnect_blocks(
                self.db, self.till.settings, fork, self.till.clock()
            )
            self.db.run(headers.CUT, height=fork)
        for one in self.refunds:
            one.above = min(one.above, fork)
        self.till.sandbox.chain.reorganise(depth, self.till.now)
        for height in range(fork + 1, self.tip + 1):
            self.know(height)
            self.chain.append(
                Block(height, [], {to: [] for to in ADDRESSES}, is_read=True)
            )
        self.grow(
            [
                one
                for block in lost
                for one in transactions(block)
                if self.dice.random() < 0.7
            ]
        )
        self.did.add("reorganised")


def transactions(block):
    for position, txid in enumerate(block.txids):
        outputs = [
            (to, vout, sats)
            for to in ADDRESSES
            for at, vout, sats in block.paid[to]
            if at == position
        ]
        yield txid, outputs


STEPS_OF = {
    History.refund: 3,
    History.cancel: 1,
    History.grow: 6,
    History.read: 7,
    History.say: 1,
    History.reorganise: 1,
}


@pytest.mark.parametrize("seed", range(4))
def test_what_is_sent_is_what_the_whole_chain_says(till, seed):
    history = History(till, random.Random(seed))
    for _ in range(STEPS):
        (step,) = history.dice.choices(list(STEPS_OF), list(STEPS_OF.values()))
        step(history)
        history.compare()
    while not all(one.is_read for one in history.chain):
        history.read()
        history.compare()
    assert history.did == {"said", "reorganised"}
