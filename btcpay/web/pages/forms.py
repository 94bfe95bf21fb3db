"""Forms: a random text for each, the amount that somebody typed, the reason for a refusal."""

import re
import unicodedata
from collections.abc import Sequence
from decimal import Decimal
from urllib.parse import parse_qs

from btcpay.languages import formats
from btcpay.values.errors import InvalidRequest, PriceUnavailable, TooLittle, TooMuch
from btcpay.values.ids import ID_CHARACTERS, random_base62
from btcpay.values.money import places_of, rounded
from btcpay.web.body import read_body
from btcpay.web.pages import languages
from btcpay.web.pages.languages import gettext
from schemas.requests import MAX_USD

LONGEST_AMOUNT = 40  # characters, before it is normalised, which takes seconds for a long text
LONGEST_FIELD = 10_000  # characters; the longest that any field takes is a descriptor's 8,000

# Three decimals only after a zero: `1.000` and `1,000` are a dollar to some, a thousand to others.
# With three decimals the mark is a point.
_AMOUNT = re.compile(
    r"(0|[0-9]{1,9})(?:\.([0-9]{1,2}|[0-9]{4,9}|(?<=^0\.)[0-9]{3})|,([0-9]{1,2}))?"
)
_THOUSANDTHS = re.compile(r"(0|[0-9]{1,9})(?:\.([0-9]{1,3})|,([0-9]{1,2}))?")
_WHOLE = re.compile(r"([0-9]{1,11})()()")
# Groups of three, with one mark: `1,500.00`, `1.500.000`, `1'500`. Before three digits a lone comma
# or point is clearly a group mark only if the currency has no decimals.
_GROUPS = re.compile(
    r"([1-9][0-9]{0,2}(?:([.,' ])[0-9]{3})(?:\2[0-9]{3}){0,2})(?:(?!\2)[.,]([0-9]{1,9}))?"
)

# Decimal marks and group marks of Arabic, Persian and Swiss amounts.
_MARKS = {"\u066b": ".", "\u066c": "'", "\u2019": "'"}
_EXAMPLES = {0: Decimal(1990), 2: Decimal("19.90"), 3: Decimal("19.900")}


def fields_of_form() -> dict[str, str]:
    """The first value of each field; blank ones are left out. Raises InvalidRequest."""
    fields = parse_qs(read_body().decode("utf-8", "replace"))
    return bounded({name: values[0] for name, values in fields.items()})


def bounded(fields: dict[str, str]) -> dict[str, str]:
    """The fields of a form. Raises InvalidRequest for a name or a text that no field takes.

    So whatever reads a field has a bounded time for it, even if it normalises the text.
    """
    longest = max(map(len, (*fields, *fields.values())), default=0)
    if longest > LONGEST_FIELD:
        raise InvalidRequest(f"a field of the form has more than {LONGEST_FIELD} characters")
    return fields


class AmountRefused(InvalidRequest):
    """An amount that cannot be taken; its text is in the language of the request.

    `readings`: the two amounts that an ambiguous text can mean.
    """

    def __init__(self, message: str, readings: Sequence[Decimal] = ()) -> None:
        super().__init__(message)
        self.readings = readings


def new_form() -> str:
    """A random text, a new one each time that a form is shown."""
    return random_base62(ID_CHARACTERS)


def said(refused: Exception) -> str:
    """The sentence with which a form explains an error, in the language of the request."""
    if isinstance(refused, PriceUnavailable):
        return gettext(
            "The exchange rate is not available right now, so nothing was created."
            " Please try again in a minute."
        )
    if isinstance(refused, TooMuch):
        high = formats.money(Decimal(MAX_USD), "USD", languages.current())
        return gettext("Enter an amount above 0 and up to %(high)s.", high=high)
    if isinstance(refused, TooLittle):
        least = formats.money(refused.least, refused.currency, languages.current())
        return gettext(
            "Wallets cannot send such a small amount. Enter at least %(least)s.", least=least
        )
    return str(refused)


def read_amount(text: str, currency: str, low: Decimal, high: Decimal) -> Decimal:
    """The typed amount, from `low` to `high` and above 0. Raises AmountRefused."""
    language, amount = languages.current(), parse_amount(text, currency)
    if amount is None:
        raise _not_understood(text, currency, language)
    if not (amount > 0 and low <= amount <= high):
        least, most = (formats.money(bound, currency, language) for bound in (low, high))
        if low:
            message = gettext("Enter an amount from %(low)s to %(high)s.", low=least, high=most)
        else:
            message = gettext("Enter an amount above 0 and up to %(high)s.", high=most)
        raise AmountRefused(message)
    return amount


def _not_understood(text: str, currency: str, language: str) -> AmountRefused:
    typed = _plain(text[:LONGEST_AMOUNT])
    if _is_ambiguous(typed, currency):
        whole = Decimal(re.sub("[.,]", "", typed))
        readings = [rounded(amount, currency) for amount in (whole, whole / 1000)]
        one, other = (formats.plain(amount, currency, language) for amount in readings)
        message = gettext(
            "“%(typed)s” can be read as two amounts: %(one)s or %(other)s.",
            typed=text.strip(),
            one=one,
            other=other,
        )
        return AmountRefused(message, readings)
    other = formats.plain(_EXAMPLES[places_of(currency)], currency, language)
    one = formats.whole(25, language)
    return AmountRefused(
        gettext("Enter an amount such as %(one)s or %(other)s.", one=one, other=other)
    )


def parse_amount(text: str, currency: str) -> Decimal | None:
    """`25`, `$19.90`, `19,90`, `1,500.00`, `۱۹٫۹۰`; None for no amount, or an ambiguous one."""
    if len(text) > LONGEST_AMOUNT:
        return None
    typed = _plain(text)
    form = {0: _WHOLE, 2: _AMOUNT, 3: _THOUSANDTHS}[places_of(currency)]
    grouped = _GROUPS.fullmatch(typed)
    if match := form.fullmatch(typed):
        whole, decimals = match[1], match[2] or match[3]
    elif grouped and not _is_ambiguous(typed, currency):
        whole, decimals = re.sub("[.,' ]", "", grouped[1]), grouped[3]
    else:
        return None
    amount = Decimal(f"{whole}.{decimals}" if decimals else whole)
    return amount if currency == "USD" or amount == rounded(amount, currency) else None


def _is_ambiguous(typed: str, currency: str) -> bool:
    return (
        places_of(currency) > 0 and re.fullmatch("[1-9][0-9]{0,2}[.,][0-9]{3}", typed) is not None
    )


def _plain(text: str) -> str:
    """The text without signs around it, its digits and marks in ASCII."""
    plain = unicodedata.normalize("NFKC", text).strip().removeprefix("$").lstrip()
    return "".join(_MARKS.get(sign) or str(unicodedata.decimal(sign, sign)) for sign in plain)
