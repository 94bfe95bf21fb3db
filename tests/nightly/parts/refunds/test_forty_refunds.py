"""A full node's wallet sends forty refunds to all five kinds of address, and some that are wrong.

Fees are bumped, blocks reorganised, coins spent otherwise; every check is killed before each of its
commits in turn. What is sent and proven is always what the node's own blocks say.
"""

import json
import random
import signal
from collections import Counter

import pytest

from btcpay.bitcoin.address import p2pkh, p2sh, witness_script
from btcpay.bitcoin.tx import TxOut, parse_tx
from btcpay.parts.refunds import queries
from btcpay.proofs.document import check_document
from btcpay.sandbox.node.script import address_of
from btcpay.sandbox.payer.key import Key
from tests.support import node_walk
from tests.support.forge import Forge
from tests.support.node_till import open_chain, open_node_till
from tests.support.shop_refunds import found, made
from tests.support.spending import spend_p2wpkh

pytestmark = pytest.mark.both_databases
KINDS = (
    p2pkh,
    p2sh,
    lambda key_hash: witness_script(0, key_hash),
    lambda key_hash: witness_script(0, key_hash + bytes(12)),
    lambda key_hash: witness_script(1, key_hash + bytes(12)),
)
RIGHT = 40
WRONG = 6
MOST_STEPS = 60
MOST_KILLS = 40
TAPROOT = b"\x51\x20"


