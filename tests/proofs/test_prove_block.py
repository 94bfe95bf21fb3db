"""A block proves all that it pays and spends; changed, cut or added to, it proves nothing."""

from collections.abc import Sequence

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from btcpay.bitcoin.merkle import merkle_root, merkle_rows
from btcpay.bitcoin.tx import NULL_TXID, NULL_VOUT, Outpoint, Tx, TxIn, TxOut, parse_tx
from btcpay.bitcoin.wire import hash256, hash_from_hex, ser_compact_size
from btcpay.proofs.block import prove_block
from btcpay.proofs.verify import prove
from btcpay.values.errors import ProofFailed
from btcpay.values.times import from_unix_s, iso
from tests.support.blocks import (
    MINED_AT_S,
    P2WPKH,
    REAL,
    WORST,
    block_of,
    block_of_raw,
    coinbase,
    flipped,
    hash_of,
    header_over,
    payment,
    real_block,
)

EASY = 0x207FFFFF


def require_evidence(block, position):
    """The evidence is accepted for every script that the transaction pays."""
    tx = parse_tx(block.contents.tx_without_witness(position))
    assert tx.txid == block.txid(position)
    paid = {output.script for output in tx.outputs if output.value_sats}
    for script in sorted(paid)[:3]:
        proven = prove(block.evidence(position), tx.txid, script, EASY, 1)
        assert (proven.block_hash, proven.mined_at) == (block.hash, block.mined_at)
        if script in block.contents.outputs_by_script:
            shown = {
                vout: sats
                for at, vout, sats in block.contents.outputs_by_script[script]
                if at == position
            }
            assert {v: sats for v, sats in proven.amounts_sats.items() if sats} == shown


@pytest.mark.parametrize(
    ("name", "mined_at", "count"),
    [
        ("413567", "2016-05-26T23:58:43.000Z", 1557),
        ("2021-09", "2021-09-30T11:50:41.000Z", 2500),
        ("866342", "2024-10-19T10:49:30.000Z", 4864),
    ],
)
def test_a_real_block_proves_all_its_transactions(name, mined_at, count):
    block = prove_block(real_block(name), REAL[name])
    assert block.hash == REAL[name] and len(block.contents.txids) == count
    assert iso(block.mined_at) == mined_at
    for position in [0, 1, 2, *range(3, count, 97), count - 2, count - 1]:
        require_evidence(block, position)


@pytest.mark.parametrize("size", [1, 2, 3, 5, 8, 11])
def test_every_transaction_of_a_block_of_this_size_is_proven(size):
    raw = block_of([coinbase(), *map(payment, range(1, size))])
    block = prove_block(raw, hash_of(raw))
    assert block.mined_at == from_unix_s(MINED_AT_S)
    assert block.contents.outputs_by_script[P2WPKH][1:] == [
        (n, 0, 1_000 + n) for n in range(1, size)
    ]
    assert block.contents.spent_outpoints == {
        Outpoint(f"{n:064x}", n).raw for n in range(1, size)
    }
    leaves = [hash_from_hex(block.txid(n)) for n in range(size)]
    assert merkle_root(leaves) == raw[36:68]
    for position in range(size):
        evidence = block.evidence(position)
        assert evidence.headers == [raw[:80]]
        assert evidence.payment.position == position and evidence.coinbase.position == 0
        require_evidence(block, position)


@pytest.mark.slow
@pytest.mark.parametrize("make", WORST.values(), ids=WORST)
def test_the_worst_block_is_proven(make):
    raw = make()
    block = prove_block(raw, hash_of(raw))
    require_evidence(block, 0)
    require_evidence(block, len(block.contents.txids) - 1)


def refused(raw, reason, hash=None):
    with pytest.raises(ProofFailed, match=reason):
        prove_block(raw, hash or hash_of(raw))


TXS = [coinbase(), payment(1, witness=(b"\x30" * 71,)), *map(payment, range(2, 6))]
SMALL = block_of(TXS)
HASH = hash_of(SMALL)


def body(txs):
    return ser_compact_size(len(txs)) + b"".join(tx.raw for tx in txs)


def facts(block):
    positions = range(len(block.contents.txids))
    evidence = [block.evidence(position) for position in positions]
    return (
        block.hash,
        block.mined_at,
        block.contents.outputs_by_script,
        block.contents.spent_outpoints,
        evidence,
    )


def outcome(raw):
    try:
        return facts(prove_block(raw, HASH))
    except ProofFailed:
        return None


def test_no_single_bit_of_a_block_changes_what_is_proven():
    proven = outcome(SMALL)
    for bit in range(8 * len(SMALL)):
        found = outcome(flipped(SMALL, bit))
        assert found is None or found == proven
    assert outcome(flipped(SMALL, 8 * SMALL.index(b"\x30" * 71))) == proven


CHANGES: dict[str, Sequence[Tx]] = {
    "the last transaction is left out": TXS[:-1],
    "one in the middle is left out": TXS[:2] + TXS[3:],
    "the coinbase is left out": TXS[1:],
    "all but the coinbase are left out": TXS[:1],
    "two are swapped": [*TXS[:2], TXS[3], TXS[2], *TXS[4:]],
    "the last two are swapped": [*TXS[:4], TXS[5], TXS[4]],
    "one is added": [*TXS, payment(99)],
    "one is added in front": [coinbase(), payment(99), *TXS[1:]],
    "one takes the place of another": [*TXS[:5], payment(99)],
    "the last is there twice": [*TXS, TXS[-1]],
}


