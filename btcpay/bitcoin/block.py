"""A whole block's bytes, read in one pass: its ids, the scripts it pays, the coins it spends.

No object for each part of a transaction: the worst block has four million of them. The loops read
forward without checking the length: an index beyond the bytes raises, and after an overrun slice
the end is not the block's.
"""

from collections.abc import Mapping, Sequence, Set
from dataclasses import dataclass
from functools import cached_property
from struct import Struct

from btcpay.bitcoin.header import HEADER_BYTES
from btcpay.bitcoin.tx import NULL_TXID, NULL_VOUT, SEGWIT_MARKER
from btcpay.bitcoin.wire import (
    DecodeError,
    hash256,
    hash_from_hex,
    ser_compact_size,
    ser_uint32,
)

MAX_BLOCK_BYTES = (
    4_000_000  # BIP141: a byte weighs at least 1, a block at most 4 million
)
NULL_OUTPOINT = hash_from_hex(NULL_TXID) + ser_uint32(
    NULL_VOUT
)  # the outpoint in a coinbase

# The length and the first two bytes of p2wpkh, p2wsh, p2tr, p2sh and p2pkh.
_SCRIPT_PREFIXES = {
    bytes.fromhex(head) for head in ("160014", "220020", "225120", "17a914", "1976a9")
}
_satoshis_at = Struct("<Q").unpack_from
_Paid = dict[bytes, list[tuple[int, int, int]]]


@dataclass(frozen=True)
class BlockContents:
    """A block as its bytes have it; nothing of it is proven.

    `outputs_by_script`: script -> (position, vout, satoshis) in the block's order. Only outputs of
    more than 0 are listed, to scripts with the length and first bytes of p2wpkh, p2wsh, p2tr, p2sh
    or p2pkh.
    `spent_outpoints`: 36 bytes each, internal txid and little-endian vout, without the null
    outpoint of the coinbase at position 0.
    `raw`: the block. `starts`: the index of each transaction's first byte, and the block's end.
    `witnesses`: the index of each transaction's witness, 0 for none.
    """

    header: bytes
    outputs_by_script: Mapping[bytes, Sequence[tuple[int, int, int]]]
    spent_outpoints: Set[bytes]
    raw: bytes
    starts: Sequence[int]
    witnesses: Sequence[int]

    def tx_without_witness(self, position: int) -> bytes:
        """The transaction at `position` (0 the coinbase) without witness, as its id commits to."""
        start = self.starts[position]
        end = self.starts[position + 1]
        witness = self.witnesses[position]
        raw = self.raw
        if not witness:
            return raw[start:end]
        return raw[start : start + 4] + raw[start + 6 : witness] + raw[end - 4 : end]

    @cached_property
    def txids(self) -> Sequence[bytes]:
        """The ids by position, in internal byte order."""
        return [
            hash256(self.tx_without_witness(position))
            for position in range(len(self.witnesses))
        ]


def scan_block(raw: bytes) -> BlockContents:
    """Reads a block of at most 4 MB, its transactions with or without witness. Raises DecodeError.

    Refused as by Bitcoin Core: lengths not in their shortest form, a witness announced where there
    is none, transactions without inputs or outputs, bytes missing or too many, no transaction.
    """
    if len(raw) > MAX_BLOCK_BYTES:
        raise DecodeError(
            f"a block has at most {MAX_BLOCK_BYTES} bytes, not {len(raw)}"
        )
    try:
        return _scan(raw)
    except IndexError:
        raise DecodeError("the block ends too early") from None


def _scan(raw: bytes) -> BlockContents:
    """Raises IndexError where the bytes end too early."""
    starts: list[int] = []
    witnesses: list[int] = []
    paid: _Paid = {}
    spent: set[bytes] = set()
    total, at = _some(raw, HEADER_BYTES, "transactions")
    for position in range(total):
        starts.append(at)
        has_witness = (
            raw[at + 4] == 0
        )  # no inputs, so flags follow, of which only 1 is known
        if has_witness and raw[at + 4 : at + 6] != SEGWIT_MARKER:
            raise DecodeError("a transaction has no inputs")
        inputs, at = _some(raw, at + 6 if has_witness else at + 4, "inputs")
        at = _scan_inputs(raw, at, inputs, spent)
        if position == 0 and inputs == 1:
            spent.discard(NULL_OUTPOINT)
        at = _scan_outputs(raw, at, position, paid)
        witnesses.append(at if has_witness else 0)
        if has_witness:
            at = _skip_witness(raw, at, inputs)
        at += 4  # the locktime
    starts.append(at)
    if at != len(raw):
        raise DecodeError(f"the transactions end at byte {at}, the block at {len(raw)}")
    return BlockContents(raw[:HEADER_BYTES], paid, spent, raw, starts, witnesses)


def _scan_inputs(raw: bytes, at: int, count: int, spent: set[bytes]) -> int:
    """The index behind the inputs."""
    for _ in range(count):
        spent.add(raw[at : at + 36])
        size = raw[at + 36]
        if size < 0xFD:
            at += size + 41
        else:
            size, at = _compact(raw, at + 36)
            at += size + 4
    return at


def _scan_outputs(raw: bytes, at: int, position: int, paid: _Paid) -> int:
    """The index behind the outputs."""
    count, at = _some(raw, at, "outputs")
    for vout in range(count):
        size = raw[at + 8]
        end = at + 9
        if 21 < size < 35 and raw[at + 8 : at + 11] in _SCRIPT_PREFIXES:
            (sats,) = _satoshis_at(raw, at)
            if sats:
                script = raw[end : end + size]
                if script in paid:
                    paid[script].append((position, vout, sats))
                else:
                    paid[script] = [(position, vout, sats)]
        elif size >= 0xFD:
            size, end = _compact(raw, at + 8)
        at = end + size
    return at


def _skip_witness(raw: bytes, at: int, inputs: int) -> int:
    """The index behind the witness. Raises DecodeError when it has no items."""
    items = 0
    for _ in range(inputs):
        count = raw[at]
        at = at + 1
        if count >= 0xFD:
            count, at = _compact(raw, at - 1)
        items += count
        for _ in range(count):
            size = raw[at]
            if size < 0xFD:
                at += size + 1
            else:
                size, at = _compact(raw, at)
                at += size
    if not items:
        raise DecodeError("a witness is announced, but there is none")
    return at


def _some(raw: bytes, at: int, what: str) -> tuple[int, int]:
    """Like `_compact`, but raises DecodeError for 0."""
    number = raw[at]
    at = at + 1
    if number == 0:
        raise DecodeError(f"there are no {what}")
    if number < 0xFD:
        return (number, at)
    return _compact(raw, at - 1)


def _compact(raw: bytes, at: int) -> tuple[int, int]:
    """The compact size at `at`, and the index behind it. Raises DecodeError for a longer form."""
    first = raw[at]
    if first < 0xFD:
        return first, at + 1
    end = at + 1 + {0xFD: 2, 0xFE: 4, 0xFF: 8}[first]
    number = int.from_bytes(raw[at + 1 : end], "little")
    if len(ser_compact_size(number)) != end - at:
        raise DecodeError("a length is not in its shortest form")
    return number, end
