"""Signs transactions with P2WPKH inputs of one key (BIP143)."""

import dataclasses
from collections.abc import Sequence

from btcpay.bitcoin.tx import Tx, TxIn, TxOut
from btcpay.bitcoin.wire import hash256, ser_string, ser_uint32
from btcpay.sandbox.payer.coins import Spendable
from btcpay.sandbox.payer.key import Key

TX_VERSION = 2
RBF_SEQUENCE = 0xFFFFFFFD  # opts in to replacement (BIP125)
SIGHASH_ALL = 1


def sign(key: Key, coins: Sequence[Spendable], outputs: Sequence[TxOut]) -> bytes:
    """Returns the raw transaction that spends `coins` to `outputs`, signed with `key`."""
    inputs = tuple(TxIn(coin.outpoint, b"", RBF_SEQUENCE) for coin in coins)
    unsigned = Tx(TX_VERSION, inputs, tuple(outputs), 0)
    signed = []
    for index, coin in enumerate(coins):
        preimage = witness_preimage(unsigned, index, key.script_code, coin.value_sats)
        signature = key.sign(preimage) + bytes([SIGHASH_ALL])
        witness = (signature, key.public_key)
        signed.append(inputs[index]._replace(witness=witness))
    return dataclasses.replace(unsigned, inputs=tuple(signed)).raw


def witness_preimage(tx: Tx, index: int, script_code: bytes, value_sats: int) -> bytes:
    """Returns the bytes to sign for input `index` (BIP143).

    `value_sats` is the value of the coin that the input spends.
    """
    own_input = tx.inputs[index]
    outpoints = b"".join(txin.outpoint.raw for txin in tx.inputs)
    sequences = b"".join(ser_uint32(txin.sequence) for txin in tx.inputs)
    outputs = b"".join(output.raw for output in tx.outputs)
    parts = (
        ser_uint32(tx.version),
        hash256(outpoints),
        hash256(sequences),
        own_input.outpoint.raw,
        ser_string(script_code),
        value_sats.to_bytes(8, "little"),
        ser_uint32(own_input.sequence),
        hash256(outputs),
        ser_uint32(tx.locktime),
        ser_uint32(SIGHASH_ALL),
    )
    return b"".join(parts)