@pytest.mark.parametrize("txs", CHANGES.values(), ids=CHANGES)
def test_a_block_of_other_transactions_is_refused(txs):
    refused(SMALL[:80] + body(txs), "do not lead to the header's root", HASH)


@pytest.mark.parametrize("at", [0, 4, 36, 67, 68, 72, 76, 79])
def test_a_block_of_another_header_is_refused(at):
    refused(flipped(SMALL, 8 * at), "another header", HASH)
    refused(flipped(SMALL, 8 * at), "another header", HASH.upper())
    refused(block_of([coinbase(), payment(1)]), "another header", HASH)


@pytest.mark.parametrize(
    ("count", "tail"), [(3, 1), (5, 1), (6, 2), (7, 1), (10, 2), (11, 1), (12, 4)]
)
def test_a_doubled_tail_is_refused_though_it_leads_to_the_root(count, tail):
    """CVE-2012-2459."""
    txs = [coinbase(), *map(payment, range(1, count))]
    honest = block_of(txs)
    doubled = [*txs, *txs[-tail:]]
    prove_block(honest, hash_of(honest))
    assert merkle_root([hash_from_hex(tx.txid) for tx in doubled]) == honest[36:68]
    refused(honest[:80] + body(doubled), "duplicated")


# 64 bytes: what is a transaction, and what a node of the tree (CVE-2017-12842)
SOMETHING = Outpoint("ab" * 32, 1)


def small_tx(script_sig, outpoint=SOMETHING):
    tx = Tx(2, (TxIn(outpoint, script_sig, 0),), (TxOut(1, b""),), 0)
    assert len(tx.without_witness) == 60 + len(script_sig)
    return tx


def test_a_row_of_the_tree_that_poses_as_transactions_is_refused():
    """Every pair of nodes has 64 bytes, and leads to the same root."""
    raw = block_of([coinbase(), *map(payment, range(1, 8))])
    for row in merkle_rows([hash256(tx.without_witness) for tx in parse(raw)])[:-1]:
        pairs = [left + right for left, right in zip(row[::2], row[1::2], strict=True)]
        posing = raw[:80] + ser_compact_size(len(pairs)) + b"".join(pairs)
        assert merkle_root([hash256(pair) for pair in pairs]) == raw[36:68]
        refused(posing, "does not decode")


def parse(raw):
    block = prove_block(raw, hash_of(raw))
    return [
        parse_tx(block.contents.tx_without_witness(n))
        for n in range(len(block.contents.txids))
    ]


def test_a_row_that_decodes_as_transactions_is_refused_for_its_first():
    """A miner who made ids such that the pairs decode: the first is still no coinbase."""
    pairs = [small_tx(b"\x01\x02\x03" + bytes([n])) for n in range(4)]
    refused(block_of(pairs), "not a coinbase")


def test_a_coinbase_as_long_as_a_node_is_refused():
    nothing = Outpoint(NULL_TXID, NULL_VOUT)
    longer, node, shorter = (small_tx(bytes(n), nothing) for n in (5, 4, 3))
    refused(block_of([node, payment(1)]), "as long as a Merkle node")
    for real in (longer, shorter):
        raw = block_of([real, payment(1)])
        prove_block(raw, hash_of(raw))


def test_a_coinbases_witness_does_not_make_it_longer():
    origin = TxIn(Outpoint(NULL_TXID, NULL_VOUT), bytes(4), 0, (bytes(32),))
    refused(
        block_of([Tx(2, (origin,), (TxOut(1, b""),), 0)]), "as long as a Merkle node"
    )


def test_another_transaction_of_64_bytes_stalls_nobody_and_proves_no_payment():
    small = small_tx(bytes(4))
    raw = block_of([coinbase(), small, payment(2)])
    block = prove_block(raw, hash_of(raw))
    assert block.contents.outputs_by_script[P2WPKH][1:] == [(2, 0, 1_002)]
    require_evidence(block, 2)
    with pytest.raises(ProofFailed, match="as long as a Merkle node"):
        prove(block.evidence(1), small.txid, b"", EASY, 1)


NO_COINBASE: dict[str, list[Tx]] = {
    "an ordinary transaction is first": [payment(1), payment(2)],
    "a transaction is alone": [payment(1)],
    "it spends something beside nothing": [
        Tx(2, (*coinbase().inputs, *payment(1).inputs), (TxOut(1, P2WPKH),), 0)
    ],
    "it spends output 0 of nothing": [small_tx(bytes(9), Outpoint(NULL_TXID, 0))],
    "it spends the last output of something": [
        small_tx(bytes(9), Outpoint("ab" * 32, NULL_VOUT))
    ],
}


@pytest.mark.parametrize("txs", NO_COINBASE.values(), ids=NO_COINBASE)
def test_a_block_without_a_coinbase_in_front_is_refused(txs):
    refused(block_of(txs), "not a coinbase")


@pytest.mark.parametrize("at", [1, 2, 3])
def test_a_second_coinbase_is_refused(at):
    txs = [coinbase(), payment(1), payment(2)]
    refused(block_of([*txs[:at], coinbase(b"\x51"), *txs[at:]]), "second coinbase")


def test_the_coinbases_script_may_be_anything_it_wants():
    raw = block_of([coinbase(b"\x6a" + bytes(9_000)), payment(1)])
    prove_block(raw, hash_of(raw))


@given(st.binary(max_size=300))
@settings(max_examples=300)
def test_blocks_of_any_bytes_are_refused_and_never_an_error_of_another_kind(raw):
    for block in (raw, header_over([bytes(32)]) + raw, block_of_raw([raw])):
        with pytest.raises(ProofFailed):
            prove_block(block, hash_of(block))
