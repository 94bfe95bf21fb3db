"""A finding of a health check, with its colour and remedy."""

from dataclasses import dataclass
from enum import StrEnum


class Colour(StrEnum):
    """The severity: red if sales or payments suffer, yellow if they soon may."""

    GREEN = "green"
    YELLOW = "yellow"
    RED = "red"


GREEN, YELLOW, RED = Colour


@dataclass(frozen=True)
class Finding:
    """The result of one health check.

    `name` is what was checked, and `sentence` describes its state. `remedy` says what
    to do if `colour` is not green.
    """

    name: str
    colour: Colour
    sentence: str
    remedy: str = ""
