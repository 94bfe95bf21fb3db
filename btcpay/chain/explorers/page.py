"""A list of JSON values from an explorer, however hostile: no more than memory has room for."""

import json
from typing import Any

from btcpay.values.errors import FetchError

# What a page's values may take up in memory: an array of empty ones takes thirty times its length.
MAX_PAGE_WEIGHT = 32_000_000
_WEIGHTS = {b"{": 256, b"[": 112, b",": 112, b":": 128}  # bytes at most, for what each begins
_BYTE_WEIGHT = 4  # one character beyond 16 bits makes every character of its text this large


def values_in(body: bytes) -> list[Any]:
    """The page's values, if memory has room for them. Raises FetchError."""
    weight = _BYTE_WEIGHT * len(body)
    weight += sum(body.count(sign) * each for sign, each in _WEIGHTS.items())
    if weight > MAX_PAGE_WEIGHT:
        raise FetchError("answered more values than one page can hold")
    try:
        # All that is looked for is ASCII. Read as Latin-1, no other character makes a text larger.
        found = json.loads(body.decode("latin-1"))
    except (ValueError, RecursionError) as error:
        raise FetchError("answered no JSON") from error
    if not isinstance(found, list):
        raise FetchError("answered no list")
    return found
