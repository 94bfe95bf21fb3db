"""The sandbox's blocks are real: work, merkle root, commitment, height, reward and time."""

import hashlib
from pathlib import Path

import pytest

from btcpay.bitcoin.tx import TxOut
from btcpay.sandbox.errors import BadRequest
from btcpay.sandbox.node.block import GENESIS, parse_block, push_height, subsidy_sats
from btcpay.sandbox.node.script import script_of
from btcpay.sandbox.state import FIRST_BLOCKS, open_sandbox

NOW = 1_800_000_000
ADDRESS = "bcrt1qw508d6qejxtdg4y5r3zarvary0c5xw7kygt080"


@pytest.fixture
def sandbox(tmp_path: Path):
    opened = open_sandbox(tmp_path, lambda: NOW)
    yield opened
    opened.close()


def dsha(data: bytes) -> bytes:
    return hashlib.sha256(hashlib.sha256(data).digest()).digest()


def root(nodes: list[bytes]) -> bytes:
    """A merkle root, written from the definition and not from the code under test."""
    if len(nodes) == 1:
        return nodes[0]
    if len(nodes) % 2:
        nodes = [*nodes, nodes[-1]]
    return root([dsha(a + b) for a, b in zip(nodes[::2], nodes[1::2], strict=True)])


def test_the_genesis_block_is_regtests():
    assert GENESIS.hash == "0f9188f13cb7b2c71f2a335e3a4fc328bf5beb436012afca590b1a11466e2206"
    assert dsha(GENESIS.raw[:80])[::-1].hex() == GENESIS.hash


@pytest.mark.parametrize("paid", [0, 1, 2, 5])
def test_a_block_carries_work_and_commits_to_all_its_transactions(sandbox, paid):
    for _ in range(paid):
        sandbox.wallet.pay(ADDRESS, 5_000, NOW)
    (block_hash,) = sandbox.chain.mine(1, NOW)
    block = sandbox.chain.ledger.blocks[block_hash]
    raw = block.raw
    assert dsha(raw[:80])[::-1].hex() == block_hash
    assert int.from_bytes(dsha(raw[:80]), "little") <= 0x7FFFFF << 232
    assert raw[72:76] == bytes.fromhex("ffff7f20")
    assert len(block.txs) == 1 + paid
    assert raw[36:68] == root([dsha(tx.stripped) for tx in block.txs])
    witness_root = root([bytes(32), *(dsha(tx.raw) for tx in block.txs[1:])])
    (reserved,) = block.txs[0].inputs[0].witness
    commitment = bytes.fromhex("6a24aa21a9ed") + dsha(witness_root + reserved)
    assert block.txs[0].outputs[1].script == commitment
    assert parse_block(raw) == block


def test_the_first_blocks_form_a_chain_with_heights_rewards_and_rising_times(sandbox):
    ledger = sandbox.chain.ledger
    assert ledger.height == FIRST_BLOCKS
    for height in range(1, FIRST_BLOCKS + 1):
        block, previous = (ledger.blocks[ledger.hashes[h]] for h in (height, height - 1))
        assert block.previous == previous.hash
        assert block.time > ledger.median_time_past(previous.hash)
        assert block.time <= NOW
        coinbase = block.txs[0]
        assert coinbase.inputs[0].script_sig.startswith(push_height(height))
        assert 2 <= len(coinbase.inputs[0].script_sig) <= 100
        assert coinbase.outputs[0].value_sats == (50 if height < 150 else 25) * 100_000_000


def test_heights_are_pushed_as_minimal_script_numbers():
    pushed = {1: "51", 16: "60", 17: "0111", 127: "017f", 128: "028000", 256: "020001"}
    assert {height: push_height(height).hex() for height in pushed} == pushed


def test_the_subsidy_halves_every_150_blocks():
    assert [subsidy_sats(height) for height in (149, 150, 300)] == [
        50 * 10**8,
        25 * 10**8,
        125 * 10**7,
    ]


def test_the_miner_gets_the_fees(sandbox):
    output = TxOut(5_000, script_of(ADDRESS))
    sandbox.chain.accept(sandbox.wallet.build(sandbox.wallet.coins()[:1], [output], 1_234), NOW)
    sandbox.chain.mine(1, NOW)
    ledger = sandbox.chain.ledger
    assert ledger.tip.txs[0].outputs[0].value_sats == subsidy_sats(ledger.height) + 1_234


def test_block_times_pass_the_median_even_when_the_clock_stands_still(sandbox):
    hashes = sandbox.chain.mine(30, NOW)
    ledger = sandbox.chain.ledger
    for block_hash in hashes:
        block = ledger.blocks[block_hash]
        assert NOW <= block.time < NOW + 10
        assert block.time > ledger.median_time_past(block.previous)


def test_a_clock_more_than_two_hours_behind_the_chain_stops_mining(sandbox):
    sandbox.chain.mine(20, NOW)
    ledger = sandbox.chain.ledger
    earliest = ledger.median_time_past(ledger.tip.hash) + 1
    with pytest.raises(BadRequest, match="time-too-new"):
        sandbox.chain.mine(1, earliest - 7_201)
    sandbox.chain.mine(1, earliest - 7_200)
    assert ledger.tip.time == earliest
