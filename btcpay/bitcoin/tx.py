"""Transactions: their fields, parsing and serialization (BIP144)."""

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
# The null outpoint: the input of a coinbase has it, since it spends no output.
NULL_TXID = "00" * 32
NULL_VOUT = 0xFFFFFFFF
OP_1 = 0x51
OP_16 = 0x60
MAX_HEIGHT_BYTES = 5  # of the height in a coinbase; the next 40,000 years need only 4


class Outpoint(NamedTuple):
    """A reference to an output of a transaction. `txid` is in reversed hex."""

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

    @property
    def raw(self) -> bytes:
        """The serialized input, without its witness.

        BIP144 puts the witnesses after all outputs.
        """
        script_sig = ser_string(self.script_sig)
        return self.outpoint.raw + script_sig + ser_uint32(self.sequence)

    @property
    def raw_witness(self) -> bytes:
        items = [ser_string(item) for item in self.witness]
        return ser_compact_size(len(items)) + b"".join(items)


class TxOut(NamedTuple):
    value_sats: int
    script: bytes

    @property
    def raw(self) -> bytes:
        return self.value_sats.to_bytes(8, "little") + ser_string(self.script)


@dataclass(frozen=True)
class Tx:
    """A transaction. Its txid and its serializations are computed from its fields."""

    version: int
    inputs: tuple[TxIn, ...]
    outputs: tuple[TxOut, ...]
    locktime: int

    @cached_property
    def _inputs_and_outputs(self) -> bytes:
        parts = [ser_compact_size(len(self.inputs))]
        parts += [tx_in.raw for tx_in in self.inputs]
        parts.append(ser_compact_size(len(self.outputs)))
        parts += [output.raw for output in self.outputs]
        return b"".join(parts)

    @cached_property
    def without_witness(self) -> bytes:
        """The serialization without witness. Its hash is the txid."""
        version = ser_uint32(self.version)
        return version + self._inputs_and_outputs + ser_uint32(self.locktime)

    @cached_property
    def raw(self) -> bytes:
        """The serialization that nodes send, with witnesses if it has any (BIP144)."""
        if not any(tx_in.witness for tx_in in self.inputs):
            return self.without_witness
        parts = [ser_uint32(self.version), SEGWIT_MARKER, self._inputs_and_outputs]
        parts += [tx_in.raw_witness for tx_in in self.inputs]
        parts.append(ser_uint32(self.locktime))
        return b"".join(parts)

    @cached_property
    def txid(self) -> str:
        return hash_to_hex(hash256(self.without_witness))

    @property
    def is_coinbase(self) -> bool:
        if len(self.inputs) != 1:
            return False
        return self.inputs[0].outpoint == (NULL_TXID, NULL_VOUT)

    @property
    def weight(self) -> int:
        """The weight in weight units (BIP141)."""
        return 3 * len(self.without_witness) + len(self.raw)

    @property
    def vsize(self) -> int:
        """The virtual size in bytes: a quarter of the weight, rounded up (BIP141)."""
        return -(-self.weight // 4)


def coinbase_height(script_sig: bytes) -> int | None:
    """Returns the block height that starts the script of a coinbase input (BIP34).

    Returns None if the script does not start with a number. From block 227,931 on,
    every mainnet block has its height there.
    """
    if not script_sig:
        return None
    opcode = script_sig[0]
    if OP_1 <= opcode <= OP_16:
        return opcode - OP_1 + 1
    size = opcode  # an opcode from 1 to 75 pushes so many bytes
    number = script_sig[1 : 1 + size]
    if not 1 <= size <= MAX_HEIGHT_BYTES or len(number) != size:
        return None
    is_negative = number[-1] & 0x80
    if is_negative:
        return None
    return int.from_bytes(number, "little")


def parse_tx(raw: bytes) -> Tx:
    """Parses a serialized transaction.

    Raises DecodeError if the bytes are invalid, or if bytes follow the transaction.
    """
    reader = ByteReader(raw)
    tx = read_tx(reader)
    reader.finish()
    return tx


def read_tx(reader: ByteReader) -> Tx:
    """Reads the next transaction from the reader.

    Raises DecodeError if the bytes are invalid.
    """
    version = reader.read_uint(4)
    has_witness = reader.starts_with(SEGWIT_MARKER)
    if has_witness:
        reader.read_bytes(len(SEGWIT_MARKER))
    inputs = [_read_input(reader) for _ in range(reader.read_compact_size())]
    outputs = [_read_output(reader) for _ in range(reader.read_compact_size())]
    if has_witness:
        witnesses = [_read_witness(reader) for _ in inputs]
        if not any(witnesses):
            raise DecodeError("a witness is announced, but there is none")
        inputs = [
            tx_in._replace(witness=witness)
            for tx_in, witness in zip(inputs, witnesses, strict=True)
        ]
    locktime = reader.read_uint(4)
    return Tx(version, tuple(inputs), tuple(outputs), locktime)


def _read_input(reader: ByteReader) -> TxIn:
    txid = hash_to_hex(reader.read_bytes(32))
    vout = reader.read_uint(4)
    script_sig = reader.read_string()
    sequence = reader.read_uint(4)
    return TxIn(Outpoint(txid, vout), script_sig, sequence)


def _read_output(reader: ByteReader) -> TxOut:
    value_sats = reader.read_uint(8)
    return TxOut(value_sats, reader.read_string())


def _read_witness(reader: ByteReader) -> tuple[bytes, ...]:
    count = reader.read_compact_size()
    return tuple(reader.read_string() for _ in range(count))
