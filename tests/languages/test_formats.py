"""Numbers and times as pages write them, beside what Babel writes: the same in each language."""

import json
from datetime import UTC, datetime, timedelta
from decimal import Decimal

import cldr
import pytest
from babel.dates import TIMEDELTA_UNITS, format_datetime, format_skeleton, format_timedelta
from babel.numbers import format_decimal
from hypothesis import given
from hypothesis import strategies as st

from btcpay.languages import formats
from btcpay.languages.catalogs import LANGUAGES
from btcpay.times import from_ms, to_ms

in_each_language = pytest.mark.parametrize("language", LANGUAGES)
FIRST, LAST = (to_ms(datetime(year, 1, 1, tzinfo=UTC)) for year in (2009, 2200))


def test_the_table_is_what_make_catalogs_writes():
    assert json.loads(formats.TABLE.read_text(encoding="utf-8")) == cldr.table()


@in_each_language
@given(number=st.integers(0, 21_000_000 * 10**8))
def test_a_whole_number(language, number):
    assert formats.whole(number, language) == format_decimal(number, "#,##0", language)


@in_each_language
@given(amount_usd=st.decimals(0, 10**9, places=4) | st.decimals(0, 10**6, places=2))
def test_dollars_and_cents(language, amount_usd):
    expected = format_decimal(amount_usd, "#,##0.00", language)
    assert formats.cents(amount_usd, language) == expected


@in_each_language
@pytest.mark.parametrize("text", ["0.005", "0.015", "2.675", "999.995", "1E+3", "1234567.8"])
def test_half_a_cent_goes_to_the_even_one(language, text):
    expected = format_decimal(Decimal(text), "#,##0.00", language)
    assert formats.cents(Decimal(text), language) == expected


@in_each_language
def test_a_time_in_every_month_at_every_hour(language):
    for month in range(1, 13):
        for hour in range(24):
            at = datetime(2026, month, 1 + hour, hour, 59 - hour, month * 5 - 1, tzinfo=UTC)
            expected = f"{format_datetime(at, 'medium', UTC, language)} UTC"
            assert formats.moment(to_ms(at), language) == expected


@in_each_language
@given(at_ms=st.integers(FIRST, LAST))
def test_any_day(language, at_ms):
    expected = format_skeleton("MMMd", from_ms(at_ms), UTC, locale=language)
    assert formats.day(at_ms, language) == expected


@in_each_language
@given(at_ms=st.integers(FIRST, LAST))
def test_any_time(language, at_ms):
    expected = f"{format_datetime(from_ms(at_ms), 'medium', UTC, language)} UTC"
    assert formats.moment(at_ms, language) == expected


@in_each_language
@given(at_ms=st.integers(FIRST, LAST))
def test_any_time_without_its_seconds(language, at_ms):
    head, _, tail = formats.moment(at_ms, language).rpartition(f":{from_ms(at_ms).second:02}")
    assert formats.minute(at_ms, language) == head + tail


def ago(elapsed_s: int, language: str) -> str:
    return format_timedelta(
        timedelta(seconds=-elapsed_s), add_direction=True, threshold=1, locale=language
    )


@in_each_language
def test_how_long_ago_on_both_sides_of_each_unit_and_each_half(language):
    for _, unit_s in TIMEDELTA_UNITS:
        for halves in range(2, 50):
            for near_s in (-1, 0, 1):
                elapsed_s = max(1, unit_s * halves // 2 + near_s)
                assert formats.ago(elapsed_s * 1000, language) == ago(elapsed_s, language)


@in_each_language
@given(elapsed_s=st.integers(1, 100 * 365 * 86400))
def test_any_time_ago(language, elapsed_s):
    assert formats.ago(elapsed_s * 1000 + 999, language) == ago(elapsed_s, language)


@in_each_language
@pytest.mark.parametrize("elapsed_ms", [-5000, 0, 999])
def test_less_than_a_second_ago_is_one(language, elapsed_ms):
    assert formats.ago(elapsed_ms, language) == ago(1, language)
