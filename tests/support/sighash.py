"""What a signature with SIGHASH_ALL commits to in an input of a script without witness."""

from btcpay.bitcoin.tx import Tx
from btcpay.bitcoin.wire import compact_size, prefixed, u32
from btcpay.sandbox.payer.coins import SIGHASH_ALL


def legacy_preimage(tx: Tx, index: int, script_code: bytes) -> bytes:
    """What is hashed twice and signed for input `index`."""
    inputs = b"".join(
        i.outpoint.raw + prefixed(script_code if n == index else b"") + u32(i.sequence)
        for n, i in enumerate(tx.inputs)
    )
    counted_inputs = compact_size(len(tx.inputs)) + inputs
    counted_outputs = compact_size(len(tx.outputs)) + b"".join(o.raw for o in tx.outputs)
    return u32(tx.version) + counted_inputs + counted_outputs + u32(tx.locktime) + u32(SIGHASH_ALL)
