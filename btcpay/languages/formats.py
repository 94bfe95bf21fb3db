"""Formats numbers and times for a language: its digits, separators and words.

`make formats` makes translations/formats.json from Unicode's CLDR. Amounts that are
copied into wallets are formatted in btcpay/values/money.py.
"""

import json
from datetime import UTC, date, datetime, time, timedelta, tzinfo
from decimal import Decimal
from functools import cache
from pathlib import Path
from typing import Any

from btcpay.values.money import Money, full_btc_text, round_money, unit_of
from btcpay.values.times import from_ms

SECONDS = ":{at.second:02}"  # the seconds in the pattern of every language
TABLE = Path(__file__).resolve().parent / "translations" / "formats.json"


_DIGITS = "0123456789"
# How patterns begin in languages that write the currency's symbol directly before the number.
_SYMBOL_THEN_NUMBER = "{0}{1}"


@cache
def _part(name: str) -> dict[str, Any]:
    """Returns an entry of the table: a language's, or "currencies"."""
    part: dict[str, Any] = json.loads(TABLE.read_text(encoding="utf-8"))[name]
    return part


def currency_of(tag: str) -> str | None:
    """Returns the usual currency of a browser's language tag such as `de-AT` (BCP 47).

    It is the currency of the tag's region. If the tag has no region, it is the usual
    currency of the language. Returns None if the currency is unknown.
    """
    language, *subtags = tag.split("-")
    currencies: dict[str, str] = _part("currencies")
    for subtag in subtags:
        is_region = len(subtag) == 2
        if is_region:
            return currencies.get(subtag.upper())
    return currencies.get(language.lower())


@cache
def _conventions(language: str) -> dict[str, Any]:
    """Returns the language's entry of the table, with two tables for str.translate.

    `to_digits` replaces digits. `to_signs` replaces digits and separators.
    """
    part = _part(language)
    to_digits = str.maketrans(_DIGITS, part["digits"])
    marks = str.maketrans({",": part["group"], ".": part["decimal"]})
    return part | {"to_digits": to_digits, "to_signs": to_digits | marks}


def direction(language: str) -> str:
    """Returns the direction in which the language is written: `ltr` or `rtl`."""
    if _conventions(language)["rtl"]:
        return "rtl"
    return "ltr"


def digits(text: str, language: str) -> str:
    """Returns the text with each digit 0 to 9 replaced by the language's digit."""
    return text.translate(_conventions(language)["to_digits"])


def _to_signs(text: str, language: str) -> str:
    """Replaces the digits, points and commas of `1,234.5` by the language's signs."""
    return text.translate(_conventions(language)["to_signs"])


def signs(language: str) -> str:
    """Returns the language's ten digits, decimal mark and group mark as one text.

    The scripts of pages format numbers with it.
    """
    return _to_signs(f"{_DIGITS}.,", language)


def has_decimal_comma(language: str) -> bool:
    """True if numbers of the language have a comma as the decimal mark."""
    return _to_signs(".", language) == ","


def btc(amount_sats: int, language: str) -> str:
    """Formats satoshis as bitcoin with all eight decimals: `0,00041667` in German."""
    return _to_signs(full_btc_text(amount_sats), language)


def whole(number: int, language: str) -> str:
    """Formats an integer with the language's group marks: `41,667`."""
    return _to_signs(f"{number:,}", language)


def feerate(sats_per_kvb: int, language: str) -> str:
    """Formats a fee rate: 1,500 satoshis per 1,000 vbytes become `1.5 sat/vB`."""
    number = _to_signs(f"{Decimal(sats_per_kvb) / 1000:,.1f}", language)
    return f"{number} sat/vB"


def percent(number: int | Decimal, language: str) -> str:
    """Formats a percentage: `12%`, in French `7,7 %`, with all decimals of the number."""
    pattern = _conventions(language)["percent"]
    return str(pattern.format(_to_signs(f"{Decimal(number):,f}", language)))


def money(amount: Decimal, currency: str, language: str) -> str:
    """Formats an amount with its currency, rounded to the smallest unit: `¥1,234`.

    An amount above 0 and below the smallest unit becomes `< $0.01`. Browsers cannot
    break the text into two lines.
    """
    unit = unit_of(currency)
    is_below_unit = 0 < amount < unit
    if is_below_unit:
        amount = unit
    text = _with_symbol(plain(amount, currency, language), currency, language)
    if is_below_unit:
        text = f"<\u00a0{text}"
    if direction(language) == "rtl":
        # isolated from the direction of the text around it (UAX #9)
        return f"\u2068{text}\u2069"
    return text


def _with_symbol(number: str, currency: str, language: str) -> str:
    """Returns the formatted number with the symbol of its currency."""
    pattern: str = _conventions(language)["money"]
    sign = symbol(currency, language)
    is_before_number = pattern.startswith(_SYMBOL_THEN_NUMBER)
    if is_before_number and sign[-1].isalpha():
        sign += "\u00a0"  # CLDR's currencySpacing, which its patterns omit: `KWD 5.000`
    return pattern.format(sign, number)


