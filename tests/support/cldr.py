"""How our languages write numbers and times: of Unicode's CLDR, which Babel has, what pages need.

`make catalogs` runs this: it writes the table that the service reads in Babel's place.
"""

import json
from datetime import time
from typing import Any

from babel import Locale, dates

from btcpay.languages.catalogs import LANGUAGES
from btcpay.languages.formats import TABLE

# CLDR's fields of a pattern (UTS 35) as Python formats them; others are a KeyError.
FIELDS = {
    ("y", 1): "{at.year}",
    ("M", 1): "{at.month}",
    ("M", 2): "{at.month:02}",
    ("M", 3): "{month}",
    ("d", 1): "{at.day}",
    ("d", 2): "{at.day:02}",
    ("H", 1): "{at.hour}",
    ("H", 2): "{at.hour:02}",
    ("h", 1): "{hour}",
    ("m", 2): "{at.minute:02}",
    ("s", 2): "{at.second:02}",
    ("a", 1): "{half}",
}


def moment(locale: Locale) -> str:
    """The pattern of a medium date with its time, for `str.format`."""
    both = str(dates.get_datetime_format("medium", locale=locale)).replace("'", "")
    clock = dates.get_time_format("medium", locale).pattern
    pattern = both.replace("{0}", clock).replace(
        "{1}", dates.get_date_format("medium", locale).pattern
    )
    return as_format(pattern)


def day(locale: Locale) -> str:
    """The pattern of a day and its month."""
    return as_format(locale.datetime_skeletons["MMMd"].pattern)


def as_format(pattern: str) -> str:
    """CLDR's pattern for `str.format`."""
    return "".join(
        str(value) if kind == "chars" else FIELDS[value]
        for kind, value in dates.tokenize_pattern(pattern)
    )


def ago(locale: Locale) -> list[list[int | str]]:
    """Each unit's seconds, and its past for one and for more of it."""
    past = {unit: locale._data["date_fields"][unit]["past"] for unit, _ in dates.TIMEDELTA_UNITS}
    return [
        [unit_s, past[unit].get(locale.plural_form(1), past[unit]["other"]), past[unit]["other"]]
        for unit, unit_s in dates.TIMEDELTA_UNITS
    ]


def table() -> dict[str, dict[str, Any]]:
    """What the file holds, by language."""
    found = {}
    for language in LANGUAGES:
        locale = Locale.parse(language)
        found[language] = {
            "decimal": locale.number_symbols["latn"]["decimal"],
            "group": locale.number_symbols["latn"]["group"],
            "moment": moment(locale),
            "day": day(locale),
            "months": [locale.months["format"]["abbreviated"][month] for month in range(1, 13)],
            "halves": [dates.format_time(time(hour), "a", locale=locale) for hour in (0, 12)],
            "ago": ago(locale),
        }
    return found


if __name__ == "__main__":
    TABLE.write_text(json.dumps(table(), ensure_ascii=False, indent=1) + "\n", encoding="utf-8")
