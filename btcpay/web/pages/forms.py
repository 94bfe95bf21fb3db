"""HTML forms: reading fields, ids of forms, typed amounts, and error messages."""

import re
from collections.abc import Sequence
from decimal import Decimal
from urllib.parse import parse_qs

from btcpay.languages import formats
from btcpay.values.amounts import NotAnAmount, parse_amount
from btcpay.values.errors import InvalidRequest, PriceUnavailable, TooLittle, TooMuch
from btcpay.values.ids import ID_CHARACTERS, random_base62
from btcpay.values.money import places_of, round_money
from btcpay.values.texts import TextRefused
from btcpay.web.body import read_body
from btcpay.web.pages import languages
from btcpay.web.pages.languages import gettext
from schemas.requests import MAX_USD

# Characters. The longest field, a descriptor, has up to 8,000.
LONGEST_FIELD = 10_000

# A code point, as an error message names a refused character.
_CODE_POINT = re.compile("U\\+[0-9A-F]{4,6}")
# An amount as pages write it into buttons and hidden fields.
_WRITTEN = re.compile(r"[0-9]{1,15}(?:\.[0-9]{1,9})?")
_EXAMPLES = {0: Decimal(1990), 2: Decimal("19.90"), 3: Decimal("19.900")}


def read_form(long_field: str = "", max_bytes: int | None = None) -> dict[str, str]:
    """Returns the first value of each field of the form, without blank fields.

    Texts are truncated as in `limit_fields`, except that of the field `long_field`.
    `max_bytes` is as in `read_body`. Raises InvalidRequest, PayloadTooLarge.
    """
    fields = parse_qs(read_body(max_bytes).decode("utf-8", "replace"))
    texts = {name: values[0] for name, values in fields.items()}
    limited = limit_fields(texts)
    if long_field in texts:
        limited[long_field] = texts[long_field]
    return limited


def limit_fields(fields: dict[str, str]) -> dict[str, str]:
    """Returns the fields, with each text truncated to LONGEST_FIELD characters.

    This bounds the time of all code that reads a field, such as normalisation. A
    truncated text is still too long for any field, so the form refuses it. An ellipsis
    at its end ensures that: blanks there could be stripped later, which could make the
    text short enough.

    Raises InvalidRequest if a field's name is too long.
    """
    longest_name = max(map(len, fields), default=0)
    if longest_name > LONGEST_FIELD:
        raise InvalidRequest(f"a field's name has more than {LONGEST_FIELD} characters")
    return {name: _shorten(text) for name, text in fields.items()}


def _shorten(text: str) -> str:
    if len(text) <= LONGEST_FIELD:
        return text
    return text[:LONGEST_FIELD] + "…"


class AmountRefused(InvalidRequest):
    """The typed amount is invalid. The message is in the request's language.

    `readings`: the two possible amounts if the text is ambiguous, else empty.
    """

    def __init__(self, message: str, readings: Sequence[Decimal] = ()) -> None:
        super().__init__(message)
        self.readings = readings


def new_form_id() -> str:
    """Returns a new random id for a form. Each display of a form has its own id."""
    return random_base62(ID_CHARACTERS)


def error_message(error: Exception) -> str:
    """Returns the message that a form shows for an error, in the request's language."""
    if isinstance(error, PriceUnavailable):
        return gettext(
            "The exchange rate is not available right now, so nothing was created."
            " Please try again in a minute."
        )
    if isinstance(error, TooMuch):
        high = formats.money(Decimal(MAX_USD), "USD", languages.current_language())
        return gettext("Enter an amount above 0 and up to %(high)s.", high=high)
    if isinstance(error, TooLittle):
        language = languages.current_language()
        least = formats.money(error.least, error.currency, language)
        return gettext(
            "Wallets cannot send such a small amount. Enter at least %(least)s.",
            least=least,
        )
    return invisible_character_message(error) or str(error)


def invisible_character_message(error: Exception) -> str:
    """Returns the message about an invisible character; "" for any other error."""
    if not (isinstance(error, TextRefused) and error.sign):
        return ""
    return gettext(
        "This contains a character that cannot be seen (%(code)s): a control character, a line"
        " break or a mark of direction. Please type the text again.",
        code=error.sign,
    )


def invisible_character_message_of(code: str) -> str:
    """Returns the message about an invisible character with this code point, such as U+202E.

    Returns "" for any other text.
    """
    if _CODE_POINT.fullmatch(code) is None:
        return ""
    return invisible_character_message(TextRefused("", sign=code))


def read_amount(text: str, currency: str, low: Decimal, high: Decimal) -> Decimal:
    """Returns the amount that a person typed, in the currency's units.

    It must be above 0 and from `low` to `high`. Raises AmountRefused.
    """
    language = languages.current_language()
    try:
        amount = parse_amount(text, currency)
    except NotAnAmount as error:
        raise _not_understood(error, text, currency, language) from None
    return _within_limits(amount, currency, low, high)


def read_written_amount(
    text: str,
    currency: str,
    low: Decimal,
    high: Decimal,
) -> Decimal:
    """Returns the amount that a page has written into a button or a hidden field.

    Pages write a decimal point, and no thousands separators: `1.000` is one Iraqi
    dinar, although a person may mean a thousand by it. Any other text is read as by
    `read_amount`. The amount has the same limits. Raises AmountRefused.
    """
    if _WRITTEN.fullmatch(text):
        amount = Decimal(text)
        if amount == round_money(amount, currency):
            return _within_limits(amount, currency, low, high)
    return read_amount(text, currency, low, high)


def _within_limits(
    amount: Decimal,
    currency: str,
    low: Decimal,
    high: Decimal,
) -> Decimal:
    """Returns the amount. Raises AmountRefused if it is not from `low` to `high`."""
    language = languages.current_language()
    if amount > 0 and low <= amount <= high:
        return amount
    most = formats.money(high, currency, language)
    if not low:
        message = gettext("Enter an amount above 0 and up to %(high)s.", high=most)
        raise AmountRefused(message)
    least = formats.money(low, currency, language)
    message = gettext("Enter an amount from %(low)s to %(high)s.", low=least, high=most)
    raise AmountRefused(message)


def is_amount(text: str, currency: str) -> bool:
    """True if the text is one unambiguous amount in the currency."""
    try:
        parse_amount(text, currency)
    except NotAnAmount:
        return False
    return True


def _not_understood(
    error: NotAnAmount, text: str, currency: str, language: str
) -> AmountRefused:
    """Returns the error for two possible amounts, another currency, or no amount."""
    if error.readings:
        first, second = error.readings
        message = gettext(
            "“%(typed)s” can be read as two amounts: %(one)s or %(other)s.",
            typed=text.strip(),
            one=formats.plain(first, currency, language),
            other=formats.plain(second, currency, language),
        )
        return AmountRefused(message, error.readings)
    if error.foreign:
        message = gettext(
            "The amount is asked for in %(currency)s, and “%(sign)s” is another currency's sign.",
            currency=currency,
            sign=error.foreign,
        )
        return AmountRefused(message)
    example = _EXAMPLES[places_of(currency)]
    message = gettext(
        "Enter an amount such as %(one)s or %(other)s.",
        one=formats.whole(25, language),
        other=formats.plain(example, currency, language),
    )
    return AmountRefused(message)
