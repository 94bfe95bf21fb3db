"""The sums of a bill, each case a sentence."""

from decimal import Decimal
from fractions import Fraction
from math import ceil
from random import Random

import pytest

from btcpay.parts.bills.money import Share, totals_of, worth_of
from btcpay.values.money import sats_for

DUST = 294


def part(amount, price, received=None):
    """An invoice for that amount; `received` is a share of what it asks, or satoshis."""
    asked = sats_for(Decimal(amount), Decimal(price))
    sats = asked if received is None else received
    return Share(Decimal(amount), asked, sats, Decimal(price))


def half(amount, price):
    asked = part(amount, price).asked_sats
    return part(amount, price, asked // 2)


COUNTED = {
    "all of it is worth its amount": (part("100", "50000"), "EUR", "100.00"),
    "half of it is worth half": (half("100", "50000"), "EUR", "50.00"),
    "too much counts no more": (part("100", "50000", 400_000), "EUR", "100.00"),
    "a satoshi less costs a unit": (part("100", "50000", 199_999), "EUR", "99.99"),
    "less than a unit is worth nothing": (part("0.01", "50000", 19), "EUR", "0.00"),
    "nothing is worth nothing": (part("100", "50000", 0), "EUR", "0.00"),
    "yen have no decimals": (part("1000", "9000000", 5_555), "JPY", "499"),
    "dinars have three": (part("1.000", "20000", 3_333), "KWD", "0.666"),
}
HALF = half("100", "50000")
STANDING = {
    "nothing came": ([], "0.00", False, []),
    "half came": ([HALF], "50.00", False, [0]),
    "half came before the price doubled and half after it":
        ([HALF, part("50", "100000")], "100.00", True, [0, 0]),
    "all came": ([part("100", "50000")], "100.00", True, [0]),
    "a unit is missing that no wallet sends":
        ([part("100", "50000", 199_999)], "99.99", True, [0]),
    "300 satoshis are missing at the last price":
        ([HALF, part("50", "100000", 49_707)], "99.70", False, [0, 0]),
    "290 satoshis are missing at the last price":
        ([HALF, part("50", "100000", 49_710)], "99.71", True, [0, 0]),
    "a reorganisation took the second of three parts":
        ([part("50", "50000"), part("30", "60000", 0), part("20", "70000")], "70.00", False,
            [0, 0, 0]),
    "a late part counts at its own price once it is accepted":
        ([part("100", "50000", 0), part("100", "60000", 40_000)], "23.99", False, [0, 0]),
    "the excess is the last part at its own price":
        ([part("100", "50000"), part("100", "100000")], "200.00", True, [0, 100_000]),
    "the excess is that of the last part that came":
        ([part("100", "50000"), part("100", "100000"), part("100", "50000", 0)], "200.00", True,
            [0, 100_000, 0]),
    "the excess that the last part did not bring is that of the one before":
        ([part("100", "50000"), part("100", "100000"), part("10", "50000")], "210.00", True,
            [0, 100_000, 20_000]),
    "a part before that brought some of the excess keeps the rest":
        ([part("60", "50000"), part("60", "50000"), part("60", "100000")], "180.00", True,
            [0, 40_000, 60_000]),
}  # fmt: skip


@pytest.mark.parametrize(
    ("invoice", "currency", "worth"), COUNTED.values(), ids=COUNTED
)
def test_an_invoice_counts_toward_its_bill(invoice, currency, worth):
    assert str(worth_of(invoice, currency)) == worth


@pytest.mark.parametrize(
    ("parts", "paid", "is_paid", "overpaid_sats"), STANDING.values(), ids=STANDING
)
def test_a_bill_stands_by_its_parts(parts, paid, is_paid, overpaid_sats):
    found = totals_of(Decimal(100), "EUR", parts, DUST)
    assert (str(found.paid), found.is_paid, found.overpaid_sats) == (
        paid,
        is_paid,
        overpaid_sats,
    )


def beyond_by_cents(amount_cents, parts):
    """What each part brought beyond the bill: cents are laid upon it one by one, as they came."""
    overpaid_sats = []
    laid = 0
    for part in parts:
        cents = int(part.amount * 100)
        received_sats = min(part.received_sats, part.asked_sats)
        brought = [cent for cent in range(1, cents + 1)
            if cent * part.asked_sats <= cents * received_sats]  # fmt: skip
        beside = 0
        for _ in brought:
            if laid == amount_cents:
                beside += 1
            else:
                laid += 1
        overpaid_sats.append(ceil(Fraction(beside * 10**8, 100) / Fraction(part.price)))
    return overpaid_sats


@pytest.mark.parametrize("seed", range(40))
def test_the_excess_of_any_history_is_what_came_last(seed):
    """After each of its steps, and for each of its parts."""
    random = Random(seed)
    amount_cents = random.randint(1, 400)
    parts = []
    for _ in range(random.randint(1, 30)):
        # more for one, a part of it, or a reorganisation
        if parts and random.random() < 0.4:
            place = random.randrange(len(parts))
            share = random.choice([0, 0.3, 1, 1, 1.5])
            sats = int(parts[place].asked_sats * share) + random.choice([0, 294])
            parts[place] = parts[place]._replace(received_sats=sats)
        else:
            price = random.choice(["48000", "61234.56", "99999.99"])
            cents = random.randint(1, amount_cents)
            parts.append(part(Decimal(cents) / 100, price))
        found = totals_of(Decimal(amount_cents) / 100, "EUR", parts, DUST)
        assert found.overpaid_sats == beyond_by_cents(amount_cents, parts)
        for one, overpaid_sats in zip(parts, found.overpaid_sats, strict=True):
            assert overpaid_sats <= one.received_sats
