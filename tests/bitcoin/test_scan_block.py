"""A block read in one pass says what its transactions say when each is read as an object."""

import re
import tracemalloc
from collections import defaultdict
from collections.abc import Callable

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from btcpay.bitcoin.block import MAX_BLOCK_BYTES, scan_block
from btcpay.bitcoin.tx import Outpoint, Tx, TxIn, TxOut
from btcpay.bitcoin.wire import DecodeError, hash_from_hex, ser_compact_size, ser_uint32
from btcpay.sandbox.node.block import parse_block
from tests.support.blocks import (
    P2WPKH,
    REAL,
    WORST,
    block_of,
    block_of_raw,
    coinbase,
    payment,
    real_block,
)

OURS = re.compile(
    rb"\x00\x14.{20}|[\x00\x51]\x20.{32}|\xa9\x14.{21}|\x76\xa9.{23}", re.DOTALL
).fullmatch


def require_the_same_by_objects(raw):
    parts = scan_block(raw)
    block = parse_block(raw)
    paid = defaultdict(list)
    for position, tx in enumerate(block.txs):
        for vout, output in enumerate(tx.outputs):
            if OURS(output.script) and output.value_sats:
                paid[output.script].append((position, vout, output.value_sats))
    spenders = block.txs[1:] if block.txs[0].is_coinbase else block.txs
    assert parts.header == block.header
    assert parts.txids == [hash_from_hex(tx.txid) for tx in block.txs]
    assert parts.outputs_by_script == paid
    assert parts.spent_outpoints == {
        each.outpoint.raw for tx in spenders for each in tx.inputs
    }
    assert [parts.tx_without_witness(n) for n in range(len(block.txs))] == [
        tx.without_witness for tx in block.txs
    ]
    return parts


@pytest.mark.parametrize("name", REAL)
def test_a_real_block_is_read_as_by_objects(name):
    require_the_same_by_objects(real_block(name))


def bytes_of(*sizes):
    """Of one of these sizes; long ones all alike, so that shrinking ends."""
    sized = (
        st.binary(min_size=n, max_size=n) if n < 40 else st.just(b"\x11" * n)
        for n in sizes
    )
    return st.one_of(*sized)


ids = st.binary(min_size=32, max_size=32).map(bytes.hex)
outpoints = st.builds(Outpoint, ids, st.integers(0, 2**32 - 1))
witnesses = st.lists(bytes_of(0, 1, 33, 72, 252, 253, 70_000), max_size=4).map(tuple)
script_sigs = bytes_of(0, 1, 23, 107, 252, 253, 300)
txins = st.builds(TxIn, outpoints, script_sigs, st.integers(0, 2**32 - 1), witnesses)
digests = st.sampled_from([b"\x00" * 20, b"\xab" * 20, b"\x88\xac" * 10])
scripts = st.one_of(
    digests.map(lambda digest: b"\x00\x14" + digest),
    digests.map(lambda digest: b"\xa9\x14" + digest + b"\x87"),
    digests.map(lambda digest: b"\x76\xa9\x14" + digest + b"\x88\xac"),
    digests.map(lambda digest: b"\x00\x20" + digest + bytes(12)),
    digests.map(lambda digest: b"\x51\x20" + digest + bytes(12)),
    bytes_of(0, 22, 23, 25, 34, 252, 253, 70_000),
    # Nearly ours, of our lengths: each other in one byte.
    digests.map(lambda digest: b"\x51\x14" + digest),
    digests.map(lambda digest: b"\x00\x13" + digest),
    digests.map(lambda digest: b"\xa9\x13" + digest + b"\x87"),
    digests.map(lambda digest: b"\x76\xaa\x14" + digest + b"\x88\xac"),
    digests.map(lambda digest: b"\x52\x20" + digest + bytes(12)),
    digests.map(lambda digest: b"\x51\x21" + digest + bytes(12)),
)
amounts = st.sampled_from([0, 1, 546, 2**40, 21 * 10**14, 2**64 - 1])
txouts = st.builds(TxOut, amounts, scripts)
txs = st.builds(
    Tx,
    st.sampled_from([0, 1, 2, 2**32 - 1]),
    st.lists(txins, min_size=1, max_size=4).map(tuple),
    st.lists(txouts, min_size=1, max_size=5).map(tuple),
    st.integers(0, 2**32 - 1),
)


@pytest.mark.slow
@given(st.lists(txs, min_size=1, max_size=4), st.booleans())
@settings(max_examples=150)
def test_any_block_is_read_as_by_objects(some, has_coinbase):
    require_the_same_by_objects(block_of([coinbase(), *some] if has_coinbase else some))


@pytest.mark.parametrize("count", [1, 252, 253, 300])
def test_parts_are_counted_across_the_lengths_of_a_count(count):
    items = [(b"",) * count] + [()] * (count - 1)
    inputs = tuple(
        TxIn(Outpoint(f"{n:064x}", n), b"", 0, witness)
        for n, witness in enumerate(items)
    )
    several = Tx(2, inputs, (TxOut(1, P2WPKH),) * count, 0)
    others = [payment(n, TxOut(2, P2WPKH)) for n in range(count - 1)]
    parts = require_the_same_by_objects(block_of([*others, several]))
    assert len(parts.outputs_by_script[P2WPKH]) == 2 * count - 1


# Where Python's account of its memory is slower than the reading, less would say as much.
ACCOUNTED = {name: make for name, make in WORST.items() if "items" not in name}


