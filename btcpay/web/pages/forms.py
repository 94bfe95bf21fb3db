"""Forms: a random text for each, the amount that somebody typed, the reason for a refusal."""

import re
from collections.abc import Sequence
from decimal import Decimal
from urllib.parse import parse_qs

from btcpay.languages import formats
from btcpay.values.amounts import NotAnAmount, parse_amount
from btcpay.values.errors import InvalidRequest, PriceUnavailable, TooLittle, TooMuch
from btcpay.values.ids import ID_CHARACTERS, random_base62
from btcpay.values.money import places_of
from btcpay.values.texts import TextRefused
from btcpay.web.body import read_body
from btcpay.web.pages import languages
from btcpay.web.pages.languages import gettext
from schemas.requests import MAX_USD

LONGEST_FIELD = (
    10_000  # characters; the longest that any field takes is a descriptor's 8,000
)

_SIGN = re.compile("U\\+[0-9A-F]{4,6}")  # as a refused text names one
_EXAMPLES = {0: Decimal(1990), 2: Decimal("19.90"), 3: Decimal("19.900")}


def read_form() -> dict[str, str]:
    """The first value of each field; blank ones are left out. Raises InvalidRequest."""
    fields = parse_qs(read_body().decode("utf-8", "replace"))
    return limit_fields({name: values[0] for name, values in fields.items()})


def limit_fields(fields: dict[str, str]) -> dict[str, str]:
    """The fields of a form, none longer than any may be. Raises InvalidRequest for a long name.

    So whatever reads a field has a bounded time for it, even if it normalises the text. A longer
    text stays too long for every field, whose own form says so; the sign at its end keeps one whose
    rest was blanks from being read as if it had ended there.
    """
    longest_name = max(map(len, fields), default=0)
    if longest_name > LONGEST_FIELD:
        raise InvalidRequest(f"a field's name has more than {LONGEST_FIELD} characters")
    return {name: _cut(text) for name, text in fields.items()}


def _cut(text: str) -> str:
    if len(text) <= LONGEST_FIELD:
        return text
    return text[:LONGEST_FIELD] + "…"


class AmountRefused(InvalidRequest):
    """An amount that cannot be taken; its text is in the language of the request.

    `readings`: the two amounts that an ambiguous text can mean.
    """

    def __init__(self, message: str, readings: Sequence[Decimal] = ()) -> None:
        super().__init__(message)
        self.readings = readings


def new_form_id() -> str:
    """A random text, a new one each time that a form is shown."""
    return random_base62(ID_CHARACTERS)


def error_message(refused: Exception) -> str:
    """The sentence with which a form explains an error, in the language of the request."""
    if isinstance(refused, PriceUnavailable):
        return gettext(
            "The exchange rate is not available right now, so nothing was created."
            " Please try again in a minute."
        )
    if isinstance(refused, TooMuch):
        high = formats.money(Decimal(MAX_USD), "USD", languages.current_language())
        return gettext("Enter an amount above 0 and up to %(high)s.", high=high)
    if isinstance(refused, TooLittle):
        least = formats.money(
            refused.least, refused.currency, languages.current_language()
        )
        return gettext(
            "Wallets cannot send such a small amount. Enter at least %(least)s.",
            least=least,
        )
    return invisible_character_message(refused) or str(refused)


def invisible_character_message(refused: Exception) -> str:
    """The sentence about a sign that people cannot see; "" for another refusal."""
    if not (isinstance(refused, TextRefused) and refused.sign):
        return ""
    return gettext(
        "This contains a character that cannot be seen (%(code)s): a control character, a line"
        " break or a mark of direction. Please type the text again.",
        code=refused.sign,
    )


def invisible_character_message_of(code: str) -> str:
    """The same sentence of a sign that an address names, such as U+202E; "" for anything else."""
    is_code = _SIGN.fullmatch(code) is not None
    if is_code:
        return invisible_character_message(TextRefused("", sign=code))
    return ""


def read_amount(text: str, currency: str, low: Decimal, high: Decimal) -> Decimal:
    """The typed amount, from `low` to `high` and above 0. Raises AmountRefused."""
    language = languages.current_language()
    try:
        amount = parse_amount(text, currency)
    except NotAnAmount as error:
        raise _not_understood(error, text, currency, language) from None
    if not (amount > 0 and low <= amount <= high):
        least, most = (
            formats.money(bound, currency, language) for bound in (low, high)
        )
        if low:
            message = gettext(
                "Enter an amount from %(low)s to %(high)s.", low=least, high=most
            )
        else:
            message = gettext("Enter an amount above 0 and up to %(high)s.", high=most)
        raise AmountRefused(message)
    return amount


def is_amount(text: str, currency: str) -> bool:
    """True if the text means one amount of the currency."""
    try:
        parse_amount(text, currency)
    except NotAnAmount:
        return False
    return True


def _not_understood(
    error: NotAnAmount, text: str, currency: str, language: str
) -> AmountRefused:
    if error.readings:
        one, other = (
            formats.plain(amount, currency, language) for amount in error.readings
        )
        message = gettext(
            "“%(typed)s” can be read as two amounts: %(one)s or %(other)s.",
            typed=text.strip(),
            one=one,
            other=other,
        )
        return AmountRefused(message, error.readings)
    if error.foreign:
        message = gettext(
            "The amount is asked for in %(currency)s, and “%(sign)s” is another currency's sign.",
            currency=currency,
            sign=error.foreign,
        )
        return AmountRefused(message)
    other = formats.plain(_EXAMPLES[places_of(currency)], currency, language)
    one = formats.whole(25, language)
    return AmountRefused(
        gettext("Enter an amount such as %(one)s or %(other)s.", one=one, other=other)
    )
