"""What a proof needs of a transaction, read in passing: no object for each of its parts.

A block has room for a hundred thousand of them, and an explorer may show more.
"""

from collections.abc import Mapping
from dataclasses import dataclass

from btcpay.bitcoin.tx import NO_TXID, NO_VOUT, SEGWIT_MARKER
from btcpay.bitcoin.wire import Malformed, Reader, hash256, shown, u32, unshown

_NO_OUTPOINT = unshown(NO_TXID) + u32(NO_VOUT)
# BIP141: a byte outside the witness weighs four, and a block four million. So many inputs of 41
# bytes and outputs of 9 fit, and a witness of so many items would be one for 3 at each input.
MAX_STRIPPED_BYTES = 1_000_000
MAX_INPUTS, MAX_OUTPUTS, MAX_WITNESS_ITEMS = 24_390, 111_111, 75_000


@dataclass(frozen=True)
class Outline:
    """A transaction serialised without witness, which is what its id commits to, and in short.

    `first_script_sig` is that of its first input; `amounts_sats` by output index, to one script.
    """

    stripped: bytes
    is_coinbase: bool
    first_script_sig: bytes
    amounts_sats: Mapping[int, int]

    @property
    def txid(self) -> str:
        return shown(hash256(self.stripped))


def outline(raw: bytes, script: bytes | None = None) -> Outline:
    """Reads a transaction with or without witness, and what it pays to `script`.

    Raises Malformed, as `parse_tx` does, and for one that no block has room for.
    """
    reader = Reader(raw)
    reader.skip(4)
    has_witness = reader.starts_with(SEGWIT_MARKER)
    reader.skip(len(SEGWIT_MARKER) if has_witness else 0)
    start, inputs = reader.at, _at_most(MAX_INPUTS, reader.compact())
    first_outpoint, first_script_sig = b"", b""
    for number in range(inputs):
        outpoint, script_sig = reader.take(36), reader.prefixed()
        reader.skip(4)
        if number == 0:
            first_outpoint, first_script_sig = outpoint, script_sig
    amounts_sats = _paid(reader, script)
    end = reader.at
    if has_witness:
        _skip_witness(reader, inputs)
    locktime = reader.take(4)
    reader.finish()
    stripped = raw[:4] + raw[start:end] + locktime
    _at_most(MAX_STRIPPED_BYTES, len(stripped))
    is_coinbase = inputs == 1 and first_outpoint == _NO_OUTPOINT
    return Outline(stripped, is_coinbase, first_script_sig, amounts_sats)


def _paid(reader: Reader, script: bytes | None) -> dict[int, int]:
    amounts_sats: dict[int, int] = {}
    for vout in range(_at_most(MAX_OUTPUTS, reader.compact())):
        value_sats, to = reader.number(8), reader.prefixed()
        if to == script:
            amounts_sats[vout] = value_sats
    return amounts_sats


def _skip_witness(reader: Reader, inputs: int) -> None:
    items = 0
    for _ in range(inputs):
        count = reader.compact()
        items = _at_most(MAX_WITNESS_ITEMS, items + count)
        for _ in range(count):
            reader.skip(reader.compact())
    if not items:
        raise Malformed("a witness is announced, but there is none")


def _at_most(most: int, count: int) -> int:
    if count > most:
        raise Malformed("no block has room for it")
    return count