@pytest.mark.slow
@pytest.mark.parametrize("make", ACCOUNTED.values(), ids=ACCOUNTED)
def test_the_worst_block_takes_no_more_room_than_its_payments(make):
    raw = make()
    tracemalloc.start()
    parts = scan_block(raw)
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert len(parts.txids) >= 2
    assert peak < 16_000_000


SMALL = block_of([coinbase(), payment(1, witness=(b"\x30" * 71, b"")), payment(2)])


def test_a_block_that_ends_at_any_byte_before_its_last_is_refused():
    for size in range(len(SMALL)):
        with pytest.raises(DecodeError):
            scan_block(SMALL[:size])


@pytest.mark.parametrize("more", [b"\x00", b"\x01", bytes(10), SMALL])
def test_bytes_behind_the_last_transaction_are_refused(more):
    with pytest.raises(DecodeError, match="the transactions end at byte"):
        scan_block(SMALL + more)


def longer(count, size):
    """A count of one byte in a form of `size` more."""
    return {2: b"\xfd", 4: b"\xfe", 8: b"\xff"}[size] + count.to_bytes(size, "little")


TX = payment(2)
PARTS: dict[str, Callable[[Callable[[int], bytes]], bytes]] = {
    "the transactions": lambda n: n(1) + TX.raw,
    "the inputs": lambda n: b"\x01" + TX.raw[:4] + n(1) + TX.raw[5:],
    "an input's script": lambda n: b"\x01" + TX.raw[:41] + n(0) + TX.raw[42:],
    "the outputs": lambda n: b"\x01" + TX.raw[:46] + n(1) + TX.raw[47:],
    "an output's script": lambda n: b"\x01" + TX.raw[:55] + n(22) + TX.raw[56:],
    "the witness": lambda n: witnessed(n(1) + b"\x00"),
    "an item of the witness": lambda n: witnessed(b"\x01" + n(3) + b"abc"),
}


def witnessed(witness):
    return b"\x01" + TX.raw[:4] + b"\x00\x01" + TX.raw[4:-4] + witness + TX.raw[-4:]


@pytest.mark.parametrize("size", [2, 4, 8])
@pytest.mark.parametrize("part", PARTS.values(), ids=PARTS)
def test_a_length_that_is_not_in_its_shortest_form_is_refused(part, size):
    header = SMALL[:80]
    assert len(scan_block(header + part(ser_compact_size)).txids) == 1
    with pytest.raises(DecodeError, match="shortest form"):
        scan_block(header + part(lambda number: longer(number, size)))


@pytest.mark.parametrize("length", [2**16, 2**31, 2**32, 2**63, 2**64 - 1])
@pytest.mark.parametrize("part", PARTS.values(), ids=PARTS)
def test_a_length_beyond_the_block_is_refused(part, length):
    with pytest.raises(DecodeError):
        scan_block(SMALL[:80] + part(lambda _: ser_compact_size(length)))


NOT_READ = {
    "no transaction": (b"\x00", "no transactions"),
    "a header alone": (b"", "too early"),
    "nothing in it, as Core reads it": (
        b"\x01" + ser_uint32(1) + bytes(2) + ser_uint32(0), "no inputs"),
    "no inputs, two outputs": (
        b"\x01" + ser_uint32(1) + b"\x00\x02" + TxOut(1, b"").raw * 2 + ser_uint32(0), "no inputs"),
    "a witness announced, and no inputs": (
        b"\x01" + ser_uint32(1) + b"\x00\x01\x00" + TX.raw[46:], "no inputs"),
    "an unknown flag": (b"\x01" + TX.raw[:4] + b"\x00\x02" + TX.raw[4:], "no inputs"),
    "a witness and an unknown flag": (
        b"\x01" + TX.raw[:4] + b"\x00\x03" + TX.raw[4:-4] + b"\x01\x00" + TX.raw[-4:], "no inputs"),
    "no outputs": (b"\x01" + TX.raw[:46] + b"\x00" + ser_uint32(0), "no outputs"),
    "a witness announced without any": (witnessed(b"\x00"), "there is none"),
}  # fmt: skip


@pytest.mark.parametrize("name", NOT_READ)
def test_what_bitcoin_core_does_not_read_is_refused(name):
    body, reason = NOT_READ[name]
    with pytest.raises(DecodeError, match=reason):
        scan_block(SMALL[:80] + body)


def test_a_block_has_at_most_four_million_bytes():
    room = MAX_BLOCK_BYTES - len(
        block_of_raw([payment(1, TxOut(1, b"\x6a" * 2**16)).raw])
    )
    largest, larger = (
        block_of_raw([payment(1, TxOut(1, b"\x6a" * (2**16 + room + more))).raw])
        for more in (0, 1)
    )
    assert len(largest) == MAX_BLOCK_BYTES
    scan_block(largest)
    with pytest.raises(DecodeError, match="at most 4000000 bytes"):
        scan_block(larger)


def test_the_empty_outpoint_of_any_other_transaction_stays():
    """So that who proves the block can refuse it."""
    twice = scan_block(block_of([coinbase(), coinbase(script_sig=b"\x01\x01")]))
    beside = TxIn(Outpoint("ab" * 32, 0), b"", 0)
    odd = Tx(2, (*coinbase().inputs, beside), (TxOut(1, b""),), 0)
    assert twice.spent_outpoints == {bytes(32) + b"\xff" * 4}
    assert twice.spent_outpoints <= scan_block(block_of([odd])).spent_outpoints