class Sending:
    """A merchant who sends refunds from the node's wallet, clumsily."""

    def __init__(self, till, forge, seed):
        self.till = till
        self.node = till.node
        self.forge = forge
        self.dice = random.Random(seed)
        self.did = Counter()
        invoice = till.shop.invoice(900, expires_in_hours=None)
        till.confirm(invoice)
        self.invoice = invoice
        self.refunds = []
        self.above = {}
        for number in range(RIGHT + WRONG):
            script = KINDS[number % len(KINDS)](number.to_bytes(20, "big"))
            to = address_of(script)
            # paid before the address was given: never what sends it
            if number >= RIGHT:
                self.pay([(script, 3_000 + number)])
                self.mine(1)
                till.check()
            self.refunds.append(made(till, invoice, 3_000 + number, to))
            self.above[self.refunds[-1].id] = self.node.tip()[0]
        self.right = self.refunds[:RIGHT]
        self.wrong = self.refunds[RIGHT:]

    def script_of(self, refund):
        return bytes.fromhex(refund.script)

    def pay(self, parts):
        """To any script; a transaction that pays to taproot goes into a block by hand."""
        if not any(script[:2] == TAPROOT for script, _ in parts):
            self.node.pay_many([(address_of(script), sats) for script, sats in parts])
            return
        key = Key.new()
        self.node.pay(address_of(key.script), sum(sats for _, sats in parts) + 1_000)
        self.mine(1)
        coins = self.node.coins(key.script)
        outputs = [TxOut(sats, script) for script, sats in parts]
        self.node.mine_conflict(spend_p2wpkh(key, coins, outputs).raw)

    def mine(self, blocks):
        self.till.clock.move(minutes=7)
        self.till.mine(blocks)

    def chain(self):
        """The node's best chain from the first refund on: height, place and transaction."""
        first = min(self.above.values()) + 1
        blocks = enumerate(self.node.chain()[first:], first)
        return [
            (height, n, tx) for height, one in blocks for n, tx in enumerate(one.txs)
        ]

    def first(self, refund, chain):
        """The first that fits, in a block after: height, txid and vout; None for none."""
        script = self.script_of(refund)
        fitting = (
            (height, tx.txid, vout)
            for height, _, tx in chain
            if height > self.above[refund.id]
            for vout, output in enumerate(tx.outputs)
            if output.script == script and output.value_sats == refund.amount_sats
        )
        return next(fitting, None)

    def send(self):
        """One to four in one transaction, for which nothing waits; wrong ones a satoshi short."""
        sent = {row.id for row in self.rows() if row.status == "sent"}
        waiting = self._waiting_scripts()
        left = [
            one
            for one in self.right
            if one.id not in sent and self.script_of(one) not in waiting
        ]
        for refund in self.dice.sample(self.wrong, 1):
            left += [refund] if self.dice.random() < 0.3 else []
        chosen = self.dice.sample(left, min(len(left), self.dice.randint(1, 4)))
        short = {one.id for one in self.wrong}
        parts = [
            (self.script_of(one), one.amount_sats - (one.id in short)) for one in chosen
        ]
        if parts:
            self.pay(parts)
        return bool(parts)

    def _waiting_scripts(self):
        return {
            output.script
            for txid in self.node.mempool()
            for output in self.node.transaction(txid).outputs
        }

    def bump(self):
        """A fee is raised: another transaction with the same outputs takes the place of one."""
        for txid in self.node.mempool():
            tx = self.node.transaction(txid)
            coins = self.node.spent_by(txid)
            if any(
                coin.output.script not in self.node.wallet.scripts for coin in coins
            ):
                continue
            outputs = [
                out for out in tx.outputs if out.script not in self.node.wallet.scripts
            ]
            parts = [(address_of(out.script), out.value_sats) for out in outputs]
            bumped = self.node.wallet.build(parts, coins, fee=20)
            self.node.drop(txid)
            self.node.send(bumped)
            return True
        return False

    def block(self):
        self.mine(self.dice.choice([1, 1, 2]))
        return True

    def reorganise(self):
        """Up to five blocks; a part of what they had is spent otherwise, and never comes back."""
        depth = self.dice.randint(1, 5)
        chain = self.node.chain()
        instead = []
        fork = len(chain) - 1 - depth
        if fork < min(self.above.values()):
            return False
        for block in chain[fork + 1 :]:
            for tx in block.txs[1:]:
                coins = self.node.spent_by(tx.txid)
                own = all(
                    coin.output.script in self.node.wallet.scripts for coin in coins
                )
                if own and self.dice.random() < 0.7:
                    instead.append(parse_tx(self.node.wallet.build([], coins)))
        instead = [tx.raw for tx in node_walk.possible(self.node, instead, fork)]
        self.node.reorganise(depth, instead=instead)
        self.did["spent otherwise"] += len(instead)
        self.above = {id: min(above, fork) for id, above in self.above.items()}
        return True

    def check(self):
        """Killed before its first commit, then its second, and so on, until one survives."""
        for moment in range(1, MOST_KILLS):
            order = {"moment": moment, "at": self.till.clock().isoformat()}
            ended = self.forge.run(self.till.shop.environ, [], **order)
            assert ended.status in (0, -signal.SIGKILL), ended.errors
            if not ended.status:
                break
            self.did["killed"] += 1
        # work that has ended several processes waits so long
        self.till.clock.move(hours=1)
        run = self.till.check()
        assert run.complete, run

    def rows(self):
        return self.till.shop.service.db.rows(
            queries.OF_INVOICE, invoice_id=self.invoice["id"]
        )

    def compare(self):
        """Each is sent by the first of exactly its sum, and no other is."""
        chain = self.chain()
        for row in self.rows():
            by = (
                (row.sent_height, row.tx_hash, row.vout)
                if row.status == "sent"
                else None
            )
            assert by == self.first(row, chain), (
                row.id,
                row.above_height,
                self.above[row.id],
            )

    def prove(self, refund):
        row = found(self.till, refund)
        kept = self.till.shop.service.db.get(queries.DOCUMENT, txid=row.tx_hash)
        proven = check_document(json.loads(kept.document) | {"script": row.script})
        assert proven.txid == row.tx_hash
        assert proven.block_hash == self.node.chain()[row.sent_height].hash
        assert proven.amounts_sats[row.vout] == refund.amount_sats


HAPPENS = {Sending.send: 6, Sending.block: 5, Sending.bump: 3, Sending.reorganise: 2}


@pytest.mark.parametrize("seed", [1])
def test_every_right_one_is_proven_and_no_other(tmp_path, ticker, seed):
    forge = Forge(node_walk.__file__)
    with open_chain() as chain, open_node_till(tmp_path, ticker, chain) as till:
        till.mine(10)
        sending = Sending(till, forge, seed)
        for _ in range(MOST_STEPS):
            events = sending.dice.choices(list(HAPPENS), list(HAPPENS.values()), k=3)
            for event in events:
                sending.did[event.__name__] += event(sending)
            sending.check()
            sending.compare()
            if len([row for row in sending.rows() if row.status == "sent"]) == RIGHT:
                break
        print(sending.did)
        for refund in sending.right:
            sending.prove(refund)
        states = {found(till, one).status for one in sending.wrong}
        assert states == {"ready"}
        assert {event.__name__ for event in HAPPENS} | {
            "killed",
            "spent otherwise",
        } <= (+sending.did).keys()
    forge.close()
