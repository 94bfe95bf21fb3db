"""Parses a raw block in one pass: txids, outputs by script, and spent outpoints.

It creates no object for each input or output, since a block may have a million of them.
The loops do not check how many bytes remain. If the block is truncated, reading a byte
beyond its end raises IndexError. Slices raise nothing there, so the position after the
last transaction is compared with the block's length at the end.
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

# BIP141: the maximum weight of a block is 4 million, and each byte weighs at least 1.
MAX_BLOCK_BYTES = 4_000_000
NULL_OUTPOINT = hash_from_hex(NULL_TXID) + ser_uint32(NULL_VOUT)

# The length and the first two bytes of P2WPKH, P2WSH, P2TR, P2SH and P2PKH scripts.
_SCRIPT_STARTS = {
    bytes.fromhex(start) for start in ("160014", "220020", "225120", "17a914", "1976a9")
}
_COMPACT_SIZE_BYTES = {0xFD: 2, 0xFE: 4, 0xFF: 8}
_read_sats = Struct("<Q").unpack_from
_OutputsByScript = dict[bytes, list[tuple[int, int, int]]]


@dataclass(frozen=True)
class BlockContents:
    """A parsed block. The parser verifies no hash, no Merkle root and no work.

    `outputs_by_script`: for each scriptPubKey, a list of (position of the transaction
    in the block, vout, satoshis), in the order of the block. It contains only outputs
    above 0 satoshis whose script has the length and the first bytes of P2WPKH, P2WSH,
    P2TR, P2SH or P2PKH.
    `spent_outpoints`: 36 bytes each, the txid in internal byte order and the
    little-endian vout. The null outpoint of the coinbase at position 0 is not included.
    `raw`: the serialized block.
    `starts`: the index in `raw` of each transaction's first byte, and at the end the
    length of `raw`.
    `witnesses`: the index in `raw` of each transaction's witness, 0 if it has no
    witness.
    """

    header: bytes
    outputs_by_script: Mapping[bytes, Sequence[tuple[int, int, int]]]
    spent_outpoints: Set[bytes]
    raw: bytes
    starts: Sequence[int]
    witnesses: Sequence[int]

    def tx_without_witness(self, position: int) -> bytes:
        """Returns the transaction's serialization without witness, whose hash is the txid.

        `position` is the transaction's index in the block; 0 is the coinbase.
        """
        start = self.starts[position]
        end = self.starts[position + 1]
        witness_start = self.witnesses[position]
        raw = self.raw
        if not witness_start:
            return raw[start:end]
        version = raw[start : start + 4]
        # The version is followed by the segwit marker, which has two bytes.
        inputs_and_outputs = raw[start + 6 : witness_start]
        locktime = raw[end - 4 : end]
        return version + inputs_and_outputs + locktime

    @cached_property
    def txids(self) -> Sequence[bytes]:
        """The txids in the order of the block, in internal byte order."""
        positions = range(len(self.witnesses))
        return [hash256(self.tx_without_witness(position)) for position in positions]


def scan_block(raw: bytes) -> BlockContents:
    """Parses a block of at most 4 MB, with or without witnesses.

    Raises DecodeError in the cases that Bitcoin Core also rejects:

    - a CompactSize that is not in its shortest form,
    - a witness flag with only empty witnesses,
    - a transaction without inputs or outputs,
    - a block without transactions,
    - missing or surplus bytes.
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
    """Parses the block.

    Raises DecodeError if it is invalid. If it is truncated, may raise IndexError
    instead.
    """
    starts: list[int] = []
    witnesses: list[int] = []
    outputs: _OutputsByScript = {}
    spent: set[bytes] = set()
    # `at` is always the index of the next byte to read.
    tx_count, at = _read_count(raw, HEADER_BYTES, "transactions")
    for position in range(tx_count):
        starts.append(at)
        at += 4  # the version
        # Every transaction has inputs. So a count of 0 is the segwit marker (BIP144).
        has_witness = raw[at] == 0
        if has_witness:
            if raw[at : at + 2] != SEGWIT_MARKER:
                raise DecodeError("a transaction has no inputs")
            at += 2
        input_count, at = _read_count(raw, at, "inputs")
        at = _scan_inputs(raw, at, input_count, spent)
        if position == 0 and input_count == 1:
            spent.discard(NULL_OUTPOINT)  # a coinbase spends no output
        at = _scan_outputs(raw, at, position, outputs)
        if has_witness:
            witnesses.append(at)
            at = _skip_witness(raw, at, input_count)
        else:
            witnesses.append(0)
        at += 4  # the locktime
    starts.append(at)
    if at != len(raw):
        raise DecodeError(f"the transactions end at byte {at}, the block at {len(raw)}")
    return BlockContents(raw[:HEADER_BYTES], outputs, spent, raw, starts, witnesses)


