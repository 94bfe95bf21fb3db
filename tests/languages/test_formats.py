"""Numbers and times as pages write them, beside what Babel writes: the same in each language."""

import json
import re
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from zoneinfo import ZoneInfo

import pytest
from babel import Locale
from babel.dates import (
    TIMEDELTA_UNITS,
    format_datetime,
    format_skeleton,
    format_time,
    format_timedelta,
)
from babel.numbers import format_currency, format_decimal, format_percent
from hypothesis import example, given
from hypothesis import strategies as st

from btcpay.languages import formats
from btcpay.languages.catalogs import LANGUAGES
from btcpay.values.money import CODES, places_of, unit_of
from btcpay.values.times import from_ms, to_ms
from tests.support import cldr

in_each_language = pytest.mark.parametrize("language", LANGUAGES)
ZONES = {
    "UTC": "UTC",
    "Europe/Berlin": "UTC+1",
    "America/New_York": "UTC-5",
    "Asia/Kolkata": "UTC+5:30",
    "America/St_Johns": "UTC-3:30",
}
FIRST, LAST = (to_ms(datetime(year, 1, 1, tzinfo=UTC)) for year in (2009, 2200))

PERCENT = {"ar": "\u200e%\u200e", "fa": "\u066a"}  # where Babel writes an English sign


def with_digits(text, language):
    """Babel knows the marks of every language, and writes with the same ten digits in all."""
    own = {ord("0") + digit: 0x06F0 + digit for digit in range(10)}  # Persian
    return text.translate(own) if language == "fa" else text


def decimal(number, pattern, language):
    text = format_decimal(number, pattern, language, numbering_system="default")
    return with_digits(text, language)


def moment(at, language):
    return f"{with_digits(format_datetime(at, 'medium', UTC, language), language)} UTC"


def test_the_table_is_what_make_formats_writes():
    assert json.loads(formats.TABLE.read_text(encoding="utf-8")) == cldr.table()


@pytest.mark.parametrize(
    ("tag", "currency"),
    [("de-AT", "EUR"), ("en-gb", "GBP"), ("zh-Hant-TW", "TWD"), ("ja", "JPY"), ("pt", "BRL"),
        ("en", "USD"), ("es-419", "EUR"), ("tlh", None), ("*", None), ("", None)],
)  # fmt: skip
def test_the_currency_where_a_browsers_language_is_spoken(tag, currency):
    assert formats.currency_of(tag) == currency


@in_each_language
@given(number=st.integers(0, 21_000_000 * 10**8))
def test_a_whole_number_is_grouped_as_its_language_does(language, number):
    assert formats.whole(number, language) == decimal(number, "#,##0", language)


@in_each_language
@given(amount_sats=st.integers(0, 21_000_000 * 10**8))
def test_an_amount_in_bitcoin_has_eight_places_in_the_languages_own_marks(
    language, amount_sats
):
    expected = decimal(Decimal(amount_sats).scaleb(-8), "0.00000000", language)
    assert formats.btc(amount_sats, language) == expected


@in_each_language
@given(number=st.integers(0, 999))
def test_a_percentage_is_written_as_unicode_has_it(language, number):
    expected = with_digits(
        format_percent(Decimal(number) / 100, locale=language), language
    )
    assert formats.percent(number, language) == expected.replace(
        "%", PERCENT.get(language, "%")
    )


@in_each_language
@given(amount=st.decimals(0, 10**9, places=4) | st.decimals(0, 10**6, places=2))
@example(Decimal("0.005")).via("half a cent goes to the even one")
@example(Decimal("0.015"))
@example(Decimal("2.675"))
@example(Decimal("999.995"))
@example(Decimal("1E+3"))
def test_amounts_with_the_decimals_of_their_currency(language, amount):
    for currency, pattern in PATTERNS.items():
        expected = decimal(amount, pattern, language)
        assert formats.plain(amount, currency, language) == expected


PATTERNS = {"USD": "#,##0.00", "JPY": "#,##0", "KWD": "#,##0.000"}


