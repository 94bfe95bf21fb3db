"""Amounts as people type them: what a reader of that currency means, or a refusal."""

from decimal import Decimal

import pytest
from hypothesis import given
from hypothesis import strategies as st

from btcpay.values.amounts import NotAnAmount, parse_amount, parse_whole_number
from btcpay.values.money import CODES, places_of

READ = {
    "USD": {
        "25": "25",
        " 19.90 ": "19.90",
        "19,90": "19.90",
        "\uff12\uff15": "25",  # full-width digits
        "0.001": "0.001",
        "1,000.00": "1000.00",
        "1.500,25": "1500.25",
        "1'500": "1500",
        "1 500": "1500",
        "1,500,000": "1500000",
        "$ 5": "5",
        "$0.001": "0.001",
        "US$5": "5",
        "usd 5": "5",
        "$5 USD": "5",
        "\u0661\u0662\u066b\u0665\u0660": "12.50",  # Arabic digits and their mark
        "\u06f2\u06f5": "25",  # Persian ones
        "\u06f1\u066c\u06f0\u06f0\u06f0": "1000",  # their mark between groups
    },
    "EUR": {
        "\u20ac100": "100",
        "100 \u20ac": "100",
        "100\u00a0\u20ac": "100",
        "\u2068\u06f1\u06f9\u066b\u06f9\u06f0 \u20ac\u2069": "19.90",  # as our own page shows it
        "EUR 19,90": "19.90",
        "19.90 eur": "19.90",
        "1\u202f234,50 \u20ac": "1234.50",  # a narrow blank
        "25,-": "25",
        "25,\u2013 \u20ac": "25",
        "0,500": "0.500",
    },
    "DKK": {"kr.50": "50", "kr. 50,-": "50"},
    "CHF": {"1\u2019500.50": "1500.50", "CHF 1'500.\u2014": "1500", "Fr. 20": "20"},
    "IDR": {
        "1600000000": "1600000000",
        "1.600.000.000": "1600000000",
        "Rp 1.600.000": "1600000",
        "Rp25.000,00": "25000.00",
    },
    "INR": {
        "1,00,000": "100000",
        "\u20b912,34,567.50": "1234567.50",
        "Rs. 1,00,000": "100000",
        "Rs.50": "50",
        "1,500,000": "1500000",
    },
    "AUD": {"$100": "100", "A$100": "100"},
    "CAD": {"$100": "100", "C$100": "100", "CA$ 1,234.50": "1234.50"},
    "SEK": {"100 kr": "100", "1 234,50 kr.": "1234.50"},
    "JPY": {
        "\uffe51,234": "1234",
        "1234\u5186": "1234",
        "1.234": "1234",
        "100.00": "100",
    },
    "CNY": {"\u00a5100": "100"},
    "KWD": {
        "1.250": "1.250",
        "1234.567": "1234.567",
        "1234,567": "1234.567",
        "0,250": "0.250",
    },
    "VND": {"25.000 \u20ab": "25000"},
}
REFUSED = {
    "USD": (
        *(
            "",
            "-5",
            "1e3",
            "NaN",
            "$$5",
            "5.",
            "\u00bd",
            "9" * 10_000,
            "1,50,000",
            "1,500,00",
            "$.50",
        ),
        *(
            "1,500.0.0",
            "0,500.00",
            "5 5 .",
            "1,500.000",
            "12,3456",
            "5 apples",
            "5$5",
            "1'50",
        ),
    ),
    "EUR": (
        *("1.2345", "25,-,", "1,00,000", "1 00 000"),
        *(
            "12\u2075\u2070 \u20ac",
            "5\u00b2",
            "\u24885",
            "\U0001f10250",
        ),  # raised cents, `1.`
        *("\u20ac.50", "EUR.50"),  # half a euro, or fifty
    ),
    "ZAR": ("R.50",),
    "JPY": ("1,23", "0.5", "1,234.50"),
    "INR": ("1,0,000", "1,00,00", "1.00.000"),
}
FOREIGN = {
    "EUR": {
        "$100": "$",
        "100 kr": "kr",
        "USD 5": "USD",
        "100 \u20bf": "\u20bf",
        "5%": "%",
    },
    "USD": {"5 \u20ac": "\u20ac", "CA$5": "CA$", "$5 CAD": "CAD"},
    "CAD": {"US$5": "US$", "5 sats": "sats"},
    "JPY": {"5\u5143": "\u5143"},
}
AMBIGUOUS = {
    "USD": {"1,000": (1000, 1), "1.000": (1000, 1), "$12,345": (12345, "12.34")},
    "IDR": {"Rp 25.000": (25000, 25)},
    "KWD": {"1,250": (1250, "1.250")},
    "IQD": {
        "25.000": (25000, 25),
        "25,000": (25000, 25),
    },  # nobody pays in thousandths of a dinar
}


