"""Which output of the chain sends which refund to the same address. Pure."""

from collections.abc import Iterable, Sequence
from operator import attrgetter
from typing import NamedTuple

from storage.models import Refund, RefundOutput

WATCHED_BLOCKS = 1008  # a week: for so long after a refund was sent, a second one is noticed
_IN_CHAIN = attrgetter("block_height", "position", "amount_sats", "vout", "txid")


class Decision(NamedTuple):
    """The output that sends each refund, by the refund's id; `again`: outputs beside them.

    `again` has, by output, the id of the refund that seems to have been sent a second time.
    """

    sent: dict[str, RefundOutput]
    again: dict[RefundOutput, str]


def decide(refunds: Sequence[Refund], outputs: Iterable[RefundOutput]) -> Decision:
    """The refunds, oldest first, and all that blocks have paid to their common address.

    1. Transactions count in the chain's order, their outputs from the smallest.
    2. Each output sends the oldest refund that waits and asks for exactly what it pays, else the
       oldest that asks for less; its block must be one that we did not have when the address was
       given, so above `above_height`.
    3. One that sends none, but pays exactly what was sent within a week, was sent again: an address
       may get other money, which is no business of ours.
    """
    sent: dict[str, RefundOutput] = {}
    again: dict[RefundOutput, str] = {}
    for paid in sorted(outputs, key=_IN_CHAIN):
        asked = [one for one in refunds if (one.above_height or 0) < paid.block_height]
        waiting = (one for one in asked if one.id not in sent)
        fitting = [one for one in waiting if one.amount_sats <= paid.amount_sats]
        if found := min(fitting, key=lambda one: one.amount_sats != paid.amount_sats, default=None):
            sent[found.id] = paid
        elif doubled := [one.id for one in asked if _is_again(one, paid, sent.get(one.id))]:
            again[paid] = doubled[0]
    return Decision(sent, again)


def _is_again(refund: Refund, paid: RefundOutput, before: RefundOutput | None) -> bool:
    is_near = before is not None and paid.block_height <= before.block_height + WATCHED_BLOCKS
    return is_near and paid.amount_sats == refund.amount_sats
