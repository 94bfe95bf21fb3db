"""The sums of a bill, each case a sentence."""

from decimal import Decimal

import pytest

from btcpay.bills.sums import Part, counts, standing
from btcpay.values.money import sats_for

DUST = 294


def part(amount, price, received=None):
    """An invoice for that amount; `received` is a share of what it asks, or satoshis."""
    asked = sats_for(Decimal(amount), Decimal(price))
    sats = asked if received is None else received
    return Part(Decimal(amount), asked, sats, Decimal(price))


def half(amount, price):
    asked = part(amount, price).asked_sats
    return part(amount, price, asked // 2)


@pytest.mark.parametrize(
    ("invoice", "currency", "worth"),
    [
        pytest.param(part("100", "50000"), "EUR", "100.00", id="all of it is worth its amount"),
        pytest.param(half("100", "50000"), "EUR", "50.00", id="half of it is worth half"),
        pytest.param(part("100", "50000", 400_000), "EUR", "100.00", id="too much counts no more"),
        pytest.param(
            part("100", "50000", 199_999), "EUR", "99.99", id="a satoshi less costs a unit"
        ),
        pytest.param(
            part("0.01", "50000", 19), "EUR", "0.00", id="less than a unit is worth nothing"
        ),
        pytest.param(part("100", "50000", 0), "EUR", "0.00", id="nothing is worth nothing"),
        pytest.param(part("1000", "9000000", 5_555), "JPY", "499", id="yen have no decimals"),
        pytest.param(part("1.000", "20000", 3_333), "KWD", "0.666", id="dinars have three"),
    ],
)
def test_an_invoice_counts_toward_its_bill(invoice, currency, worth):
    assert str(counts(invoice, currency)) == worth


@pytest.mark.parametrize(
    ("parts", "paid", "missing", "is_paid"),
    [
        pytest.param([], "0.00", "100.00", False, id="nothing came"),
        pytest.param([half("100", "50000")], "50.00", "50.00", False, id="half came"),
        pytest.param(
            [half("100", "50000"), part("50", "100000")],
            "100.00",
            "0.00",
            True,
            id="half came before the price doubled and half after it",
        ),
        pytest.param([part("100", "50000")], "100.00", "0.00", True, id="all came"),
        pytest.param(
            [part("100", "50000", 199_999)],
            "99.99",
            "0.01",
            True,
            id="a unit is missing that no wallet can send",
        ),
        pytest.param(
            [half("100", "50000"), part("50", "100000", 49_707)],
            "99.70",
            "0.30",
            False,
            id="300 satoshis are missing at the last price",
        ),
        pytest.param(
            [half("100", "50000"), part("50", "100000", 49_710)],
            "99.71",
            "0.29",
            True,
            id="290 satoshis are missing at the last price",
        ),
        pytest.param(
            [part("50", "50000"), part("30", "60000", 0), part("20", "70000")],
            "70.00",
            "30.00",
            False,
            id="a reorganisation took the second of three parts",
        ),
        pytest.param(
            [part("100", "50000", 0), part("100", "60000", 40_000)],
            "23.99",
            "76.01",
            False,
            id="a late part counts at its own price once it is accepted",
        ),
    ],
)
def test_a_bill_stands_by_its_parts(parts, paid, missing, is_paid):
    found = standing(Decimal(100), "EUR", parts, DUST)
    assert (str(found.paid), str(found.missing), found.is_paid) == (paid, missing, is_paid)
    assert found.beyond_sats == 0


def test_the_excess_is_the_last_part_at_its_own_price():
    both = [part("100", "50000"), part("100", "100000")]
    found = standing(Decimal(100), "EUR", both, DUST)
    assert (found.paid, found.missing, found.is_paid) == (200, 0, True)
    assert found.beyond_sats == 100_000
    third = [*both, part("100", "50000", 0)]
    assert standing(Decimal(100), "EUR", third, DUST).beyond_sats == 100_000


def test_an_excess_is_no_more_than_the_part_that_brought_it():
    parts = [part("100", "50000"), part("100", "50000"), part("10", "50000")]
    assert standing(Decimal(100), "EUR", parts, DUST).beyond_sats == 20_000
