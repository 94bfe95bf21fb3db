"""The price without a network: what a source's answer is worth, and what many together say."""

from decimal import Decimal

import pytest
from hypothesis import given
from hypothesis import strategies as st

from btcpay.http import http_client
from btcpay.prices.tickers import agreed_price, parse_price, resolve_pointer

# RFC 6901, section 5.
RFC_DOCUMENT = {"foo": ["bar", "baz"], "": 0, "a/b": 1, "c%d": 2, "e^f": 3, "g|h": 4}
RFC_DOCUMENT |= {"i\\j": 5, 'k"l': 6, " ": 7, "m~n": 8}


def test_the_examples_of_rfc_6901_resolve():
    assert resolve_pointer(RFC_DOCUMENT, "") == RFC_DOCUMENT
    assert resolve_pointer(RFC_DOCUMENT, "/foo") == ["bar", "baz"]
    assert resolve_pointer(RFC_DOCUMENT, "/foo/0") == "bar"
    pointers = ["/", "/a~1b", "/c%d", "/e^f", "/g|h", "/i\\j", '/k"l', "/ ", "/m~0n"]
    assert [resolve_pointer(RFC_DOCUMENT, pointer) for pointer in pointers] == list(
        range(9)
    )
    assert (
        resolve_pointer({"~1": 1, "/": 2}, "/~01") == 1
    )  # a tilde and a one, no slash


NOWHERE = {
    "no such name": "/none",
    "no such index": "/foo/2",
    "an index with a leading zero": "/foo/01",
    "a negative index": "/foo/-1",
    "the element after the last, which does not exist": "/foo/-",
    "an index with a sign": "/foo/+1",
    "an index that is no digits": "/foo/1e0",
    "a digit that is not ASCII": "/foo/\u0661",
    "an empty index": "/foo/",
    "an index beyond any answer": "/foo/9999999999",
    "a text has no members": "/foo/0/0",
    "a number has no members": "/a~1b/x",
}


def test_a_pointer_that_leads_nowhere_is_a_lookup_error():
    for name, pointer in NOWHERE.items():
        with pytest.raises(LookupError):
            pytest.fail(f"{name}: {resolve_pointer(RFC_DOCUMENT, pointer)}")


DECIMALS = "123456789012345678"
PRICES = {
    "a whole number": (b"60000", "60000"),
    "a number stays exact": (b"60000.12345678", "60000.12345678"),
    "a number with an exponent": (b"6e4", "60000"),
    "a number with more decimals than a float": (
        b"60000.123456789012345678",
        f"60000.{DECIMALS}",
    ),
    "a numeric text": (b'"60000.10"', "60000.10"),
    "a text with eighteen decimals": (
        b'"60000.123456789012345678"',
        f"60000.{DECIMALS}",
    ),
    "a text with thirty-eight decimals": (
        b'"60000.%b"' % (b"1" * 38),
        f"60000.{'1' * 38}",
    ),
    "a text with an exponent": (b'"9.7E4"', "97000"),
    "a text with a signed exponent": (b'"9.70125e+04"', "97012.5"),
    "a text with a negative exponent": (b'"970000E-1"', "97000.0"),
    "a text with leading zeros": (b'"00060000"', "60000"),
    "the least price there may be": (b"0.00000002", "2E-8"),
    "the highest price there may be": (b"999999999999", "999999999999"),
}


def test_numbers_and_numeric_texts_are_prices():
    for case, (body, price) in PRICES.items():
        assert str(parse_price(http_client.parse_json(body))) == price, case


NO_PRICES = {
    "zero": b"0",
    "negative": b"-60000",
    "a negative text": b'"-1"',
    "too small to be true": b"0.00000001",
    "too large to be true": b"1000000000000",
    "larger than any float": b"1e400",
    "smaller than any float": b"1e-400",
    "an exponent that would fill the memory": b"1e999999",
    "NaN": b"NaN",
    "Infinity": b"Infinity",
    "NaN as text": b'"NaN"',
    "Infinity as text": b'"Infinity"',
    "a boolean is no number": b"true",
    "null": b"null",
    "a list": b"[60000]",
    "an object": b'{"usd": 60000}',
    "an empty text": b'""',
    "a text with a blank": b'" 60000"',
    "a text with a line break": b'"60000\\n"',
    "a text whose exponent would fill the memory": b'"1e999999999"',
    "a text whose exponent has more digits than a Decimal takes": b'"1e99999999999999999999"',
    "a text without an exponent after its sign": b'"6e+"',
    "a text with a broken exponent": b'"6e4.5"',
    "a text with thousands": b'"60,000.00"',
    "a text without a whole part": b'".5"',
    "a text without decimals after the point": b'"5."',
    "a digit that is not ASCII": '"\u0666"'.encode(),
    "hex": b'"0x10"',
    "a text of 5000 digits": b'"' + b"9" * 5000 + b'"',
}


