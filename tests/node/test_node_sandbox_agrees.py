"""The sandbox against a full node: what its payer sends the node takes, and both show one chain.

Both get the same blocks. The sandbox's mempool takes what its own wallet makes, so it is judged by
that: bcoin replaces nothing by fee (BIP125), and relays to no unknown witness version (Taproot).
"""

import random
from dataclasses import dataclass

import pytest
import requests
from bitcoin_node import NOBODY, BitcoinNode, Refused
from builders import Clock
from fake_esplora import serving_sandbox
from node_till import NodeEsplora

from btcpay.bitcoin.address import p2pkh, p2sh
from btcpay.bitcoin.tx import Outpoint, TxOut
from btcpay.sandbox.errors import BadRequest
from btcpay.sandbox.node.ledger import COINBASE_MATURITY_BLOCKS
from btcpay.sandbox.node.script import address_of, script_of
from btcpay.sandbox.payer.key import Key
from btcpay.sandbox.payer.wallet import Spendable, double_spends, replace
from btcpay.sandbox.state import Sandbox

TO_NOBODY = script_of(NOBODY)


@dataclass
class Pair:
    """A sandbox and a node with the same blocks."""

    sandbox: Sandbox
    root: str
    node: BitcoinNode
    clock: Clock

    @property
    def now(self):
        return int(self.clock().timestamp())

    def feed(self, *hashes):
        """Gives the node blocks of the sandbox; it must take them and come to the same tip."""
        ledger = self.sandbox.chain.ledger
        for block_hash in hashes:
            self.node.submit(ledger.blocks[block_hash])
        assert self.node.tip() == (ledger.height, ledger.tip.hash)

    def mine(self, count=1):
        hashes = self.sandbox.chain.mine(count, self.now)
        self.feed(*hashes)
        return hashes

    def reward(self, height):
        """The coinbase of a block of the sandbox."""
        ledger = self.sandbox.chain.ledger
        coinbase = ledger.blocks[ledger.hashes[height]].txs[0]
        return Spendable(Outpoint(coinbase.txid, 0), coinbase.outputs[0].value_sats, False)

    def verdicts(self, coin, sats=10_000):
        """ "taken", or the reason, of sandbox and node, for a payment with that coin."""
        raw, answers = self.sandbox.wallet.build([coin], [TxOut(sats, TO_NOBODY)], 1_000), []
        for take in (lambda: self.sandbox.chain.accept(raw, self.now), lambda: self.node.send(raw)):
            try:
                take()
                answers.append("taken")
            except (BadRequest, Refused) as error:
                answers.append(str(error))
        return answers[0], answers[1]


@pytest.fixture(scope="module")
def pair(tmp_path_factory):
    clock, folder = Clock(), tmp_path_factory.mktemp("chain")
    with BitcoinNode() as node, serving_sandbox(folder, clock) as (sandbox, root):
        pair = Pair(sandbox, root, node, clock)
        pair.feed(*sandbox.chain.ledger.hashes[1:])
        yield pair


# Bitcoin Core's dust limit of each script that the service has addresses of, and of another.
LEAST = {
    b"\x00\x14" + bytes(20): 294,
    p2sh(bytes(20)): 540,
    p2pkh(bytes(20)): 546,
    b"\x00\x20" + bytes(32): 330,
}


@pytest.mark.parametrize("script", LEAST, ids=lambda script: address_of(script))
def test_the_least_to_an_address_of_each_kind_is_taken_and_a_satoshi_less_is_not(pair, script):
    wallet, sats = pair.sandbox.wallet, LEAST[script]
    txid = wallet.pay(address_of(script), sats, pair.now)
    assert pair.node.send(pair.sandbox.chain.find(txid).tx.raw) == txid
    with pytest.raises(BadRequest, match="relay"):
        wallet.pay(address_of(script), sats - 1, pair.now)
    with pytest.raises(Refused):
        pair.node.send(wallet.build(wallet.coins()[:1], [TxOut(sats - 1, script)], 1_000))
    pair.mine()
    assert txid in pair.sandbox.chain.ledger.confirmed and pair.node.mempool() == []


