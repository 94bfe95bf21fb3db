"""Transactions: the values and their serialisation with and without witness (BIP144)."""

from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

from btcpay.bitcoin.wire import (
    ByteReader,
    DecodeError,
    hash256,
    hash_from_hex,
    hash_to_hex,
    ser_compact_size,
    ser_string,
    ser_uint32,
)

SEGWIT_MARKER = b"\x00\x01"
NULL_TXID = "00" * 32
NULL_VOUT = 0xFFFFFFFF


class Outpoint(NamedTuple):
    """One output of one transaction; `txid` in reversed hex."""

    txid: str
    vout: int

    @property
    def raw(self) -> bytes:
        return hash_from_hex(self.txid) + ser_uint32(self.vout)


class TxIn(NamedTuple):
    outpoint: Outpoint
    script_sig: bytes
    sequence: int
    witness: tuple[bytes, ...] = ()


class TxOut(NamedTuple):
    value_sats: int
    script: bytes

    @property
    def raw(self) -> bytes:
        return self.value_sats.to_bytes(8, "little") + ser_string(self.script)


@dataclass(frozen=True)
class Tx:
    """A transaction: everything else about it follows from these four fields."""

    version: int
    inputs: tuple[TxIn, ...]
    outputs: tuple[TxOut, ...]
    locktime: int

    @cached_property
    def _body(self) -> bytes:
        parts = [ser_compact_size(len(self.inputs))]
        parts += [
            i.outpoint.raw + ser_string(i.script_sig) + ser_uint32(i.sequence)
            for i in self.inputs
        ]
        parts.append(ser_compact_size(len(self.outputs)))
        parts += [output.raw for output in self.outputs]
        return b"".join(parts)

    @cached_property
    def without_witness(self) -> bytes:
        """Serialised without witness, as its txid commits to it."""
        return ser_uint32(self.version) + self._body + ser_uint32(self.locktime)

    @cached_property
    def raw(self) -> bytes:
        """Serialised as it travels (BIP144)."""
        if not any(i.witness for i in self.inputs):
            return self.without_witness
        witness = b"".join(
            ser_compact_size(len(i.witness)) + b"".join(map(ser_string, i.witness))
            for i in self.inputs
        )
        return (
            ser_uint32(self.version)
            + SEGWIT_MARKER
            + self._body
            + witness
            + ser_uint32(self.locktime)
        )

    @cached_property
    def txid(self) -> str:
        return hash_to_hex(hash256(self.without_witness))

    @property
    def is_coinbase(self) -> bool:
        return len(self.inputs) == 1 and self.inputs[0].outpoint == (
            NULL_TXID,
            NULL_VOUT,
        )

    @property
    def vsize(self) -> int:
        """Virtual bytes: a quarter of the weight units, rounded up (BIP141)."""
        return -(-(3 * len(self.without_witness) + len(self.raw)) // 4)


def coinbase_height(script_sig: bytes) -> int | None:
    """The height with which a coinbase's input begins (BIP34); None for an input without one.

    Every block on mainnet has one since height 227,931.
    """
    if not script_sig:
        return None
    opcode = script_sig[0]
    if 0x51 <= opcode <= 0x60:  # OP_1 to OP_16
        return opcode - 0x50
    number = script_sig[1 : 1 + opcode]
    if not 1 <= opcode <= 5 or len(number) != opcode or number[-1] & 0x80:
        return None
    return int.from_bytes(number, "little")


def parse_tx(raw: bytes) -> Tx:
    """The transaction in `raw`, which must hold nothing else. Raises DecodeError."""
    reader = ByteReader(raw)
    tx = read_tx(reader)
    reader.finish()
    return tx


def read_tx(reader: ByteReader) -> Tx:
    """The next transaction of a block. Raises DecodeError."""
    version = reader.read_uint(4)
    segwit = reader.starts_with(SEGWIT_MARKER)
    if segwit:
        reader.read(len(SEGWIT_MARKER))
    inputs = [_read_input(reader) for _ in range(reader.read_compact_size())]
    outputs = [
        TxOut(reader.read_uint(8), reader.read_string())
        for _ in range(reader.read_compact_size())
    ]
    if segwit:
        witnesses = [
            tuple(reader.read_string() for _ in range(reader.read_compact_size()))
            for _ in inputs
        ]
        if not any(witnesses):
            raise DecodeError("a witness is announced, but there is none")
        inputs = [
            i._replace(witness=own) for i, own in zip(inputs, witnesses, strict=True)
        ]
    return Tx(version, tuple(inputs), tuple(outputs), reader.read_uint(4))


def _read_input(reader: ByteReader) -> TxIn:
    outpoint = Outpoint(hash_to_hex(reader.read(32)), reader.read_uint(4))
    return TxIn(outpoint, reader.read_string(), reader.read_uint(4))
