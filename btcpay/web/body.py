"""Reads a request's body up to a maximum size, and parses strict JSON (RFC 8259)."""

import hashlib
import json
import re
from collections import Counter
from collections.abc import Iterable
from decimal import MAX_EMAX, MAX_PREC, MIN_EMIN, Context, Decimal, InvalidOperation
from typing import Any, NoReturn

from flask import current_app, request
from gunicorn.http.errors import ParseException  # raised for a malformed chunk
from werkzeug.exceptions import HTTPException, RequestEntityTooLarge

from btcpay.values.errors import InvalidRequest, PayloadTooLarge
from btcpay.web.paths import JSON

# The maximum depth of JSON. Bodies of the API are flat. Python's own limit depends on its version:
# the parser of Python 3.11 fails near 1,000 levels, the parser of Python 3.14 accepts 10,000.
MAX_DEPTH = 100
_TEXTS_AND_BRACKETS = re.compile(r'"(?:[^"\\]|\\.)*"?|[][{}]', re.DOTALL)
_DEPTH_CHANGES = {"[": 1, "{": 1, "]": -1, "}": -1}
_EXACT = Context(prec=MAX_PREC, Emax=MAX_EMAX, Emin=MIN_EMIN)


def read_body(max_bytes: int | None = None) -> bytes:
    """Returns the request's body.

    Raises PayloadTooLarge if the body has more than `max_bytes`. If `max_bytes` is
    None, the maximum is that of the settings. Raises InvalidRequest if the body arrives
    incomplete, or if the request has a Transfer-Encoding other than `chunked`.
    """
    limit_bytes = _set_limit(max_bytes)
    if request.headers.get("Transfer-Encoding", "chunked").lower() != "chunked":
        raise InvalidRequest("the only Transfer-Encoding is chunked, once")
    too_large = PayloadTooLarge(f"the body exceeds {limit_bytes} bytes")
    try:
        body = request.get_data(cache=False)
    except RequestEntityTooLarge:
        raise too_large from None
    except (OSError, ParseException, HTTPException):
        raise InvalidRequest("the body arrived incomplete") from None
    if len(body) > limit_bytes:
        raise too_large
    if request.content_length is not None and len(body) < request.content_length:
        raise InvalidRequest("the body arrived incomplete")
    return body


def _set_limit(max_bytes: int | None) -> int:
    """Tells werkzeug the maximum size of the body, and returns it in bytes.

    The maximum is `max_bytes`, or that of the settings if `max_bytes` is None.

    Werkzeug silently truncates a chunked body at its own limit. So its limit is one
    byte more than ours, and we notice a longer body. app.py has added this byte to the
    maximum of the settings too.
    """
    if max_bytes is None:
        maximum: int = current_app.config["MAX_CONTENT_LENGTH"]
        return maximum - 1
    request.max_content_length = max_bytes + 1
    return max_bytes


def read_json(empty: bytes | None) -> Any:
    """Parses the request's body as JSON.

    If the body is empty, parses `empty` instead. Raises InvalidRequest if the body or
    its content type is not JSON, or if the body is empty and `empty` is None. Raises
    PayloadTooLarge if the body exceeds the maximum of the settings.
    """
    body = read_body()
    if not body and empty is not None:
        return parse(empty)
    if request.mimetype != JSON:
        raise InvalidRequest("the Content-Type must be application/json")
    return parse(body)


def parse(body: bytes) -> Any:
    """Parses a JSON text. Each number becomes a Decimal.

    A number whose exponent is too large for a Decimal becomes NaN. Raises
    InvalidRequest in each of these cases:

    - the body is not exactly one JSON text in UTF-8, or begins with a byte order mark;
    - an object has two members with the same name;
    - the body is nested deeper than MAX_DEPTH.
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
    """Returns the SHA-256 digest of a JSON value in hex.

    Equal values, such as 10 and 10.0, have the same digest.
    """
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
    """Returns the value in a form that is the same for equal values.

    A number becomes ["number", text]; the text has no trailing zeros and is "0" for -0.
    Each array gets "array" as its first item, so that it never equals a number.
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
        # The exponent has more than 18 digits. NaN fails every check of a range.
        return Decimal("NaN")


def _refuse_constant(text: str) -> NoReturn:
    """Refuses NaN and Infinity, which Python's parser accepts."""
    raise InvalidRequest(f"the body is not valid JSON: {text} is no JSON number")


def _object(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    value = dict(pairs)
    if len(value) != len(pairs):
        _refuse_repeated_name(name for name, _ in pairs)
    return value


def _refuse_repeated_name(names: Iterable[str]) -> NoReturn:
    counts = Counter(names)
    repeated_names = [name for name, count in counts.items() if count > 1]
    raise InvalidRequest(
        f"the name {repeated_names[0][:80]!a} appears twice in an object of the body"
    )


_DECODER = json.JSONDecoder(
    parse_int=_number,
    parse_float=_number,
    parse_constant=_refuse_constant,
    object_pairs_hook=_object,
)
