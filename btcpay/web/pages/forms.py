"""Reads HTML forms and the amounts in them, and words their error messages."""

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

# The maximum number of characters of a field. The longest valid field is an output descriptor of up
# to 8,000 characters.
LONGEST_FIELD = 10_000

# A code point, as an error message names a refused character.
_CODE_POINT = re.compile("U\\+[0-9A-F]{4,6}")
# An amount as pages write it into buttons and hidden fields.
_WRITTEN = re.compile(r"[0-9]{1,15}(?:\.[0-9]{1,9})?")
_EXAMPLES = {0: Decimal(1990), 2: Decimal("19.90"), 3: Decimal("19.900")}


def read_form(long_field: str = "", max_bytes: int | None = None) -> dict[str, str]:
    """Returns the first value of each field of the form, without empty fields.

    Each text except that of the field `long_field` is truncated by `limit_fields`.
    Raises PayloadTooLarge if the form has more than `max_bytes` (None means the maximum
    of the settings). Raises InvalidRequest if the form arrives incomplete, or if a
    field's name is too long.
    """
    fields = parse_qs(read_body(max_bytes).decode("utf-8", "replace"))
    texts = {name: values[0] for name, values in fields.items()}
    limited = limit_fields(texts)
    if long_field in texts:
        limited[long_field] = texts[long_field]
    return limited


def limit_fields(fields: dict[str, str]) -> dict[str, str]:
    """Returns the fields, with each text truncated to LONGEST_FIELD characters.

    This limits the time of code that handles a text, such as Unicode normalisation.

    A truncated text is still too long for any field, so the form refuses it later. It
    ends with an ellipsis: code that strips blanks at the end cannot make it shorter.

    Raises InvalidRequest if a field's name has more than LONGEST_FIELD characters.
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
    """The amount that a person typed is invalid.

    The message is in the request's language. `readings` has the two possible amounts if
    the text is ambiguous, such as "1.000"; otherwise it is empty.
    """

    def __init__(self, message: str, readings: Sequence[Decimal] = ()) -> None:
        super().__init__(message)
        self.readings = readings


def new_form_id() -> str:
    """Returns a random id for a form. Each time a form is shown, it gets a new id."""
    return random_base62(ID_CHARACTERS)


def error_message(error: Exception) -> str:
    """Returns the message that a form shows for an error, in the request's language."""
    if isinstance(error, PriceUnavailable):
        return gettext(
            "There is no exchange rate right now, so the amount in bitcoin cannot be worked"
            " out. Please try again in a minute."
        )
    if isinstance(error, TooMuch):
        language = languages.current_language()
        high = formats.money(Decimal(MAX_USD), "USD", language)
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
    """Returns the message for a text with an invisible character; "" for other errors.

    The message is in the request's language.
    """
    if not (isinstance(error, TextRefused) and error.sign):
        return ""
    return gettext(
        "This contains a character that cannot be seen (%(code)s): a control character, a line"
        " break or a mark of direction. Please type the text again.",
        code=error.sign,
    )


def invisible_character_message_of(code: str) -> str:
    """Returns the message about the invisible character with this code point.

    Returns "" if `code` is no code point such as "U+202E".
    """
    if _CODE_POINT.fullmatch(code) is None:
        return ""
    return invisible_character_message(TextRefused("", sign=code))


def read_amount(text: str, currency: str, low: Decimal, high: Decimal) -> Decimal:
    """Parses an amount in `currency` that a person typed.

    Raises AmountRefused if the text is no amount or is ambiguous, and if the amount is
    0 or less, below `low`, or above `high`.
    """
    try:
        amount = parse_amount(text, currency)
    except NotAnAmount as error:
        raise _not_understood(error, text, currency) from None
    return _within_limits(amount, currency, low, high)


def read_written_amount(
    text: str,
    currency: str,
    low: Decimal,
    high: Decimal,
) -> Decimal:
    """Parses an amount that one of our pages has written into a button or hidden field.

    Pages write a decimal point, and no thousands separators. So "1.000" is one Iraqi
    dinar here, although a person who types it may mean a thousand. A text in another
    format is parsed as if a person had typed it.

    Raises AmountRefused if the text is no amount or is ambiguous, and if the amount is
    0 or less, below `low`, or above `high`.
    """
    if _WRITTEN.fullmatch(text):
        amount = Decimal(text)
        has_decimals_of_currency = amount == round_money(amount, currency)
        if has_decimals_of_currency:
            return _within_limits(amount, currency, low, high)
    return read_amount(text, currency, low, high)


def _within_limits(
    amount: Decimal,
    currency: str,
    low: Decimal,
    high: Decimal,
) -> Decimal:
    """Returns the amount itself.

    Raises AmountRefused if it is 0 or less, below `low`, or above `high`.
    """
    if amount > 0 and low <= amount <= high:
        return amount
    language = languages.current_language()
    most = formats.money(high, currency, language)
    if not low:
        message = gettext("Enter an amount above 0 and up to %(high)s.", high=most)
        raise AmountRefused(message)
    least = formats.money(low, currency, language)
    message = gettext("Enter an amount from %(low)s to %(high)s.", low=least, high=most)
    raise AmountRefused(message)


def is_amount(text: str, currency: str) -> bool:
    """True if the text is an amount in the currency and is not ambiguous."""
    try:
        parse_amount(text, currency)
    except NotAnAmount:
        return False
    return True


def _not_understood(error: NotAnAmount, text: str, currency: str) -> AmountRefused:
    """Returns the error for two possible amounts, another currency, or no amount."""
    language = languages.current_language()
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