def test_values_of_other_kinds_are_no_price():
    for name, body in NO_PRICES.items():
        with pytest.raises(ValueError, match="there"):
            pytest.fail(f"{name}: {parse_price(http_client.parse_json(body))}")


def usd(*prices):
    return [Decimal(price) for price in prices]


FAR = "1000"
NEAR = "105.2"


def row(sentence, agreed, quorum, *prices):
    return pytest.param(usd(*prices), quorum, agreed, id=sentence)


@pytest.mark.parametrize(
    ("prices", "quorum", "agreed"),
    [
        row("nobody answered", None, 1),
        row("one answered, one is enough", "100", 1, "100"),
        row("one answered, two are asked", None, 2, "100"),
        row("two answered, two are asked", "101", 2, "100", "102"),
        row("two answered, three are asked", None, 3, "100", "102"),
        row("5 % off exactly still counts", "100", 3, "95", "100", "105"),
        row("just beyond 5 % below does not", None, 3, "94.99", "100", "100"),
        row("just beyond 5 % above does not", None, 3, "100", "100", "105.01"),
        row("the median of those that are left", "101", 2, "94.99", "100", "102"),
        row("one broken source does not decide", "100", 2, "1", "100", "100"),
        row("one liar of two moves it by 5.25 %", "105.25", 2, "100", "110.5"),
        row("one liar of two moves it no further", None, 2, "100", "110.6"),
        row("two that contradict: neither is believed", None, 1, "100", "200"),
        # Five are set and three must agree, as by default: docs/operators/going-live.md.
        row("one liar: dropped", "100.5", 3, "99", "100", "101", "102", FAR),
        row("one liar: an honest price", "101", 3, "99", "100", "101", "102", NEAR),
        row("one liar, two silent: no price", None, 3, "99", "100", FAR),
        row("one liar, two silent: an honest price", "100", 3, "100", "100", "103"),
        row("two liars: both dropped", "100", 3, "99", "100", "101", FAR, FAR),
        row(
            "two liars: the highest honest price",
            "101",
            3,
            "99",
            "100",
            "101",
            NEAR,
            NEAR,
        ),
        row(
            "two liars: or the lowest one",
            "99",
            3,
            "99",
            "100",
            "101",
            "95.95",
            "95.95",
        ),
        row("two liars, one silent: no price", None, 3, "100", "100", FAR, FAR),
        row("two liars, two silent: no price of their own", None, 3, "100", FAR, FAR),
        row(
            "two liars, two silent: up to 5.3 % beside the honest",
            NEAR,
            3,
            "100",
            NEAR,
            NEAR,
        ),
        row("two liars, three silent: no price of their own", None, 3, FAR, FAR),
        row("three liars: whatever they say", FAR, 3, "99", "100", FAR, FAR, FAR),
    ],
)
def test_sources_agree_within_5_percent_of_their_median_and_to_a_quorum(
    prices, quorum, agreed
):
    assert agreed_price(prices, quorum) == (None if agreed is None else Decimal(agreed))


honest = st.lists(st.decimals(99, 101, places=2), min_size=1, max_size=5)
lies = st.lists(st.decimals("0.01", 10**9, places=2), max_size=2)


@given(honest, lies, st.randoms(use_true_random=False))
def test_two_liars_never_move_the_price_out_of_the_honest_range_and_5_percent(
    honest, lied, random
):
    prices = honest + lied
    random.shuffle(prices)
    price = agreed_price(prices, 3)
    if price is not None:
        assert min(honest) / Decimal("1.05") <= price <= max(honest) / Decimal("0.95")
    assert price is not None or len(honest) < 3
