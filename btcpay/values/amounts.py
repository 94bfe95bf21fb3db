"""Parses amounts of money as people type them, and refuses ambiguous ones.

Some people write `1.500` or `1,500` for 1500, others for 1.5: a single point or comma
before three digits can separate thousands or decimals. Such a text is refused as
ambiguous, with two exceptions. In a currency without decimals the mark separates
thousands. In a currency with three decimals a point is a decimal point, except in Iraqi
dinars.
"""

import re
import unicodedata
from collections.abc import Sequence
from decimal import Decimal

from btcpay.values.currency_signs import (
    SIGNS,
    WITH_LAKHS,
    WITH_LARGE_PRICES,
    WITH_POINT,
)
from btcpay.values.money import CODES, places_of, round_money

# Maximum length in characters. It is checked first, since normalising a long text takes seconds.
LONGEST_AMOUNT = 40
_MOST_DECIMALS = 9  # as in the API, which accepts fractions of a cent
_MOST_DIGITS = 15  # before the decimal mark

_MARKS = {"\u066b": ".", "\u066c": "'", "\u2019": "'", "\u02bc": "'", "\u060c": ","}
# invisible direction marks and joiners; this service's own pages contain some
_UNSEEN = re.compile("[\u061c\u200b-\u200f\u2060\u2066-\u2069\ufeff]")
_SIGN_NUMBER_SIGN = re.compile(
    r"([^0-9]*?) ?([0-9](?:[0-9.,' ]*[0-9])?)(?:[.,][-\u2013\u2014]{1,2})? ?([^0-9]*)"
)
_PLAIN = re.compile(r"([0-9]+)(?:([.,])([0-9]+))?")
_WHOLE = re.compile(r"[0-9]{1,9}")
_GROUPED = re.compile(
    r"([1-9][0-9]{0,2}(?:([.,' ])[0-9]{3})(?:\2[0-9]{3})*)(?:(?!\2)([.,])([0-9]+))?"
)
_LAKHS = re.compile(r"([1-9][0-9]?(?:,[0-9]{2})+,[0-9]{3})()(?:(\.)([0-9]+))?")


class NotAnAmount(ValueError):
    """The text is no amount, or it can be read as two amounts.

    `readings` has both amounts if there are two, else it is empty. `foreign` is the
    sign or code of another currency that the text contains, else "".
    """

    def __init__(self, readings: Sequence[Decimal] = (), foreign: str = "") -> None:
        super().__init__("not an amount")
        self.readings = readings
        self.foreign = foreign


def parse_amount(text: str, currency: str) -> Decimal:
    """Returns the amount that a person typed.

    Accepts texts such as `25`, `€19.90`, `19,90 EUR`, `1,500.00`, `1,00,000` (in
    rupees) and `۱۹٫۹۰`. Raises NotAnAmount if the text is no amount, is ambiguous, has
    the sign or code of another currency, or has a fraction of the smallest unit. Only
    dollars may have such fractions.
    """
    if len(text) > LONGEST_AMOUNT:
        raise NotAnAmount
    match = _SIGN_NUMBER_SIGN.fullmatch(with_ascii_digits(text))
    if match is None or _may_be_a_decimal_point(match):
        raise NotAnAmount
    for sign in (match[1], match[3]):
        _refuse_other_sign(sign.strip(), currency)
    amount = _read_number(match[2], currency)
    if amount is None:
        raise NotAnAmount
    is_whole_units = amount == round_money(amount, currency)
    if currency != "USD" and not is_whole_units:
        raise NotAnAmount
    return amount


def _read_number(number: str, currency: str) -> Decimal | None:
    """Returns the amount that `number` means in this currency; None if it means none.

    Raises NotAnAmount if the number is ambiguous.
    """
    if places_of(currency):
        amount = _with_decimals(number, currency)
    else:
        amount = _without_decimals(number)
    if amount is None and currency in WITH_LAKHS:
        return _read(_LAKHS.fullmatch(number), places_of(currency))
    return amount


def with_ascii_digits(text: str) -> str:
    """Converts digits, decimal marks and blanks to ASCII. Removes invisible characters.

    The caller must limit the text's length, since normalising a long text takes
    seconds. Raises NotAnAmount if the text has raised or circled digits.
    """
    if _hides_digits(text):
        raise NotAnAmount
    visible = _UNSEEN.sub("", text)
    normalized = unicodedata.normalize("NFKC", visible)
    plain = "".join(map(_ascii_sign, _UNSEEN.sub("", normalized)))
    return " ".join(plain.split())