def table(cases):
    return [
        pytest.param(code, typed, id=f"{typed[:20]} in {code}")
        for code in cases
        for typed in cases[code]
    ]


@pytest.mark.parametrize(("code", "typed"), table(READ))
def test_a_text_that_means_one_amount_is_read(code, typed):
    assert str(parse_amount(typed, code)) == READ[code][typed]


@pytest.mark.parametrize(("code", "typed"), table(REFUSED))
def test_a_text_that_means_no_amount_is_refused(code, typed):
    with pytest.raises(NotAnAmount) as refused:
        parse_amount(typed, code)
    assert not refused.value.readings and not refused.value.foreign


@pytest.mark.parametrize(("code", "typed"), table(FOREIGN))
def test_another_currencys_sign_is_refused_by_name_and_never_dropped(code, typed):
    with pytest.raises(NotAnAmount) as refused:
        parse_amount(typed, code)
    assert refused.value.foreign == FOREIGN[code][typed]


@pytest.mark.parametrize(("code", "typed"), table(AMBIGUOUS))
def test_a_text_that_may_mean_two_amounts_is_refused_with_both(code, typed):
    with pytest.raises(NotAnAmount) as refused:
        parse_amount(typed, code)
    assert list(refused.value.readings) == [
        Decimal(one) for one in AMBIGUOUS[code][typed]
    ]


@pytest.mark.parametrize(
    ("typed", "number"),
    [("0", 0), ("14", 14), (" 14 ", 14), ("۱۴", 14), ("１４", 14), ("0100", 100), ("100", 100)],
)  # fmt: skip
def test_a_whole_number_is_read_in_the_digits_of_any_script(typed, number):
    assert parse_whole_number(typed, 0, 100) == number


@pytest.mark.parametrize(
    "typed",
    ["", "101", "-1", "+5", "1_0", "1.0", "1,0", "1 0", "²", "1²", "①", "Ⅷ", "½",
     "0x1", "9" * 5000],
)  # fmt: skip
def test_what_is_no_whole_number_or_too_large_is_refused(typed):
    with pytest.raises(ValueError, match="not an amount"):
        parse_whole_number(typed, 0, 100)


CODE = st.sampled_from(sorted(CODES))


@given(
    CODE,
    st.integers(0, 10**11),
    st.sampled_from([",.", ".,", " ,", "'.", " .", "\u202f,"]),
)
def test_every_amount_that_is_written_out_is_read_as_itself_or_refused_as_ambiguous(
    code, units, marks
):
    amount = Decimal(units).scaleb(-places_of(code))
    group, point = marks
    typed = f"{amount:,f}".translate({ord(","): group, ord("."): point})
    try:
        assert parse_amount(f"{code} {typed}", code) == amount
    except NotAnAmount as refused:
        assert amount in refused.readings


@given(CODE, st.text("0123456789.,' $\u20ac\u0661\u066b\u066c", max_size=14))
def test_whatever_is_read_has_the_typed_digits_and_nothing_else(code, typed):
    try:
        amount = parse_amount(typed, code)
    except NotAnAmount:
        return
    digits = "".join(sign for sign in typed.replace("\u0661", "1") if sign.isdecimal())
    read = "".join(sign for sign in f"{amount:f}" if sign.isdecimal())
    assert read.lstrip("0") in (
        digits.lstrip("0"),
        digits.lstrip("0").removesuffix("00"),
    )
