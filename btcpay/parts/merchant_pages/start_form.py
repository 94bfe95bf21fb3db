"""The form of the first run: parses its fields and its file, and checks them."""

import codecs
import io
import re
from collections.abc import Callable, Mapping

from flask import request
from werkzeug.exceptions import HTTPException
from werkzeug.formparser import FormDataParser

from btcpay.chain.account_start import MOST_SKIPPED
from btcpay.languages import formats
from btcpay.languages.catalogs import LANGUAGES
from btcpay.merchants.first_run import AccountPosition
from btcpay.merchants.merchants import checked_name
from btcpay.merchants.secret import holds_secret
from btcpay.merchants.wallet_text.clean import MAX_CHARS
from btcpay.parts.merchant_pages.visit import MAX_UPLOAD_BYTES
from btcpay.values.amounts import parse_whole_number
from btcpay.values.errors import CommandError, InvalidRequest
from btcpay.values.money import checked_currency
from btcpay.values.texts import MAX_CHARACTERS
from btcpay.values.times import checked_zone
from btcpay.web.body import read_body
from btcpay.web.pages import languages
from btcpay.web.pages.forms import (
    invisible_character_message,
    limit_fields,
    read_form,
)
from btcpay.web.pages.languages import gettext

# Two of the steps. The form's field `step` has the step to which the form belongs, and the
# field `back` has the step to which the person wants to return.
SHOP = "shop"
WALLET = "wallet"
EMPTY = {
    "step": WALLET,
    "back": "",
    "name": "",
    "timezone": "UTC",
    "wallet": "",  # the name of the wallet, for its instructions
    "key": "",  # the text that the wallet shows
    "file": "",  # the text of a file, used instead of `key`
    "choose": "",  # the name of an account, if the text has several
    "script": "",  # the script type, if the text does not give it
    "skip": "",  # the number of addresses to leave out
    "next_index": "",  # this field and the next have an AccountPosition
    "used_before": "",
    "press": "",  # the random id of the last form
}
WALLET_FIELD = "key"
FILE_FIELD = "file"
MAX_PARTS = 40  # the maximum of fields in a multipart form; ours has half as many
_UTF_16 = (codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)
_NUMBER = re.compile("[0-9]{1,9}")
FormFields = dict[str, str]


class SkipRefused(CommandError):
    """The entered number of addresses to leave out is invalid.

    The message is in the language of the request.
    """


def default_fields() -> FormFields:
    """Returns the values of an empty form, which depend on the browser's language and country."""
    tag = request.accept_languages.best or ""
    currency = formats.currency_of(tag) or "USD"
    return EMPTY | {"currency": currency, "language": languages.current_language()}


def read_start_form() -> FormFields:
    """Returns the form's fields that are not empty, including the text of the file.

    Raises InvalidRequest if the form is incomplete, PayloadTooLarge if it is too long.
    """
    if request.mimetype == "multipart/form-data":
        return _read_multipart()
    return read_form(long_field=WALLET_FIELD, max_bytes=MAX_UPLOAD_BYTES)


def _read_multipart() -> FormFields:
    """Returns the fields of a form with a file, as `read_start_form` does."""
    body = read_body(MAX_UPLOAD_BYTES)
    parser = FormDataParser(
        max_form_memory_size=None, silent=False, max_form_parts=MAX_PARTS
    )
    try:
        _, form, files = parser.parse(
            io.BytesIO(body),
            request.mimetype,
            len(body),
            request.mimetype_params,
        )
    except (HTTPException, ValueError):
        raise InvalidRequest("the form arrived incomplete") from None
    texts = {name: text for name, text in form.items() if text}
    fields = limit_fields(texts)
    if WALLET_FIELD in texts:
        fields[WALLET_FIELD] = texts[WALLET_FIELD]
    if FILE_FIELD in files:
        fields[FILE_FIELD] = _text_of_file(files[FILE_FIELD].read())
    return fields


def _text_of_file(content: bytes) -> str:
    """Returns the text of a file in UTF-8, or in UTF-16 as Windows may write it."""
    encoding = "utf-8"
    if content.startswith(_UTF_16):
        encoding = "utf-16"
    return content.decode(encoding, "replace")


def without_secrets(fields: FormFields) -> FormFields:
    """Returns a copy of the fields that a form may show again.

    Three kinds of texts are replaced by "": the file's text, each text that contains a
    secret such as a private key, and each text that is too long to be searched for one.
    """
    safe = {}
    for name, text in (fields | {FILE_FIELD: ""}).items():
        is_safe = len(text) <= MAX_CHARS and not holds_secret(text)
        safe[name] = text if is_safe else ""
    return safe


def shop_problems(fields: FormFields) -> dict[str, str]:
    """Returns an error message for each invalid field of the shop, by the field's name.

    The messages are in the language of the request.
    """
    problems = {}
    if problem := _name_problem(fields["name"]):
        problems["name"] = problem
    choices: dict[str, Callable[[str], object]] = {
        "currency": checked_currency,
        "timezone": checked_zone,
        "language": _checked_language,
    }
    for name, check in choices.items():
        try:
            check(fields[name])
        except (CommandError, ValueError):
            problems[name] = gettext("Please choose one from the list.")
    return problems


def _checked_language(code: str) -> str:
    if code not in LANGUAGES:
        raise CommandError("there is no such language")
    return code


def _name_problem(name: str) -> str:
    """Returns the error message about the shop's name; "" if the name is valid."""
    if holds_secret(name):
        return gettext(
            "This reads like a private key or seed words. Please give another name. If it was one"
            " of these, make a new wallet and move all money there."
        )
    if not name.strip():
        return gettext("Please give the shop a name.")
    try:
        checked_name(name)
    except CommandError as error:
        message = invisible_character_message(error)
        return message or gettext(
            "Please give a name of at most %(most)s characters that can be seen.",
            most=_whole(MAX_CHARACTERS["name"]),
        )
    return ""


def skip_of(text: str) -> int | None:
    """Parses the number of addresses to leave out. Returns None for an empty text.

    Raises SkipRefused if it is not a whole number from 0 to MOST_SKIPPED.
    """
    text = text.strip()
    if not text:
        return None
    try:
        return parse_whole_number(text, 0, MOST_SKIPPED)
    except ValueError:
        raise SkipRefused(
            gettext(
                "Please give a whole number from 0 to %(most)s.",
                most=_whole(MOST_SKIPPED),
            )
        ) from None


def _whole(number: int) -> str:
    return formats.whole(number, languages.current_language())


def confirmed_beginning(fields: Mapping[str, str]) -> AccountPosition | None:
    """Returns the position in the account at which the shop's addresses begin.

    Returns None if the visitor has not confirmed the shop's first addresses.
    """
    if "same" not in fields:
        return None
    next_index = fields["next_index"]
    used_before = fields["used_before"]
    if not (_NUMBER.fullmatch(next_index) and _NUMBER.fullmatch(used_before)):
        return None
    return AccountPosition(int(next_index), int(used_before))