def _scan_inputs(raw: bytes, at: int, count: int, spent: set[bytes]) -> int:
    """Adds the spent outpoints to `spent`, and returns the index after the inputs.

    An input consists of an outpoint (36 bytes), the length of its script, the script,
    and the sequence number (4 bytes).
    """
    for _ in range(count):
        spent.add(raw[at : at + 36])
        size = raw[at + 36]
        if size < 0xFD:
            at += size + 41  # with outpoint, length and sequence: 36 + 1 + 4
        else:
            size, at = _read_compact_size(raw, at + 36)
            at += size + 4
    return at


def _scan_outputs(raw: bytes, at: int, position: int, outputs: _OutputsByScript) -> int:
    """Adds the outputs to `outputs`, and returns the index after them.

    An output consists of its value (8 bytes), the length of its script, and the script.
    """
    count, at = _read_count(raw, at, "outputs")
    for vout in range(count):
        size = raw[at + 8]
        start = at + 9
        # The cheap comparison of the length comes first.
        if 21 < size < 35 and raw[at + 8 : at + 11] in _SCRIPT_STARTS:
            (sats,) = _read_sats(raw, at)
            if sats:
                script = raw[start : start + size]
                if script in outputs:
                    outputs[script].append((position, vout, sats))
                else:
                    outputs[script] = [(position, vout, sats)]
        elif size >= 0xFD:
            size, start = _read_compact_size(raw, at + 8)
        at = start + size
    return at


def _skip_witness(raw: bytes, at: int, input_count: int) -> int:
    """Returns the index after the witnesses of all inputs of a transaction.

    Raises DecodeError if all these witnesses are empty.
    """
    total_items = 0
    for _ in range(input_count):
        item_count = raw[at]
        if item_count < 0xFD:
            at += 1
        else:
            item_count, at = _read_compact_size(raw, at)
        total_items += item_count
        for _ in range(item_count):
            size = raw[at]
            if size < 0xFD:
                at += size + 1
            else:
                size, at = _read_compact_size(raw, at)
                at += size
    if not total_items:
        raise DecodeError("a witness is announced, but there is none")
    return at


def _read_count(raw: bytes, at: int, name: str) -> tuple[int, int]:
    """Returns the CompactSize at `at`, and the index after it.

    Raises DecodeError if the number is 0, or not in its shortest form.
    """
    number = raw[at]
    if number == 0:
        raise DecodeError(f"there are no {name}")
    if number < 0xFD:
        return number, at + 1
    return _read_compact_size(raw, at)


def _read_compact_size(raw: bytes, at: int) -> tuple[int, int]:
    """Returns the CompactSize at `at`, and the index after it.

    Raises DecodeError if it is not in its shortest form.
    """
    first = raw[at]
    if first < 0xFD:
        return first, at + 1
    start = at + 1
    end = start + _COMPACT_SIZE_BYTES[first]
    number = int.from_bytes(raw[start:end], "little")
    if len(ser_compact_size(number)) != end - at:
        raise DecodeError("a length is not in its shortest form")
    return number, end
