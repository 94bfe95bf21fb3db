"""What every Esplora answer is made of: plain text, and refusals in plain text."""

import re
from typing import NoReturn

from flask import Response, abort

HASH = re.compile("[0-9a-f]{64}")


def text(message: str, status: int = 200) -> Response:
    return Response(message, status, mimetype="text/plain")


def binary(data: bytes) -> Response:
    return Response(data, mimetype="application/octet-stream")


def refuse(status: int, message: str) -> NoReturn:
    """Ends the request with a plain text answer."""
    abort(text(message, status))


def read_hash(given: str) -> str:
    """A txid or block hash from a path; anything but 64 hex digits ends the request with 400."""
    if not HASH.fullmatch(given.lower()):
        refuse(400, "Invalid hex string")
    return given.lower()


def read_number(given: str) -> int:
    """A whole number from a path; anything else ends the request with 400."""
    if not (given.isascii() and given.isdigit()) or len(given) > 9:
        refuse(400, "Invalid number")
    return int(given)
