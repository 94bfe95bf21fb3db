"""Numbers and times as a language writes them: its digits, its marks, its words.

`make formats` makes translations/formats.json from Unicode's CLDR. Amounts that are copied into
wallets come from btcpay/values/money.py.
"""

import json
from datetime import UTC, date, datetime, time, timedelta, tzinfo
from decimal import Decimal
from functools import cache, partial
from pathlib import Path
from typing import Any

from btcpay.values.money import Money, btc_shown, rounded, unit_of
from btcpay.values.times import from_ms

SECONDS = ":{at.second:02}"  # their part in each language's pattern
TABLE = Path(__file__).resolve().parent / "translations" / "formats.json"


@cache
def _part(name: str) -> dict[str, Any]:
    """A part of the table: of a language, or "currencies"."""
    found: dict[str, Any] = json.loads(TABLE.read_text(encoding="utf-8"))[name]
    return found


def currency_of(tag: str) -> str | None:
    """The currency where a browser's language (BCP 47: `de-AT`) is spoken; None if not known."""
    language, *rest = tag.split("-")
    regions = [part.upper() for part in rest if len(part) == 2]
    known: dict[str, str] = _part("currencies")
    return known.get(regions[0] if regions else language.lower())


@cache
def _of(language: str) -> dict[str, Any]:
    found = _part(language)
    written = str.maketrans("0123456789", found["digits"])
    signs = written | str.maketrans({",": found["group"], ".": found["decimal"]})
    return found | {"written": written, "signs": signs}


def direction(language: str) -> str:
    """The direction of the language's lines: `ltr` or `rtl`."""
    if _of(language)["rtl"]:
        return "rtl"
    return "ltr"


def digits(text: str, language: str) -> str:
    """The text with the language's digits; its other signs stay."""
    return text.translate(_of(language)["written"])


def signs(language: str) -> str:
    """The ten digits, the decimal mark and the group mark, for the pages' scripts."""
    return "0123456789.,".translate(_of(language)["signs"])


def btc(amount_sats: int, language: str) -> str:
    """All eight places: `0,00041667` in German."""
    return btc_shown(amount_sats).translate(_of(language)["signs"])


def whole(number: int, language: str) -> str:
    """A whole number with the language's groups: `41,667`."""
    return f"{number:,}".translate(_of(language)["signs"])


def percent(number: int, language: str) -> str:
    """A number of hundredths: `12%`, with a space where the language has one."""
    return str(_of(language)["percent"].format(whole(number, language)))


def money(amount: Decimal, currency: str, language: str) -> str:
    """The amount to the nearest smallest unit, as one word: `¥1,234`; below one unit `< $0.01`."""
    unit = unit_of(currency)
    pattern = _of(language)["money"]
    sign = symbol(currency, language)
    if pattern.startswith("{0}{1}") and sign[-1].isalpha():
        sign += "\u00a0"  # CLDR's currencySpacing, which its patterns leave out: `KWD 5.000`
    is_less = 0 < amount < unit
    shown: str = pattern.format(
        sign, plain(unit if is_less else amount, currency, language)
    )
    if is_less:
        shown = f"<\u00a0{shown}"
    if _of(language)["rtl"]:
        return f"\u2068{shown}\u2069"
    return shown


def symbol(currency: str, language: str) -> str:
    """`$` of USD in English, `US$` in Spanish; the code where CLDR knows nothing shorter."""
    return str(_of(language)["symbols"].get(currency, currency))


def format_money(worth: Money, language: str) -> str:
    return money(worth.amount, worth.currency, language)


def plain(amount: Decimal, currency: str, language: str) -> str:
    """The number alone, to the nearest smallest unit, half to even: `19,90` in German."""
    return f"{rounded(amount, currency):,f}".translate(_of(language)["signs"])


def short(amount: Decimal, currency: str, language: str) -> str:
    """The number alone, without decimals when they are zero: `5`, `19,90` in German."""
    is_whole = amount == amount.to_integral_value()
    if is_whole:
        return whole(int(amount), language)
    return plain(amount, currency, language)


def moment(at_ms: int, language: str, zone: tzinfo = UTC) -> str:
    """A stored time to the second, in a zone, with its offset: `… UTC+5:45`."""
    return _with_offset(at_ms, language, zone, _of(language)["moment"])


def minute(at_ms: int, language: str, zone: tzinfo = UTC) -> str:
    """Like `moment`, without the seconds: for lists."""
    return _with_offset(
        at_ms, language, zone, _of(language)["moment"].replace(SECONDS, "")
    )


def _of_day(kind: str, shown: date, language: str) -> str:
    return _written(datetime.combine(shown, time()), language, _of(language)[kind])


def _of_moment(kind: str, at_ms: int, language: str, zone: tzinfo) -> str:
    return _written(from_ms(at_ms).astimezone(zone), language, _of(language)[kind])


day = partial(_of_day, "day")  # without its year: `Nov 22`
month = partial(_of_day, "month")  # by its first day: `November 2026`
date_of = partial(_of_moment, "date")  # for the heading of a list: `Mon, Nov 23, 2026`
clock = partial(_of_moment, "clock")  # alone, below such a heading: `2:37 AM`


def _with_offset(at_ms: int, language: str, zone: tzinfo, pattern: str) -> str:
    at = from_ms(at_ms).astimezone(zone)
    minutes = (at.utcoffset() or timedelta()) // timedelta(minutes=1)
    hours, rest = divmod(abs(minutes), 60)
    # In western digits, so that it stays one word in lines of either direction.
    offset = f"{'-' if minutes < 0 else '+'}{hours}{f':{rest:02}' if rest else ''}"
    return f"{_written(at, language, pattern)} UTC{offset if minutes else ''}"


def _written(at: datetime, language: str, pattern: str) -> str:
    table = _of(language)
    text = pattern.format(
        at=at,
        month=table["months"][at.month - 1],
        month_name=table["month_names"][at.month - 1],
        weekday=table["weekdays"][at.weekday()],
        hour=at.hour % 12 or 12,
        half=table["halves"][at.hour // 12],
    )
    return digits(text, language)


def ago(elapsed_ms: int, language: str) -> str:
    """A time in the past, at least a second ago: `12 seconds ago`."""
    elapsed_s = max(1, elapsed_ms // 1000)
    units = _of(language)["ago"]  # the longest first, the last a second
    unit_s, forms = next(unit for unit in units if elapsed_s >= unit[0])
    number = round(elapsed_s / unit_s)
    return digits(forms[plural(number, language)].format(number), language)


def plural(number: int, language: str) -> int:
    """The number's plural form, as its place in CLDR's order, zero to other."""
    return int(_of(language)["plural"][number if number < 100 else 100 + number % 100])


def groups(text: str, size: int = 4) -> list[str]:
    """An address in groups that people can compare; joined, they are the address."""
    return [text[start : start + size] for start in range(0, len(text), size)]
