"""The choice of coins that the payer's wallet spends, and the signed transaction."""

from collections.abc import Iterable, Sequence
from dataclasses import replace
from typing import NamedTuple

from btcpay.bitcoin.tx import Outpoint, Tx, TxIn, TxOut
from btcpay.bitcoin.wire import hash256, prefixed, u32
from btcpay.sandbox.errors import BadRequest
from btcpay.sandbox.payer.key import Key

RBF_SEQUENCE = 0xFFFFFFFD  # opts in to replacement (BIP125)
SIGHASH_ALL = 1


class Spendable(NamedTuple):
    """A coin of the wallet; `waiting` when its transaction is not yet in a block."""

    outpoint: Outpoint
    value_sats: int
    waiting: bool


def choose(coins: Iterable[Spendable], needed_sats: int) -> list[Spendable]:
    """The first coins that suffice. Raises BadRequest when all of them do not."""
    chosen: list[Spendable] = []
    for coin in coins:
        chosen.append(coin)
        if total(chosen) >= needed_sats:
            return chosen
    has = f"has {total(chosen)} sat to spend, not {needed_sats}"
    raise BadRequest(f"the sandbox wallet {has}; mine some blocks")


def total(coins: Iterable[Spendable]) -> int:
    return sum(coin.value_sats for coin in coins)


def sign(key: Key, coins: Sequence[Spendable], outputs: Sequence[TxOut]) -> bytes:
    """The signed transaction, raw."""
    inputs = [TxIn(c.outpoint, prefixed(key.program_script), RBF_SEQUENCE) for c in coins]
    unsigned = Tx(2, tuple(inputs), tuple(outputs), 0)
    for index, coin in enumerate(coins):
        preimage = witness_preimage(unsigned, index, key.script_code, coin.value_sats)
        witness = (key.sign(preimage) + bytes([SIGHASH_ALL]), key.public_key)
        inputs[index] = inputs[index]._replace(witness=witness)
    return replace(unsigned, inputs=tuple(inputs)).raw


def witness_preimage(tx: Tx, index: int, script_code: bytes, value_sats: int) -> bytes:
    """The bytes that are signed for input `index`, whose coin has `value_sats` (BIP143)."""
    spent = tx.inputs[index]
    outpoints = hash256(b"".join(i.outpoint.raw for i in tx.inputs))
    sequences = hash256(b"".join(u32(i.sequence) for i in tx.inputs))
    own = spent.outpoint.raw + prefixed(script_code) + value_sats.to_bytes(8, "little")
    outputs = hash256(b"".join(output.raw for output in tx.outputs))
    parts = (outpoints, sequences, own, u32(spent.sequence), outputs)
    return u32(tx.version) + b"".join(parts) + u32(tx.locktime) + u32(SIGHASH_ALL)
