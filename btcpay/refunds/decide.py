"""Which output of the chain sends which refund to the same address. Pure."""

from collections.abc import Iterable, Sequence
from typing import NamedTuple

WATCHED_BLOCKS = 1008  # a week: for so long after a refund was sent, a second one is noticed


class Wanted(NamedTuple):
    """A refund that has an address; blocks up to `above_height` cannot have sent it."""

    id: str
    amount_sats: int
    above_height: int


class Paid(NamedTuple):
    """An output of a block; `position` is its transaction's place there."""

    height: int
    position: int
    amount_sats: int
    vout: int
    txid: str


class Decision(NamedTuple):
    """The output that sends each refund, by the refund's id; `again`: outputs beside them.

    `again` has, by output, the refund that seems to have been sent a second time.
    """

    sent: dict[str, Paid]
    again: dict[Paid, str]


def decide(refunds: Sequence[Wanted], outputs: Iterable[Paid]) -> Decision:
    """The refunds, oldest first, and all that blocks have paid to their common address.

    1. Transactions count in the chain's order, their outputs from the smallest.
    2. Each output sends the oldest refund that waits and asks for exactly what it pays, else the
       oldest that asks for less; its block must be one that we did not have when the address was
       given.
    3. One that sends none, but pays exactly what was sent within a week, was sent again: an address
       may get other money, which is no business of ours.
    """
    sent: dict[str, Paid] = {}
    again: dict[Paid, str] = {}
    for paid in sorted(outputs):
        asked = [one for one in refunds if one.above_height < paid.height]
        waiting = (one for one in asked if one.id not in sent)
        fitting = [one for one in waiting if one.amount_sats <= paid.amount_sats]
        if found := min(fitting, key=lambda one: one.amount_sats != paid.amount_sats, default=None):
            sent[found.id] = paid
        elif doubled := [one.id for one in asked if _is_again(one, paid, sent)]:
            again[paid] = doubled[0]
    return Decision(sent, again)


def _is_again(refund: Wanted, paid: Paid, sent: dict[str, Paid]) -> bool:
    before = sent.get(refund.id)
    is_near = before is not None and paid.height <= before.height + WATCHED_BLOCKS
    return is_near and paid.amount_sats == refund.amount_sats
