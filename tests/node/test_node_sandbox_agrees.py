"""The sandbox against a full node: what its payer sends the node takes, and both show one chain.

Both get the same blocks. The sandbox's mempool takes what its own wallet makes, so it is judged by
that: bcoin replaces nothing by fee (BIP125), and relays to no unknown witness version (Taproot).
"""

import random
import time
from dataclasses import dataclass

import pytest

from btcpay.bitcoin.address import p2pkh, p2sh
from btcpay.bitcoin.tx import Outpoint, TxOut
from btcpay.sandbox.errors import BadRequest
from btcpay.sandbox.node.ledger import COINBASE_MATURITY_BLOCKS
from btcpay.sandbox.node.script import address_of, script_of
from btcpay.sandbox.payer.coins import Spendable
from btcpay.sandbox.payer.wallet import double_spends, replace
from btcpay.sandbox.state import Sandbox, open_sandbox
from tests.support.bitcoin_node import NOBODY, BitcoinNode, ChangeRefused

NOW = int(time.time())
TO_NOBODY = script_of(NOBODY)


@dataclass
class Pair:
    """A sandbox and a node with the same blocks."""

    sandbox: Sandbox
    node: BitcoinNode

    def feed(self, *hashes):
        """Gives the node blocks of the sandbox; it must take them and come to the same tip."""
        ledger = self.sandbox.chain.ledger
        for block_hash in hashes:
            self.node.submit(ledger.blocks[block_hash])
        assert self.node.tip() == (ledger.height, ledger.tip.hash)

    def mine(self, count=1):
        self.feed(*self.sandbox.chain.mine(count, NOW))

    def reward(self, height):
        """The coinbase of a block of the sandbox."""
        ledger = self.sandbox.chain.ledger
        coinbase = ledger.blocks[ledger.hashes[height]].txs[0]
        return Spendable(
            Outpoint(coinbase.txid, 0), coinbase.outputs[0].value_sats, False
        )


@pytest.fixture(scope="module")
def pair(tmp_path_factory):
    sandbox = open_sandbox(tmp_path_factory.mktemp("chain"), lambda: NOW)
    with BitcoinNode() as node:
        pair = Pair(sandbox, node)
        pair.feed(*sandbox.chain.ledger.hashes[1:])
        yield pair
    sandbox.close()


# Bitcoin Core's dust limit of each script that the service has addresses of, and of another.
LEAST = {
    b"\x00\x14" + bytes(20): 294,
    p2sh(bytes(20)): 540,
    p2pkh(bytes(20)): 546,
    b"\x00\x20" + bytes(32): 330,
}


@pytest.mark.parametrize("script", LEAST, ids=lambda script: address_of(script))
def test_the_least_to_an_address_of_each_kind_is_taken_and_a_satoshi_less_is_not(
    pair, script
):
    wallet = pair.sandbox.wallet
    sats = LEAST[script]
    txid = wallet.pay(address_of(script), sats, NOW)
    assert pair.node.send(pair.sandbox.chain.find(txid).tx.raw) == txid
    with pytest.raises(BadRequest, match="relay"):
        wallet.pay(address_of(script), sats - 1, NOW)
    with pytest.raises(ChangeRefused):
        pair.node.send(
            wallet.build(wallet.coins()[:1], [TxOut(sats - 1, script)], 1_000)
        )
    pair.mine()
    assert txid in pair.sandbox.chain.ledger.confirmed and pair.node.mempool() == []


def test_a_coinbase_is_spent_in_its_hundredth_block_and_not_before(pair):
    wallet = pair.sandbox.wallet
    ripe = pair.sandbox.chain.ledger.height + 1 - COINBASE_MATURITY_BLOCKS
    early, now = (
        wallet.build([pair.reward(height)], [TxOut(10_000, TO_NOBODY)], 1_000)
        for height in (ripe + 1, ripe)
    )
    for take, refusal in (
        (lambda raw: pair.sandbox.chain.accept(raw, NOW), BadRequest),
        (pair.node.send, ChangeRefused),
    ):
        with pytest.raises(refusal):
            take(early)
        take(now)
    pair.mine()


@pytest.mark.parametrize("seed", range(3))
def test_the_node_follows_a_random_walk(pair, seed):
    """Payments of all sizes and kinds, replaced and taken back; blocks and reorganisations."""
    dice = random.Random(seed)
    chain = pair.sandbox.chain
    wallet = pair.sandbox.wallet
    kinds = [*LEAST, b"\x51\x20" + bytes(range(32)), wallet.script]

    def reorganise():
        depth = dice.randint(1, 4)
        instead = double_spends(wallet, depth) if dice.random() < 0.5 else []
        pair.feed(*chain.reorganise(depth, NOW, instead))

    happens = {
        lambda: wallet.pay(
            address_of(dice.choice(kinds)),
            dice.choice([546, 10_000, 6_000_000_000]),
            NOW,
        ): 6,
        lambda: wallet.payments() and replace(wallet, NOW, away=dice.random() < 0.5): 2,
        lambda: pair.mine(dice.randint(1, 3)): 2,
        reorganise: 1,
    }
    for event in dice.choices(list(happens), list(happens.values()), k=60):
        event()
    waiting = list(chain.mempool.entries)
    pair.mine()
    assert [tx.txid for tx in chain.ledger.tip.txs[1:]] == waiting


def test_the_node_takes_blocks_beyond_the_second_halving(pair):
    pair.mine(max(1, 301 - pair.sandbox.chain.ledger.height))
    assert pair.reward(300).value_sats == 1_250_000_000
    assert pair.node.coins(pair.sandbox.wallet.script, coinbases=True)
