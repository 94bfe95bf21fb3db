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
# The dashes stand for decimals that are zero, as in `25,-`.
_SIGN_NUMBER_SIGN = re.compile(
    r"(?P<before>[^0-9]*?) ?(?P<number>[0-9](?:[0-9.,' ]*[0-9])?)"
    r"(?:[.,][-\u2013\u2014]{1,2})? ?(?P<after>[^0-9]*)"
)
_WHOLE_NUMBER = re.compile(r"[0-9]{1,9}")
# a number without thousands separators
_PLAIN = re.compile(r"(?P<whole>[0-9]+)(?:(?P<mark>[.,])(?P<decimals>[0-9]+))?")
# groups of three digits; the decimal mark differs from the mark that separates the groups
_GROUPED = re.compile(
    r"(?P<whole>[1-9][0-9]{0,2}(?:(?P<group>[.,' ])[0-9]{3})(?:(?P=group)[0-9]{3})*)"
    r"(?:(?!(?P=group))[.,](?P<decimals>[0-9]+))?"
)
# three digits at the end, groups of two before them
_LAKHS = re.compile(
    r"(?P<whole>[1-9][0-9]?(?:,[0-9]{2})+,[0-9]{3})(?:\.(?P<decimals>[0-9]+))?"
)


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
    rupees) and `۱۹٫۹۰`. Raises NotAnAmount if the text is no amount, is ambiguous, or
    has the sign or code of another currency. Also raises NotAnAmount for a fraction of
    the currency's smallest unit, except in US dollars.
    """
    if len(text) > LONGEST_AMOUNT:
        raise NotAnAmount
    match = _SIGN_NUMBER_SIGN.fullmatch(with_ascii_digits(text))
    if match is None or _may_be_a_decimal_point(match):
        raise NotAnAmount
    _refuse_other_sign(match["before"].strip(), currency)
    _refuse_other_sign(match["after"].strip(), currency)
    amount = _read_number(match["number"], currency)
    if amount is None:
        raise NotAnAmount
    has_fraction_of_unit = amount != round_money(amount, currency)
    if has_fraction_of_unit and currency != "USD":
        raise NotAnAmount
    return amount


def _read_number(number: str, currency: str) -> Decimal | None:
    """Returns the amount that `number` means in this currency.

    Returns None if it is no number. Raises NotAnAmount if it is ambiguous.
    """
    if places_of(currency):
        amount = _with_decimals(number, currency)
    else:
        amount = _without_decimals(number)
    if amount is None and currency in WITH_LAKHS:
        return _read(_LAKHS.fullmatch(number), places_of(currency))
    return amount


def with_ascii_digits(text: str) -> str:
    """Returns the text with its digits, decimal marks and blanks in ASCII.

    Invisible characters are removed.

    The caller must limit the text's length, since normalising a long text takes
    seconds. Raises NotAnAmount if the text has raised or circled digits, because raised
    digits can mean cents, as in `12⁵⁰`.
    """
    if any(_is_special_digit(sign) for sign in text):
        raise NotAnAmount
    visible = _UNSEEN.sub("", text)
    normalized = unicodedata.normalize("NFKC", visible)
    ascii_text = "".join(map(_ascii_sign, normalized))
    return " ".join(ascii_text.split())


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
    if not _WHOLE_NUMBER.fullmatch(digits):
        raise NotAnAmount
    number = int(digits)
    if not low <= number <= high:
        raise NotAnAmount
    return number


def _is_special_digit(sign: str) -> bool:
    """True for a raised or circled digit, which NFKC would turn into a normal digit."""
    if sign.isdecimal():
        return False
    return any(map(str.isdecimal, unicodedata.normalize("NFKC", sign)))


def _may_be_a_decimal_point(match: re.Match[str]) -> bool:
    """True if a point stands directly before the number, as in `$.50` for half a dollar.

    False if the point ends an abbreviation, as in `Rs.50`. `match` is a match of
    _SIGN_NUMBER_SIGN.
    """
    has_blank_between = match.end("before") != match.start("number")
    word, point, _ = match["before"].rpartition(".")
    if not point or has_blank_between:
        return False
    is_abbreviation = word.casefold() in WITH_POINT
    return not is_abbreviation


def _refuse_other_sign(sign: str, currency: str) -> None:
    """Raises NotAnAmount unless the sign is empty, or is the currency's code or sign.

    If the sign is that of another currency, the error has it as `foreign`.
    """
    if not sign:
        return
    word = sign.casefold().rstrip(".")
    is_code = word == currency.casefold()
    is_sign = currency in SIGNS.get(word, "").split()
    if is_code or is_sign:
        return
    is_of_other_currency = word in SIGNS or word.upper() in CODES
    if is_of_other_currency:
        raise NotAnAmount(foreign=sign)
    raise NotAnAmount


def _without_decimals(number: str) -> Decimal | None:
    """Returns the amount of a currency without decimals; None if the text is no number.

    `1.000` is a thousand, `100.00` a hundred. Decimals other than `00` are refused.
    """
    match = _GROUPED.fullmatch(number) or _PLAIN.fullmatch(number)
    if match is None or match["decimals"] not in (None, "00"):
        return None
    amount = _read(match, most_decimals=2)
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
    whole = plain["whole"]
    mark = plain["mark"]
    decimals = plain["decimals"] or ""
    has_small_prices = places == 3 and currency not in WITH_LARGE_PRICES
    is_decimal_point = mark == "." and has_small_prices
    if grouped and not is_decimal_point:
        raise NotAnAmount(_both_readings(whole + decimals, currency))
    # `1500.000` is neither a price with cents nor correctly grouped
    looks_like_thousands = len(decimals) == 3 and places < 3 and whole != "0"
    is_long_after_comma = mark == "," and len(decimals) > 3
    if looks_like_thousands or is_long_after_comma:
        return None
    return _read(plain, _MOST_DECIMALS)


def _both_readings(digits: str, currency: str) -> list[Decimal]:
    """Returns the two amounts that `1,500` can mean: 1500 and 1.5.

    `digits` are those of the number, without its mark.
    """
    thousands = Decimal(digits)
    return [round_money(thousands, currency), round_money(thousands / 1000, currency)]


def _read(match: re.Match[str] | None, most_decimals: int) -> Decimal | None:
    """Returns the amount of a number that _PLAIN, _GROUPED or _LAKHS matched.

    Returns None if there is no match, or if the number has too many digits.
    """
    if match is None:
        return None
    whole = re.sub("[.,' ]", "", match["whole"])
    decimals = match["decimals"] or ""
    if len(whole) > _MOST_DIGITS or len(decimals) > most_decimals:
        return None
    if not decimals:
        return Decimal(whole)
    return Decimal(f"{whole}.{decimals}")
