"""How our languages write numbers, money and times: of Unicode's CLDR what pages need, by Babel.

`make formats` runs this: it writes the table that the service reads in Babel's place.
"""

import json
from datetime import date, time
from typing import Any

from babel import Locale, dates
from babel.core import get_global
from babel.numbers import get_territory_currencies

from btcpay.languages.catalogs import LANGUAGES
from btcpay.languages.formats import TABLE
from btcpay.values.money import CODES

# CLDR's fields of a pattern (UTS 35) as Python formats them; others are a KeyError.
FIELDS = {
    ("y", 1): "{at.year}", ("M", 1): "{at.month}", ("M", 2): "{at.month:02}", ("M", 3): "{month}",
    ("L", 3): "{month}", ("M", 4): "{month_name}", ("E", 1): "{weekday}", ("E", 3): "{weekday}",
    ("d", 1): "{at.day}", ("d", 2): "{at.day:02}", ("H", 1): "{at.hour}", ("H", 2): "{at.hour:02}",
    ("h", 1): "{hour}", ("m", 2): "{at.minute:02}", ("s", 2): "{at.second:02}", ("a", 1): "{half}",
}  # fmt: skip


def moment(locale: Locale) -> str:
    """The pattern of a medium date with its time, for `str.format`."""
    both = str(dates.get_datetime_format("medium", locale=locale)).replace("'", "")
    clock = dates.get_time_format("medium", locale).pattern
    day = dates.get_date_format("medium", locale).pattern
    return as_format(both.replace("{0}", clock).replace("{1}", day))


def skeleton(locale: Locale, name: str) -> str:
    return as_format(locale.datetime_skeletons[name].pattern)


def signs(locale: Locale) -> dict[str, str]:
    """The symbols of currencies that are not their codes.

    In a line that runs from right to left `US$` ends with a mark: else the `$` would come first.
    """
    own = {code: locale.currency_symbols.get(code, code) for code in sorted(CODES)}
    mark = "\u200e" if locale.text_direction == "rtl" else ""
    return {
        code: symbol + mark if symbol[0].isascii() and symbol[0].isalpha() else symbol
        for code, symbol in own.items()
        if symbol != code
    }


def as_format(pattern: str) -> str:
    pieces: list[tuple[str, Any]] = dates.tokenize_pattern(pattern)
    return "".join(
        str(value) if kind == "chars" else FIELDS[value] for kind, value in pieces
    )


# The first of the ten digits of a numbering system (UTS 35).
ZEROS = {"latn": "0", "arab": "\u0660", "arabext": "\u06f0"}


def plurals(locale: Locale) -> list[str]:
    """The plural categories of a language, each once, in the order of its catalog's forms."""
    found = {locale.plural_form(number) for number in range(200)}
    return [
        one for one in ("zero", "one", "two", "few", "many", "other") if one in found
    ]


def ago(locale: Locale) -> list[list[Any]]:
    """Each unit's seconds, and its past in each plural category."""
    past = {
        unit: locale._data["date_fields"][unit]["past"]
        for unit, _ in dates.TIMEDELTA_UNITS
    }
    return [
        [
            unit_s,
            [past[unit].get(form, past[unit]["other"]) for form in plurals(locale)],
        ]
        for unit, unit_s in dates.TIMEDELTA_UNITS
    ]


def currencies() -> dict[str, str]:
    """The currency of each region (`AT`), and of the likeliest region of each language (`de`)."""
    day = date(2026, 1, 1)  # one day for all, whenever this runs
    used = {
        region: get_territory_currencies(region, day)
        for region in get_global("territory_currencies")
    }
    of_region = {
        region: codes[0]
        for region, codes in used.items()
        if codes and codes[0] in CODES
    }
    likely = {
        tag: full.split("_")[-1] for tag, full in get_global("likely_subtags").items()
    }
    of_language = {
        tag: of_region[region]
        for tag, region in likely.items()
        if len(tag) == 2 and region in of_region
    }
    return dict(sorted((of_region | of_language).items()))


def table() -> dict[str, dict[str, Any]]:
    """The file's content: by language, and the currencies of places."""
    found: dict[str, dict[str, Any]] = {"currencies": currencies()}
    for language in LANGUAGES:
        locale = Locale.parse(language)
        system = locale.default_numbering_system
        symbols = locale.number_symbols[system]
        forms = plurals(locale)
        percent = locale.percent_formats[None].pattern.replace("#,##0", "{0}")
        money = locale.currency_formats["standard"].pattern.partition(";")[0]
        found[language] = {
            "rtl": locale.text_direction == "rtl",
            "digits": "".join(chr(ord(ZEROS[system]) + value) for value in range(10)),
            "decimal": symbols["decimal"],
            "group": symbols["group"],
            "percent": percent.replace("%", symbols["percentSign"]),
            # The currency's symbol, and the number.
            "money": money.replace("#,##0.00", "{1}").replace("\u00a4", "{0}"),
            "symbols": signs(locale),
            "moment": moment(locale),
            "day": skeleton(locale, "MMMd"),
            "date": skeleton(locale, "yMMMEd"),
            "month": skeleton(locale, "yMMMM"),
            "clock": as_format(dates.get_time_format("short", locale).pattern),
            "months": [
                locale.months["format"]["abbreviated"][month] for month in range(1, 13)
            ],
            "month_names": [
                locale.months["format"]["wide"][month] for month in range(1, 13)
            ],
            "weekdays": [locale.days["format"]["abbreviated"][day] for day in range(7)],
            "halves": [
                dates.format_time(time(hour), "a", locale=locale) for hour in (0, 12)
            ],
            "ago": ago(locale),
            # Of 0 to 199; whatever is greater is as its last two digits behind a hundred.
            "plural": "".join(
                str(forms.index(locale.plural_form(n))) for n in range(200)
            ),
        }
    return found


if __name__ == "__main__":
    TABLE.write_text(
        json.dumps(table(), ensure_ascii=False, indent=1) + "\n", encoding="utf-8"
    )