def test_a_coinbase_is_spent_in_its_hundredth_block_and_not_before(pair):
    ripe = pair.sandbox.chain.ledger.height + 1 - COINBASE_MATURITY_BLOCKS
    by_sandbox, by_node = pair.verdicts(pair.reward(ripe + 1))
    assert by_sandbox == "bad-txns-premature-spend-of-coinbase" and by_node != "taken"
    assert pair.reward(ripe + 1) not in pair.sandbox.wallet.coins()
    assert pair.reward(ripe) in pair.sandbox.wallet.coins()
    assert pair.verdicts(pair.reward(ripe)) == ("taken", "taken")
    pair.mine()


def test_a_coin_that_is_spent_or_never_was_is_refused(pair):
    spent = pair.sandbox.wallet.coins()[0]
    assert pair.verdicts(spent) == ("taken", "taken")
    assert pair.verdicts(spent)[0] == "taken"  # again, since it waits already
    pair.mine()
    for coin in (spent, spent._replace(outpoint=Outpoint("ab" * 32, 0))):
        by_sandbox, by_node = pair.verdicts(coin, 20_000)
        assert by_sandbox == "bad-txns-inputs-missingorspent" and by_node != "taken"


@pytest.mark.parametrize("seed", range(3))
def test_the_node_follows_a_random_walk(pair, seed):
    """Payments of all sizes and kinds, replaced and taken back; blocks and reorganisations."""
    dice, chain, wallet = random.Random(seed), pair.sandbox.chain, pair.sandbox.wallet
    kinds = [*LEAST, b"\x51\x20" + bytes(range(32)), wallet.script]

    def reorganise():
        depth = dice.randint(1, 4)
        instead = double_spends(wallet, depth) if dice.random() < 0.5 else []
        pair.feed(*chain.reorganise(depth, pair.now, instead))

    happens = {
        lambda: wallet.pay(
            address_of(dice.choice(kinds)), dice.choice([546, 10_000, 6_000_000_000]), pair.now
        ): 6,
        lambda: wallet.payments() and replace(wallet, pair.now, away=dice.random() < 0.5): 2,
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


def test_both_count_the_same_coins(pair):
    coins = pair.sandbox.chain.ledger.coins
    found = pair.node.rpc("gettxoutsetinfo")
    total_sats = sum(each.tx.outputs[at.vout].value_sats for at, each in coins.items())
    assert found["txouts"] == len(coins)
    assert round(found["total_amount"] * 100_000_000) == total_sats


def get(root, path):
    """The status, and an answer that is no error."""
    answer = requests.get(root + path, timeout=60)
    is_json = "json" in answer.headers["Content-Type"]
    return answer.status_code, answer.ok and (answer.json() if is_json else answer.content)


def test_both_explorers_answer_the_same(pair):
    wallet, chain = pair.sandbox.wallet, pair.sandbox.chain
    address = address_of(Key.new().script_code)
    pair.mine()
    pair.feed(*chain.reorganise(1, pair.now))
    for n in range(27):
        wallet.pay(address, 10_000 + n, pair.now)
    pair.mine()
    waiting = wallet.pay(address, 5_000, pair.now)
    pair.node.send(chain.mempool.entries[waiting].tx.raw)
    blocks = (chain.ledger.hashes[0], chain.ledger.tip.hash, "ab" * 32)
    paths = [
        *("/blocks", "/blocks/tip/height", "/blocks/tip/hash", "/nothing"),
        *(f"/block-height/{height}" for height in (0, 150, 99_999)),
        *(f"/blocks/{height}" for height in (0, 3, 150)),
        *(f"/block/{each}/{part}" for each in blocks for part in ("header", "raw")),
        *(f"/address/{address}/{part}" for part in ("txs", "txs/mempool")),
        *(f"/address/{wallet.address}/txs", "/address/nonsense/txs"),
    ]
    with NodeEsplora(pair.node) as esplora:
        differing = [path for path in paths if get(pair.root, path) != get(esplora.root, path)]
    assert differing == []