def _ascii_sign(sign: str) -> str:
    """Returns the ASCII digit or mark for a sign; the sign itself if it is neither."""
    if sign in _MARKS:
        return _MARKS[sign]
    return str(unicodedata.decimal(sign, sign))


def parse_whole_number(text: str, low: int, high: int) -> int:
    """Returns the whole number from `low` to `high` that a person typed.

    Its digits may be those of any script, such as `۱۴`. Raises ValueError for any other
    text, such as `1_0`, `+5` or `²`, which Python's `int` or Unicode's NFKC would read
    as a number.
    """
    if len(text) > LONGEST_AMOUNT:
        raise NotAnAmount
    digits = with_ascii_digits(text)
    if not _WHOLE.fullmatch(digits) or not low <= int(digits) <= high:
        raise NotAnAmount
    return int(digits)


def _hides_digits(text: str) -> bool:
    """True if the text has raised or circled digits: in `12⁵⁰` they mean cents."""
    return any(
        not sign.isdecimal()
        and any(map(str.isdecimal, unicodedata.normalize("NFKC", sign)))
        for sign in text
    )


def _may_be_a_decimal_point(match: re.Match[str]) -> bool:
    """True if a point stands directly before the number, as in `$.50` for half a dollar.

    False if the point ends an abbreviation, as in `Rs.50`.
    """
    is_close = match.end(1) == match.start(2)
    word, point, _ = match[1].rpartition(".")
    return bool(point) and is_close and word.casefold() not in WITH_POINT


def _refuse_other_sign(sign: str, currency: str) -> None:
    """Raises NotAnAmount unless the sign is empty, or is the currency's code or sign.

    If the sign is that of another currency, the error has it as `foreign`.
    """
    word = sign.casefold().rstrip(".")
    is_code = word == currency.casefold()
    is_sign = currency in SIGNS.get(word, "").split()
    if not sign or is_code or is_sign:
        return
    is_of_other = word in SIGNS or word.upper() in CODES
    if is_of_other:
        raise NotAnAmount(foreign=sign)
    raise NotAnAmount


def _without_decimals(number: str) -> Decimal | None:
    """Returns the amount of a currency without decimals; None if the text is no number.

    `1.000` is a thousand, `100.00` a hundred.
    """
    plain = _PLAIN.fullmatch(number)
    grouped = _GROUPED.fullmatch(number)
    match = grouped or plain
    if match is None or (match[match.re.groups] or "00") != "00":
        return None
    amount = _read(match, 2)
    if amount is None:
        return None
    return amount.quantize(Decimal(1))


def _with_decimals(number: str, currency: str) -> Decimal | None:
    """Returns the amount of a currency with decimals; None if the text is no number.

    Raises NotAnAmount with both readings if it is ambiguous.
    """
    plain = _PLAIN.fullmatch(number)
    grouped = _GROUPED.fullmatch(number)
    places = places_of(currency)
    if plain is None:
        return _read(grouped, places)
    whole = plain[1]
    mark = plain[2]
    decimals = plain[3] or ""
    has_small_prices = places == 3 and currency not in WITH_LARGE_PRICES
    is_decimal_point = mark == "." and has_small_prices
    if grouped and not is_decimal_point:
        thousands = Decimal(whole + decimals)
        raise NotAnAmount(
            [round_money(thousands, currency), round_money(thousands / 1000, currency)]
        )
    may_be_group = len(decimals) == 3 and places < 3
    is_perhaps_thousands = may_be_group and whole != "0"
    is_long_after_comma = mark == "," and len(decimals) > 3
    if is_perhaps_thousands or is_long_after_comma:
        return None
    return _read(plain, _MOST_DECIMALS)


def _read(match: re.Match[str] | None, most_decimals: int) -> Decimal | None:
    """Returns the amount of a matched number; None if it has too many digits.

    The pattern's first group is the whole part, its last group the decimals.
    """
    if match is None:
        return None
    whole = re.sub("[.,' ]", "", match[1])
    decimals = match[match.re.groups] or ""
    if len(whole) > _MOST_DIGITS or len(decimals) > most_decimals:
        return None
    if not decimals:
        return Decimal(whole)
    return Decimal(f"{whole}.{decimals}")
