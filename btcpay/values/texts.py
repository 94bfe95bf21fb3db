"""Texts of one line: the seller's name, an order's number, the contact for customers."""

from typing import Any

from btcpay.values.errors import CommandError

MAX_CHARACTERS = {"name": 60, "reference": 200, "contact": 200, "reason": 200}


def checked_line(what: str, text: str) -> str:
    """The line without spaces around it; `what` is a key of MAX_CHARACTERS. Raises CommandError.

    Printable text has no mark that turns the direction of writing around either.
    """
    line, most = text.strip(), MAX_CHARACTERS[what]
    if not line or not line.isprintable() or len(line) > most:
        raise CommandError(f"the {what} must be printable, 1 to {most} characters")
    return line


def one_line(value: Any, most: int) -> str | None:
    """A stranger's text as one line that a page may show; None for anything else."""
    if not isinstance(value, str):
        return None
    line = "".join(sign if sign.isprintable() else " " for sign in value).strip()[:most].strip()
    return line or None
