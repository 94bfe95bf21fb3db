"""A request's body: within the limit, whole, and JSON that is read exactly (RFC 8259)."""

import hashlib
import json
import re
from collections import Counter
from collections.abc import Iterable
from decimal import MAX_EMAX, MAX_PREC, MIN_EMIN, Context, Decimal, InvalidOperation
from typing import Any, NoReturn

from flask import current_app, request
from gunicorn.http.errors import ParseException  # raised for a broken chunk by gunicorn
from werkzeug.exceptions import HTTPException, RequestEntityTooLarge

from btcpay.values.errors import InvalidRequest, PayloadTooLarge
from btcpay.web.paths import JSON

# Bodies are flat. Python's own parsers differ: 3.11's gives up near 1,000, 3.14's takes 10,000.
MAX_DEPTH = 100
_TEXTS_AND_BRACKETS = re.compile(r'"(?:[^"\\]|\\.)*"?|[][{}]', re.DOTALL)
_DEPTH_CHANGES = {"[": 1, "{": 1, "]": -1, "}": -1}
_EXACT = Context(prec=MAX_PREC, Emax=MAX_EMAX, Emin=MIN_EMIN)


def read_body() -> bytes:
    """The request's body. Raises PayloadTooLarge; InvalidRequest if it does not arrive whole."""
    # Werkzeug silently cuts a chunked body at its limit; one byte more shows it.
    max_bytes = current_app.config["MAX_CONTENT_LENGTH"] - 1
    if request.headers.get("Transfer-Encoding", "chunked").lower() != "chunked":
        raise InvalidRequest("the only Transfer-Encoding is chunked, once")
    too_large = PayloadTooLarge(f"the body exceeds {max_bytes} bytes")
    try:
        body = request.get_data(cache=False)
    except RequestEntityTooLarge:
        raise too_large from None
    except (OSError, ParseException, HTTPException):
        raise InvalidRequest("the body arrived incomplete") from None
    if len(body) > max_bytes:
        raise too_large
    if request.content_length is not None and len(body) < request.content_length:
        raise InvalidRequest("the body arrived incomplete")
    return body


def read_json(empty: bytes | None) -> Any:
    """The body's JSON value, or that of `empty` for an empty body.

    Raises InvalidRequest for a content type that is not JSON.
    """
    body = read_body()
    if not body and empty is not None:
        return parse(empty)
    if request.mimetype != JSON:
        raise InvalidRequest("the Content-Type must be application/json")
    return parse(body)


def parse(body: bytes) -> Any:
    """The JSON value of the body; every number is a Decimal, NaN if a Decimal cannot hold it.

    Raises InvalidRequest for anything that is not one UTF-8 JSON text without a byte order mark,
    for a name that appears twice in an object, and for nesting deeper than MAX_DEPTH.
    """
    if not body.strip():
        raise InvalidRequest("the body is empty; send a JSON object")
    try:
        text = body.decode("utf-8")
        _check_depth(text)
        return _DECODER.decode(text)
    except UnicodeDecodeError:
        raise InvalidRequest("the body must be JSON in UTF-8") from None
    except json.JSONDecodeError as error:
        raise InvalidRequest(f"the body is not valid JSON: {error}") from None


def sha256(value: Any) -> str:
    """The hex digest of a JSON value; equal values have the same, such as 10 and 10.0."""
    text = json.dumps(_canonical(value), sort_keys=True, separators=(",", ":"))
    return hashlib.sha256(text.encode("ascii")).hexdigest()


def _check_depth(text: str) -> None:
    """Raises InvalidRequest if brackets outside of strings are nested too deeply."""
    depth = 0
    for token in _TEXTS_AND_BRACKETS.finditer(text):
        depth += _DEPTH_CHANGES.get(token[0], 0)
        if depth > MAX_DEPTH:
            raise InvalidRequest("the body is nested too deeply")


def _canonical(value: Any) -> Any:
    """The value with each number as ["number", text], and each array after the word "array".

    The text of a number has no trailing zeros, and that of -0 is "0".
    """
    if isinstance(value, Decimal):
        return ["number", str(_EXACT.normalize(value) or 0)]
    if isinstance(value, list):
        return ["array", *map(_canonical, value)]
    if isinstance(value, dict):
        return {name: _canonical(member) for name, member in value.items()}
    return value


def _number(text: str) -> Decimal:
    try:
        return Decimal(text)
    except InvalidOperation:
        # The exponent has over 18 digits. A NaN is outside of every range.
        return Decimal("NaN")


def _no_number(text: str) -> NoReturn:
    raise InvalidRequest(f"the body is not valid JSON: {text} is no JSON number")


def _object(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    value = dict(pairs)
    if len(value) != len(pairs):
        _refuse_repeated_name(name for name, _ in pairs)
    return value


def _refuse_repeated_name(names: Iterable[str]) -> NoReturn:
    counts = Counter(names)
    name = next(name for name, times in counts.items() if times > 1)
    raise InvalidRequest(
        f"the name {name[:80]!a} appears twice in an object of the body"
    )


_DECODER = json.JSONDecoder(
    parse_int=_number,
    parse_float=_number,
    parse_constant=_no_number,
    object_pairs_hook=_object,
)
