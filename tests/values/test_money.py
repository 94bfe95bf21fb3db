"""Satoshis and dollars: exact, rounded in the direction that is said, no float."""

import math
from decimal import Decimal
from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from btcpay.values.money import (
    MAX_MONEY_SATS,
    btc_text,
    full_btc_text,
    sats_for,
    value_of,
)

amounts = st.decimals(
    min_value=Decimal("1e-18"), max_value=1_000_000, allow_nan=False, places=18
)
prices = st.decimals(min_value=Decimal("0.01"), max_value=Decimal("1e9"), places=8)
sats = st.integers(0, MAX_MONEY_SATS)


@given(amounts, prices)
def test_the_satoshis_are_the_exact_quotient_rounded_up(amount_usd, price_usd):
    exact = Fraction(amount_usd) / Fraction(price_usd) * 100_000_000
    expected = math.ceil(exact)
    assert sats_for(amount_usd, price_usd) == (
        None if exact > MAX_MONEY_SATS else expected
    )


@pytest.mark.parametrize(
    ("amount", "price", "expected"),
    [
        pytest.param("0.00060000000000000001", "60000", 2, id="a trifle more is two"),
        pytest.param(
            "1e-300", "60000", 1, id="an amount with 300 decimals is one satoshi"
        ),
        pytest.param(
            f"0.{'3' * 200}4", "1", 33_333_334, id="two hundred digits are rounded up"
        ),
        pytest.param(
            f"0.0006{'0' * 100}1", "60000", 2, id="no trifle is lost before rounding"
        ),
        pytest.param(
            "21", "0.000001", MAX_MONEY_SATS, id="all the bitcoin there can be"
        ),
        pytest.param("21.00000001", "0.000001", None, id="a trifle more cannot be"),
    ],
)
def test_an_amount_of_dollars_is_so_many_satoshis(amount, price, expected):
    assert sats_for(Decimal(amount), Decimal(price)) == expected


@given(sats, prices)
def test_dollars_are_the_exact_product_to_the_nearest_cent(amount_sats, price_usd):
    exact = Fraction(amount_sats, 10**8) * Fraction(price_usd)
    found = value_of(amount_sats, price_usd, "USD")
    assert abs(Fraction(found) - exact) <= Fraction(1, 200)
    assert found.as_tuple().exponent == -2


BITCOIN = {  # satoshis: as BIP21 wants it, and as people see it
    1: ("0.00000001", "0.00000001"),
    41_667: ("0.00041667", "0.00041667"),
    2_030_000_000: ("20.3", "20.30000000"),
    MAX_MONEY_SATS: ("21000000", "21000000.00000000"),
}


def test_bitcoin_is_written_as_bip21_wants_it_and_for_people_with_eight_places():
    assert {sats: (btc_text(sats), full_btc_text(sats)) for sats in BITCOIN} == BITCOIN


@given(sats)
def test_bitcoin_text_reads_back_exactly(amount_sats):
    text = btc_text(amount_sats)
    assert Decimal(text) * 100_000_000 == amount_sats
    assert "e" not in text.lower() and not text.endswith(".")
