"""The sums of a bill: what its invoices count, and what is missing. Pure."""

from collections.abc import Sequence
from decimal import Decimal
from typing import NamedTuple

from btcpay.values.money import of_minor, sats_for, to_minor


class Part(NamedTuple):
    """An invoice of the bill, at its own price; `received_sats` is what settlement counts."""

    amount: Decimal
    asked_sats: int
    received_sats: int
    price: Decimal


class Standing(NamedTuple):
    """The state of a bill's sums. `beyond_sats` is the last part's excess, at that part's price."""

    paid: Decimal
    missing: Decimal
    is_paid: bool
    beyond_sats: int


def counts(part: Part, currency: str) -> Decimal:
    """The part's worth: amount x received / asked, at most the amount, rounded down."""
    received_sats = min(part.received_sats, part.asked_sats)
    return of_minor(to_minor(part.amount, currency) * received_sats // part.asked_sats, currency)


def standing(amount: Decimal, currency: str, parts: Sequence[Part], least_sats: int) -> Standing:
    """The state of a bill with these parts, of which the last one came last.

    It is paid when nothing is missing, or less than a wallet can send (`least_sats`) at the price
    of the invoice that brought the last part.
    """
    brought = [part for part in parts if part.received_sats]
    paid = sum((counts(part, currency) for part in brought), of_minor(0, currency))
    missing, is_paid, beyond_sats = max(amount - paid, of_minor(0, currency)), False, 0
    if brought:
        last = brought[-1]
        is_paid = not missing or (sats_for(missing, last.price) or least_sats) < least_sats
        beyond = min(paid - amount, counts(last, currency))
        beyond_sats = (sats_for(beyond, last.price) or 0) if beyond > 0 else 0
    return Standing(paid, missing, is_paid, beyond_sats)
