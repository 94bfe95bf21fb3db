"""A finding of a health check, with its colour and remedy."""

from dataclasses import dataclass
from enum import StrEnum


class Colour(StrEnum):
    """The severity: red if sales or payments fail now, yellow if they may fail soon.

    Green means that there is no problem.
    """

    GREEN = "green"
    YELLOW = "yellow"
    RED = "red"


GREEN, YELLOW, RED = Colour


@dataclass(frozen=True)
class Finding:
    """The result of one health check.

    `name` says what was checked, and `sentence` describes the result. `remedy` says
    what the operator should do; it is "" if `colour` is green.
    """

    name: str
    colour: Colour
    sentence: str
    remedy: str = ""
