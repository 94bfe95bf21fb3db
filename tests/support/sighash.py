"""What a signature with SIGHASH_ALL signs: the original digest and that of BIP143."""

from btcpay.bitcoin.tx import Tx
from btcpay.bitcoin.wire import compact_size, hash256, prefixed, u32

SIGHASH_ALL = 1


def legacy_sighash(tx: Tx, index: int, script_code: bytes) -> bytes:
    """The digest for input `index` of a script without witness."""
    inputs = b"".join(
        i.outpoint.raw + prefixed(script_code if n == index else b"") + u32(i.sequence)
        for n, i in enumerate(tx.inputs)
    )
    counted_inputs = compact_size(len(tx.inputs)) + inputs
    counted_outputs = compact_size(len(tx.outputs)) + b"".join(o.raw for o in tx.outputs)
    return hash256(
        u32(tx.version) + counted_inputs + counted_outputs + u32(tx.locktime) + u32(SIGHASH_ALL)
    )


def witness_sighash(tx: Tx, index: int, script_code: bytes, value_sats: int) -> bytes:
    """The digest for input `index` of a version 0 witness program (BIP143)."""
    spent = tx.inputs[index]
    outpoints = hash256(b"".join(i.outpoint.raw for i in tx.inputs))
    sequences = hash256(b"".join(u32(i.sequence) for i in tx.inputs))
    own = spent.outpoint.raw + prefixed(script_code) + value_sats.to_bytes(8, "little")
    outputs = hash256(b"".join(output.raw for output in tx.outputs))
    return hash256(
        u32(tx.version)
        + outpoints
        + sequences
        + own
        + u32(spent.sequence)
        + outputs
        + u32(tx.locktime)
        + u32(SIGHASH_ALL)
    )
