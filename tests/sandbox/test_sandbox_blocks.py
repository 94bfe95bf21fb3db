"""The sandbox's blocks are real: work, merkle root, commitment, height, reward and time."""

import hashlib
from pathlib import Path

import pytest

from btcpay.bitcoin.tx import parse_tx
from btcpay.sandbox.errors import BadRequest
from btcpay.sandbox.node.block import GENESIS, parse_block, push_height, subsidy_sats
from btcpay.sandbox.node.sighash import witness_sighash
from btcpay.sandbox.state import FIRST_BLOCKS, open_sandbox

NOW = 1_800_000_000
ADDRESS = "bcrt1qw508d6qejxtdg4y5r3zarvary0c5xw7kygt080"

# BIP143, examples "Native P2WPKH" (input 1) and "P2SH-P2WPKH" (input 0).
BIP143_NATIVE = (
    "0100000002fff7f7881a8099afa6940d42d1e7f6362bec38171ea3edf433541db4e4ad969f0000000000eeffffff"
    "ef51e1b804cc89d182d279655c3aa89e815b1b309fe287d9b2b55d57b90ec68a0100000000ffffffff02202cb206"
    "000000001976a9148280b37df378db99f66f85c95a783a76ac7a6d5988ac9093510d000000001976a9143bde42db"
    "ee7e4dbe6a21b2d50ce2f0167faa815988ac11000000"
)
BIP143_NESTED = (
    "0100000001db6b1b20aa0fd7b23880be2ecbd4a98130974cf4748fb66092ac4d3ceb1a54770100000000feffffff"
    "02b8b4eb0b000000001976a914a457b684d7f0d539a46a45bbc043f35b59d0d96388ac0008af2f00000000"
    "1976a914fd270b1ee6abcaea97fea7ad0402e8bd8ad6d77c88ac92040000"
)


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


@pytest.mark.parametrize(
    ("height", "pushed"),
    [(1, "51"), (16, "60"), (17, "0111"), (127, "017f"), (128, "028000"), (256, "020001")],
)
def test_heights_are_pushed_as_minimal_script_numbers(height, pushed):
    assert push_height(height).hex() == pushed


@pytest.mark.parametrize(
    ("height", "sats"), [(149, 5_000_000_000), (150, 2_500_000_000), (300, 1_250_000_000)]
)
def test_the_subsidy_halves_every_150_blocks(height, sats):
    assert subsidy_sats(height) == sats


def test_the_miner_gets_the_fees(sandbox):
    sandbox.wallet.pay(ADDRESS, 5_000, NOW, fee_sats=1_234)
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


@pytest.mark.parametrize("count", [0, -1, 1001])
def test_a_count_of_blocks_out_of_range_is_refused(sandbox, count):
    with pytest.raises(BadRequest, match="blocks must be 1 to 1000"):
        sandbox.chain.mine(count, NOW)


@pytest.mark.parametrize(
    ("raw", "index", "key_hash", "value_sats", "digest"),
    [
        pytest.param(
            BIP143_NATIVE,
            1,
            "1d0f172a0ecb48aee1be1f2687d2963ae33f71a1",
            600_000_000,
            "c37af31116d1b27caf68aae9e3ac82f1477929014d5b917657d0eb49478cb670",
            id="native P2WPKH",
        ),
        pytest.param(
            BIP143_NESTED,
            0,
            "79091972186c449eb1ded22b78e40d009bdf0089",
            1_000_000_000,
            "64f3b0f4dd2bb3aa1ce8566d220cc74dda9df97d8490cc81d89d735c92e59fb6",
            id="P2SH-P2WPKH",
        ),
    ],
)
def test_the_witness_digest_is_that_of_bip143(raw, index, key_hash, value_sats, digest):
    script_code = bytes.fromhex(f"76a914{key_hash}88ac")
    found = witness_sighash(parse_tx(bytes.fromhex(raw)), index, script_code, value_sats)
    assert found.hex() == digest
