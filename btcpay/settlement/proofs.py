"""What must be proven of what a scan has shown, and what the proofs bear out. Pure."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime

from btcpay.settlement.decide import is_payment
from btcpay.settlement.merge import merge
from btcpay.settlement.values import Block, Output, Proof, Rules, SeenOutput
from btcpay.spv.verify import Proven


@dataclass(frozen=True)
class Unproven:
    """A transaction as the explorer told it: its block, and what it pays us by output index.

    `confirmations`: how many headers must prove it.
    """

    txid: str
    block: Block
    amounts_sats: Mapping[int, int]
    confirmations: int


def to_prove(
    known: Sequence[Output],
    seen: Sequence[SeenOutput],
    tip_height: int,
    rules: Rules,
    now: datetime,
) -> list[Unproven]:
    """What must be proven before what was seen can count, the largest output first.

    What would become a payment, with as many headers as the invoice asks for confirmations; what is
    in a block for the first time, with the block's own: so that an invention cannot keep an invoice
    open.
    """
    alive = [output for output in merge(known, seen, tip_height, now) if not output.vanished]
    due = {output.txid for output in alive if is_payment(output, tip_height, rules)}
    waiting = {output.txid: output for output in alive if output.block and not output.credited}
    amounts = _amounts_of(alive)
    return [
        Unproven(txid, output.block, amounts[txid], rules.confirmations if txid in due else 1)
        for txid, output in sorted(waiting.items(), key=lambda item: -item[1].amount_sats)
        if output.block and (txid in due or not output.proven)
    ]


def bears_out(proven: Proven, block: Block | None, amounts_sats: Mapping[int, int]) -> bool:
    """Whether what was proven is what we were told: this block, its time, and these amounts."""
    return block is not None and _is_where(proven, block) and _pays(proven, amounts_sats)


def proven_outpoints(
    outputs: Sequence[Output], proofs: Mapping[str, Proof]
) -> set[tuple[str, int]]:
    """The outputs whose block, time and amount the proofs bear out.

    The amounts of a transaction are compared once, however many outputs it has.
    """
    amounts = _amounts_of(output for output in outputs if not output.vanished)
    paying = {
        txid: proof.proven
        for txid, proof in proofs.items()
        if _pays(proof.proven, amounts.get(txid, {}))
    }
    return {
        output.outpoint
        for output in outputs
        if output.block and output.txid in paying and _is_where(paying[output.txid], output.block)
    }


def mark_proven(output: Output, proof: Proof) -> Output:
    """The output with its place in the block: the first is the coinbase's."""
    position = proof.proven.position
    return replace(output, proven=True, position=position, coinbase=position == 0)


def _amounts_of(outputs: Iterable[Output]) -> dict[str, dict[int, int]]:
    """By txid: satoshis by output index."""
    amounts: dict[str, dict[int, int]] = {}
    for output in outputs:
        amounts.setdefault(output.txid, {})[output.vout] = output.amount_sats
    return amounts


def _pays(proven: Proven, amounts_sats: Mapping[int, int]) -> bool:
    """Whether the transaction pays us exactly the outputs that we know of it."""
    return {vout: sats for vout, sats in proven.amounts_sats.items() if sats} == amounts_sats


def _is_where(proven: Proven, block: Block) -> bool:
    shown = (proven.height, proven.block_hash, proven.mined_at)
    return shown == (block.height, block.hash, block.mined_at)
