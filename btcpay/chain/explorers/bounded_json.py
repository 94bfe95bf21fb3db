"""Parses JSON of explorers within bounds of memory, and checks the types of its values."""

import json
import re
from collections.abc import Callable
from typing import Any, TypeVar

from btcpay.values.errors import FetchError

T = TypeVar("T")
# Maximum estimated memory of a page's values in bytes. An array of empty arrays takes thirty times
# the length of its JSON.
MAX_PAGE_WEIGHT = 32_000_000
# Maximum memory in bytes of the value that begins with each sign.
_SIGN_WEIGHTS = {b"{": 256, b"[": 112, b",": 112, b":": 128}
# Python stores each character of a string in 4 bytes if one of them needs more than 16 bits.
_BYTE_WEIGHT = 4


def require(holds: bool, answer: str) -> None:
    """Raises FetchError unless `holds` is true.

    The message of the error is "answered", followed by `answer`.
    """
    if not holds:
        raise FetchError(f"answered {answer}")


def parse_list(read: Callable[[list[Any]], T], body: bytes) -> T:
    """Parses a JSON list, and returns the result of `read` for it.

    Raises FetchError if the values would take too much memory, if the body is not a
    JSON list, or if `read` fails because the values are not as expected.
    """
    weight = _BYTE_WEIGHT * len(body)
    for sign, sign_weight in _SIGN_WEIGHTS.items():
        weight += body.count(sign) * sign_weight
    require(weight <= MAX_PAGE_WEIGHT, "more values than one page can hold")
    try:
        # Only ASCII values are used. Latin-1 keeps every character of a string at one byte.
        values = as_list(json.loads(body.decode("latin-1")))
        return read(values)
    except (
        LookupError,
        TypeError,
        ValueError,
        AttributeError,
        RecursionError,
    ) as error:
        raise FetchError("answered something else than an Esplora does") from error


def as_list(value: Any) -> list[Any]:
    """Returns the value if it is a list, else raises TypeError."""
    if type(value) is not list:
        raise TypeError("no list")
    return value


def as_text(value: Any, pattern: re.Pattern[str]) -> str:
    """Returns the value if it is a text that matches the pattern from start to end.

    Raises TypeError if it is no text, and ValueError if it does not match.
    """
    if not pattern.fullmatch(value):
        raise ValueError("another text")
    return str(value)


def as_number(value: Any, most: int) -> int:
    """Returns the value if it is an integer from 0 to `most`, else raises ValueError."""
    if type(value) is not int or not 0 <= value <= most:
        raise ValueError("no such number")
    return value
