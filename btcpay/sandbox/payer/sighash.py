"""What a signature over an input of a witness program commits to (BIP143), with SIGHASH_ALL."""

from btcpay.bitcoin.tx import Tx
from btcpay.bitcoin.wire import hash256, prefixed, u32

SIGHASH_ALL = 1


def witness_preimage(tx: Tx, index: int, script_code: bytes, value_sats: int) -> bytes:
    """What is hashed twice and signed for input `index`, whose coin has `value_sats`.

    `script_code`: for a key's program the p2pkh script of its hash.
    """
    spent = tx.inputs[index]
    outpoints = hash256(b"".join(i.outpoint.raw for i in tx.inputs))
    sequences = hash256(b"".join(u32(i.sequence) for i in tx.inputs))
    own = spent.outpoint.raw + prefixed(script_code) + value_sats.to_bytes(8, "little")
    outputs = hash256(b"".join(output.raw for output in tx.outputs))
    parts = (outpoints, sequences, own, u32(spent.sequence), outputs)
    return u32(tx.version) + b"".join(parts) + u32(tx.locktime) + u32(SIGHASH_ALL)