def amount_of(amount, currency, language):
    """As Babel writes it with ISO's decimals; Babel leaves out CLDR's space beside a letter."""
    standard = Locale.parse(language).currency_formats["standard"].pattern
    pattern = standard.replace("0.00", f"{0:.{places_of(currency)}f}")
    text = format_currency(
        amount,
        currency,
        pattern,
        language,
        currency_digits=False,
        numbering_system="default",
    )
    return re.sub(r"(?<=[^\W\d])(?=\d)", "\u00a0", with_digits(text, language))


MARKS = str.maketrans("", "", "\u200e\u200f\u2068\u2069")


@in_each_language
def test_every_currency_has_its_symbol_at_its_place_and_is_one_word(language):
    is_rtl = formats.direction(language) == "rtl"
    for currency in sorted(CODES):
        unit = unit_of(currency)
        for amount in (0 * unit, unit, 1234 * unit, 1_234_567 * unit):
            shown = formats.money(amount, currency, language)
            expected = amount_of(amount, currency, language)
            assert shown.translate(MARKS) == expected.translate(MARKS), currency
            assert " " not in shown and is_rtl == (
                shown[0] + shown[-1] == "\u2068\u2069"
            )
        less = formats.money(unit / 2, currency, language).translate(MARKS)
        assert less == f"<\u00a0{amount_of(unit, currency, language)}".translate(MARKS)


def test_no_two_currencies_look_alike():
    for language in LANGUAGES:
        assert len({formats.symbol(currency, language) for currency in CODES}) == len(
            CODES
        )


@in_each_language
@given(at_ms=st.integers(FIRST, LAST))
def test_a_day_is_written_as_unicode_has_it(language, at_ms):
    at = from_ms(at_ms)
    for skeleton, written in (
        ("MMMd", formats.day(at.date(), language)),
        ("yMMMEd", formats.date_of(at_ms, language, UTC)),
        ("yMMMM", formats.month(at.date(), language)),
    ):
        expected = format_skeleton(skeleton, at, UTC, locale=language)
        assert written == with_digits(expected, language)
    clock = with_digits(format_time(at, "short", UTC, language), language)
    assert formats.clock(at_ms, language, UTC) == clock


@in_each_language
@given(at_ms=st.integers(FIRST, LAST), name=st.sampled_from(sorted(ZONES)))
def test_any_time_of_any_zone_with_and_without_its_seconds(language, at_ms, name):
    zone = ZoneInfo(name)
    at = from_ms(at_ms).astimezone(zone)
    written, offset = formats.moment(at_ms, language, zone).rsplit(" ", 1)
    assert f"{written} UTC" == moment(at.replace(tzinfo=UTC), language)
    hours, _, minutes = offset.removeprefix("UTC").strip("+-").partition(":")
    shift = timedelta(hours=int(hours or 0), minutes=int(minutes or 0))
    assert at.utcoffset() == (-shift if "-" in offset else shift)
    seconds = formats.digits(f":{at.second:02}", language)
    head, _, tail = written.rpartition(seconds)
    assert formats.minute(at_ms, language, zone) == f"{head}{tail} {offset}"


def test_a_time_says_how_far_it_is_from_utc():
    shown = {
        name: formats.minute(0, "en", ZoneInfo(name)).split()[-1] for name in ZONES
    }
    assert shown == ZONES


def ago(elapsed_s, language):
    elapsed = timedelta(seconds=-elapsed_s)
    text = format_timedelta(elapsed, add_direction=True, threshold=1, locale=language)
    return with_digits(text, language)


@in_each_language
def test_how_long_ago_on_both_sides_of_each_unit_and_each_half(language):
    for _, unit_s in TIMEDELTA_UNITS:
        for halves in range(2, 50):
            for near_s in (-1, 0, 1):
                elapsed_s = max(1, unit_s * halves // 2 + near_s)
                assert formats.ago(elapsed_s * 1000, language) == ago(
                    elapsed_s, language
                )
    for none_ms in (-5000, 0, 999):  # is shown as a second
        assert formats.ago(none_ms, language) == ago(1, language)
