"""Decides which outputs of the chain send which refunds to the same address. Pure."""

from bisect import bisect_left, bisect_right
from collections import Counter
from collections.abc import Iterable, Sequence
from operator import attrgetter, itemgetter
from typing import NamedTuple

from btcpay.parts.refunds.models import Refund, RefundOutput

# A week: for so long after a refund was sent, a second sending is noticed.
WATCHED_BLOCKS = 1008
# How many outputs of one block are kept that no refund needs. An address is public and anybody may
# pay dust to it; a merchant sends about the sum once, or a few times by mistake.
MOST_BESIDE = 5
_IN_CHAIN = attrgetter("block_height", "position", "vout", "txid")
_SATS = itemgetter(2)
Paid = tuple[int, int, int]


class Decision(NamedTuple):
    """`sent`: the output that sends each refund, by the refund's id.

    `again`: the id of the refund that an output seems to have sent a second time, by the output.
    """

    sent: dict[str, RefundOutput]
    again: dict[RefundOutput, str]


def worth_keeping(sums_sats: Iterable[int], outputs: Sequence[Paid]) -> list[Paid]:
    """The outputs of a block to one script that refunds of these sums may need, in their order.

    An output is its position, its vout and its satoshis; `outputs` are in the block's order.

    1. Of each sum: one for each refund that asks for it, and MOST_BESIDE that were sent again.
    2. Around each sum: MOST_BESIDE of the nearest that are less, and as many that are more, since
       the merchant may say that such a one was the refund.
    """
    by_sats = sorted(outputs, key=_SATS)
    sats = [_SATS(one) for one in by_sats]
    kept: set[Paid] = set()
    for sum_sats, refunds in Counter(sums_sats).items():
        first = bisect_left(sats, sum_sats)
        end = bisect_right(sats, sum_sats)
        exact = by_sats[first:end]
        kept.update(exact[: refunds + MOST_BESIDE])
        kept.update(by_sats[max(0, first - MOST_BESIDE) : first])
        kept.update(by_sats[end : end + MOST_BESIDE])
    return sorted(kept)


def decide(refunds: Sequence[Refund], outputs: Iterable[RefundOutput]) -> Decision:
    """The refunds, oldest first, and what blocks have paid to their common address.

    1. A refund is sent by the output that the merchant has named, once a block has it.
    2. The other outputs count in the chain's order. Each sends the oldest refund that waits and
       asks for exactly what it pays; its block must be one that we did not have when the address
       was given, so above `above_height`.
    3. One that sends none, but pays exactly what was sent within a week, was sent again. All other
       money is shown to the merchant, and counts only when he names it.
    """
    in_order = sorted(outputs, key=_IN_CHAIN)
    sent = _outputs_named(refunds, in_order)
    taken = set(sent.values())
    beside: list[RefundOutput] = []
    for paid in in_order:
        if paid in taken:
            continue
        same_sum = _refunds_of_sum(refunds, paid)
        waiting = next((row for row in same_sum if row.id not in sent), None)
        if waiting:
            sent[waiting.id] = paid
        else:
            beside.append(paid)
    again = {paid: _id_of_sent_before(refunds, paid, sent) for paid in beside}
    return Decision(sent, {paid: id for paid, id in again.items() if id})


def _outputs_named(
    refunds: Sequence[Refund], outputs: Iterable[RefundOutput]
) -> dict[str, RefundOutput]:
    """The outputs that the merchant has named, by the refund's id.

    If the chain was begun anew, what the chain before it had decided holds until blocks show the
    outputs again, as if the merchant had named them.
    """
    by_place = {(output.txid, output.vout): output for output in outputs}
    named: dict[str, RefundOutput] = {}
    for refund in refunds:
        output = by_place.get((refund.named_txid or "", refund.named_vout or 0))
        before = by_place.get((refund.tx_hash or "", refund.vout or 0))
        if output:
            named[refund.id] = output
        elif before and before.block_height == 0:
            named[refund.id] = before
    return named


def _refunds_of_sum(refunds: Sequence[Refund], paid: RefundOutput) -> list[Refund]:
    """The refunds of exactly this sum whose address was given before we had its block."""
    return [
        refund
        for refund in refunds
        if refund.amount_sats == paid.amount_sats
        and (refund.above_height or 0) < paid.block_height
    ]


def _id_of_sent_before(
    refunds: Sequence[Refund], paid: RefundOutput, sent: dict[str, RefundOutput]
) -> str | None:
    """The id of a refund of this sum that was sent at most WATCHED_BLOCKS before; else None."""
    for refund in _refunds_of_sum(refunds, paid):
        before = sent.get(refund.id)
        if before and paid.block_height <= before.block_height + WATCHED_BLOCKS:
            return refund.id
    return None
