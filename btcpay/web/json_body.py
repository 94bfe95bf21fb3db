"""A request's JSON, read exactly: numbers as Decimal, no name twice, nothing beyond RFC 8259."""

import hashlib
import json
import re
from decimal import Decimal, InvalidOperation
from typing import Any, NoReturn

from btcpay.values.errors import InvalidRequest

# Bodies are flat. Python's own parsers differ: 3.11's gives up near 1,000, 3.14's takes 10,000.
MAX_DEPTH = 100
_TEXTS_AND_BRACKETS = re.compile(r'"(?:[^"\\]|\\.)*"?|[][{}]', re.DOTALL)


def parse(body: bytes) -> Any:
    """The JSON value of the body; every number is a Decimal, NaN where none can hold it.

    Raises InvalidRequest for anything that is not one UTF-8 JSON text without a byte order mark,
    for a name that appears twice in an object, and for nesting deeper than 100.
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
    """A digest that is equal for equal JSON values, however they were written (10 and 10.0)."""
    text = json.dumps(_canonical(value), sort_keys=True, separators=(",", ":"))
    return hashlib.sha256(text.encode("ascii")).hexdigest()


def _check_depth(text: str) -> None:
    """Raises InvalidRequest for brackets, outside of strings, that are nested too deeply."""
    depth = 0
    for found in _TEXTS_AND_BRACKETS.finditer(text):
        depth += {"[": 1, "{": 1, "]": -1, "}": -1}.get(found[0], 0)
        if depth > MAX_DEPTH:
            raise InvalidRequest("the body is nested too deeply")


def _canonical(value: Any) -> Any:
    """Numbers as ["number", text] without trailing zeros; an array then starts with "array"."""
    if isinstance(value, Decimal):
        return ["number", _number_text(value)]
    if isinstance(value, list):
        return ["array", *map(_canonical, value)]
    if isinstance(value, dict):
        return {name: _canonical(item) for name, item in value.items()}
    return value


def _number_text(value: Decimal) -> str:
    # Text, not arithmetic: a context would round long numbers or write out large exponents.
    sign, digits, exponent = value.as_tuple()
    if not isinstance(exponent, int):
        return "NaN"
    text = "".join(map(str, digits))
    significant = text.strip("0")
    if not significant:
        return "0"
    return f"{'-' * sign}{significant}e{exponent + len(text) - len(text.rstrip('0'))}"


def _number(text: str) -> Decimal:
    try:
        return Decimal(text)
    except InvalidOperation:
        return Decimal("NaN")  # its exponent has more than 18 digits; every bound refuses it


def _no_number(text: str) -> NoReturn:
    raise InvalidRequest(f"the body is not valid JSON: {text} is no JSON number")


def _object(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    value = dict(pairs)
    if len(value) != len(pairs):
        raise InvalidRequest(
            f"the name {_twice(pairs)[:80]!a} appears twice in an object of the body"
        )
    return value


def _twice(pairs: list[tuple[str, Any]]) -> str:
    """The first name that appears twice."""
    seen: set[str] = set()
    for name, _ in pairs:
        if name in seen:
            return name
        seen.add(name)
    raise LookupError("no name comes twice")


_DECODER = json.JSONDecoder(
    parse_int=_number, parse_float=_number, parse_constant=_no_number, object_pairs_hook=_object
)