def symbol(currency: str, language: str) -> str:
    """Returns the symbol of a currency. For USD it is `$` in English, `US$` in Spanish.

    Returns the currency's code if CLDR has no symbol.
    """
    return str(_conventions(language)["symbols"].get(currency, currency))


def format_money(worth: Money, language: str) -> str:
    return money(worth.amount, worth.currency, language)


def plain(amount: Decimal, currency: str, language: str) -> str:
    """Formats an amount with no currency, but with its decimals: `19,90` in German.

    The amount is rounded to the currency's smallest unit, half to even.
    """
    return _to_signs(f"{round_money(amount, currency):,f}", language)


def short(amount: Decimal, currency: str, language: str) -> str:
    """Formats an amount with no currency: `19.90`, or `5` if all decimals are zero."""
    is_whole = amount == amount.to_integral_value()
    if is_whole:
        return whole(int(amount), language)
    return plain(amount, currency, language)


def moment(at_ms: int, language: str, zone: tzinfo = UTC) -> str:
    """Formats a time to the second in a time zone, with the zone's offset: `… UTC+5:45`."""
    pattern = _conventions(language)["moment"]
    return _with_offset(at_ms, language, zone, pattern)


def minute(at_ms: int, language: str, zone: tzinfo = UTC) -> str:
    """Formats a time to the minute in a time zone, with the zone's offset, for lists."""
    pattern = _conventions(language)["moment"].replace(SECONDS, "")
    return _with_offset(at_ms, language, zone, pattern)


def day(at_day: date, language: str) -> str:
    """Formats a day and omits its year: `Nov 22`."""
    return _format_day(at_day, language, "day")


def month(at_day: date, language: str) -> str:
    """Formats the month and the year of a day: `November 2026`."""
    return _format_day(at_day, language, "month")


def date_of(at_ms: int, language: str, zone: tzinfo) -> str:
    """Formats the date of a time, for the heading of a list: `Mon, Nov 23, 2026`."""
    return _format_moment(at_ms, language, zone, "date")


def clock(at_ms: int, language: str, zone: tzinfo) -> str:
    """Formats the time of day, for a list below a date: `2:37 AM`."""
    return _format_moment(at_ms, language, zone, "clock")


def _format_day(at_day: date, language: str, kind: str) -> str:
    at = datetime.combine(at_day, time())
    return _fill(at, language, _conventions(language)[kind])


def _format_moment(at_ms: int, language: str, zone: tzinfo, kind: str) -> str:
    at = from_ms(at_ms).astimezone(zone)
    return _fill(at, language, _conventions(language)[kind])


def _with_offset(at_ms: int, language: str, zone: tzinfo, pattern: str) -> str:
    at = from_ms(at_ms).astimezone(zone)
    return f"{_fill(at, language, pattern)} UTC{_offset(at)}"


def _offset(at: datetime) -> str:
    """Returns the time's offset from UTC: `+5:45`, `-3`, or "" for UTC.

    It has western digits, so that it stays one word.
    """
    minutes = (at.utcoffset() or timedelta()) // timedelta(minutes=1)
    if minutes == 0:
        return ""
    sign = "+"
    if minutes < 0:
        sign = "-"
    hours, rest = divmod(abs(minutes), 60)
    if rest:
        return f"{sign}{hours}:{rest:02}"
    return f"{sign}{hours}"


def _fill(at: datetime, language: str, pattern: str) -> str:
    """Returns the pattern with the time's words and numbers."""
    conventions = _conventions(language)
    text = pattern.format(
        at=at,
        month=conventions["months"][at.month - 1],
        month_name=conventions["month_names"][at.month - 1],
        weekday=conventions["weekdays"][at.weekday()],
        hour=at.hour % 12 or 12,
        half=conventions["halves"][at.hour // 12],
    )
    return digits(text, language)


def ago(elapsed_ms: int, language: str) -> str:
    """Formats how long ago something was: `12 seconds ago`.

    Less than a second counts as one.
    """
    elapsed_s = max(1, elapsed_ms // 1000)
    # from a year to a second: the unit's length in seconds, and its plural forms
    units = _conventions(language)["ago"]
    unit_s, plural_forms = next(
        (length_s, forms) for length_s, forms in units if elapsed_s >= length_s
    )
    number = round(elapsed_s / unit_s)
    form = plural_forms[plural_form(number, language)]
    return digits(form.format(number), language)


def plural_form(number: int, language: str) -> int:
    """Returns the index of the number's plural form, in CLDR's order."""
    # A text with a digit for each number below 100, then one for each possible value of a higher
    # number's last two digits.
    forms = _conventions(language)["plural"]
    if number < 100:
        return int(forms[number])
    return int(forms[100 + number % 100])


def groups(text: str, size: int = 4) -> list[str]:
    """Splits an address into groups of `size` characters, which people can compare."""
    return [text[start : start + size] for start in range(0, len(text), size)]
