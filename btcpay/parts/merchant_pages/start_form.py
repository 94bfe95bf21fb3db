"""The form of the first run: its fields and its file, and what is wrong with them."""

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
from btcpay.parts.merchant_pages.visit import MAX_UPLOAD_BYTES
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

# Two of the steps: what a form sends as its own `step`, or as the one to go `back` to.
SHOP = "shop"
WALLET = "wallet"
EMPTY = {
    "step": WALLET,
    "back": "",
    "name": "",
    "timezone": "UTC",
    "wallet": "",
    "key": "",
    "file": "",
    "choose": "",
    "script": "",
    "skip": "",
    "next_index": "",
    "used_before": "",
    "press": "",
}
WALLET_FIELD = "key"
FILE_FIELD = "file"
MAX_PARTS = 40  # of a multipart form, which has half as many fields
_UTF_16 = (codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)
_NUMBER = re.compile("[0-9]{1,9}")
Typed = dict[str, str]


class SkipRefused(CommandError):
    """The number to begin at is none. The message is in the request's language."""


def default_fields() -> Typed:
    """Returns the values of an empty form.

    They have the browser's language, and the currency of its country.
    """
    tag = request.accept_languages.best or ""
    currency = formats.currency_of(tag) or "USD"
    return EMPTY | {"currency": currency, "language": languages.current_language()}


def read_start_form() -> Typed:
    """Returns the form's fields that are not blank; the file's text is one of them.

    Raises InvalidRequest, PayloadTooLarge.
    """
    if request.mimetype != "multipart/form-data":
        return read_form(long_field=WALLET_FIELD, max_bytes=MAX_UPLOAD_BYTES)
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
    """Returns the text of a file, which Windows may have written in UTF-16."""
    encoding = "utf-8"
    if content.startswith(_UTF_16):
        encoding = "utf-16"
    return content.decode(encoding, "replace")


def without_secrets(typed: Typed) -> Typed:
    """Returns the fields, empty where a text holds a secret such as a private key."""
    safe = {}
    for name, text in typed.items():
        safe[name] = "" if holds_secret(text) else text
    return safe


def shop_problems(typed: Typed) -> dict[str, str]:
    """Returns what is wrong with the shop's fields by their names, in the request's language."""
    problems = {}
    if problem := _name_problem(typed["name"]):
        problems["name"] = problem
    choices: dict[str, Callable[[str], object]] = {
        "currency": checked_currency,
        "timezone": checked_zone,
        "language": _checked_language,
    }
    for name, check in choices.items():
        try:
            check(typed[name])
        except (CommandError, ValueError):
            problems[name] = gettext("Please choose one from the list.")
    return problems


def _checked_language(code: str) -> str:
    if code not in LANGUAGES:
        raise CommandError("there is no such language")
    return code


def _name_problem(name: str) -> str:
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
    """Returns the number of addresses to leave out; None for an empty text.

    Raises SkipRefused.
    """
    text = text.strip()
    if not text:
        return None
    if not text.isdecimal() or len(text) > 9 or int(text) > MOST_SKIPPED:
        raise SkipRefused(
            gettext(
                "Please give a whole number from 0 to %(most)s.",
                most=_whole(MOST_SKIPPED),
            )
        )
    return int(text)


def _whole(number: int) -> str:
    return formats.whole(number, languages.current_language())


def confirmed_beginning(typed: Mapping[str, str]) -> AccountPosition | None:
    """Returns where the shop begins, if its addresses were compared; else None."""
    numbers = (typed["next_index"], typed["used_before"])
    if "same" not in typed or not all(map(_NUMBER.fullmatch, numbers)):
        return None
    return AccountPosition(*map(int, numbers))
