"""The effect of an announced transaction on the outputs to an invoice's address."""

from collections.abc import Sequence
from typing import NamedTuple

from btcpay.bitcoin.block import BlockContents
from btcpay.bitcoin.wire import hash_to_hex
from btcpay.chain.sources import MAX_INPUTS
from btcpay.check.facts import is_any_spent
from btcpay.settlement.values import SeenOutput
from btcpay.values.money import MAX_MONEY_SATS


class Effect(NamedTuple):
    """The effect of a new transaction on an invoice's earlier unconfirmed outputs.

    `remaining` are the outputs of earlier transactions that can still be mined.
    `lost_txids` are the earlier transactions that can no longer be mined.
    """

    remaining: list[SeenOutput]
    lost_txids: set[str]


def effect_on(waiting: Sequence[SeenOutput], tx: BlockContents) -> Effect:
    """Returns the effect of the transaction on the unconfirmed outputs `waiting`.

    An earlier transaction can no longer be mined if `tx` spends one of its inputs.
    """
    effect = Effect([], set())
    own_txid = hash_to_hex(tx.txids[0])
    for output in waiting:
        if output.txid == own_txid:
            continue
        if is_any_spent(output.inputs, tx.spent_outpoints):
            effect.lost_txids.add(output.txid)
        else:
            effect.remaining.append(output)
    return effect


def outputs_to(script: bytes, tx: BlockContents) -> list[SeenOutput]:
    """Returns the transaction's outputs that pay the script.

    Returns an empty list if their sum exceeds 21 million bitcoin.
    """
    paid = tx.outputs_by_script.get(script, ())
    sum_sats = sum(amount_sats for _, _, amount_sats in paid)
    if not paid or sum_sats > MAX_MONEY_SATS:
        return []
    inputs: tuple[str, ...] = ()
    if len(tx.spent_outpoints) <= MAX_INPUTS:
        inputs = tuple(map(_outpoint_text, sorted(tx.spent_outpoints)))
    txid = hash_to_hex(tx.txids[0])
    outputs = []
    for _, vout, amount_sats in paid:
        output = SeenOutput(txid, vout, amount_sats, inputs=inputs)
        outputs.append(output)
    return outputs


def _outpoint_text(outpoint: bytes) -> str:
    """Formats a serialized outpoint of 36 bytes as "txid:vout"."""
    vout = int.from_bytes(outpoint[32:], "little")
    return f"{hash_to_hex(outpoint[:32])}:{vout}"
