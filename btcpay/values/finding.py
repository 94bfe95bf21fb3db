"""A finding: the part examined, its colour, one line about it, and a remedy."""

from dataclasses import dataclass
from enum import StrEnum


class Colour(StrEnum):
    """The health of a part: red when a sale or its payment suffers, yellow when it soon may."""

    GREEN = "green"
    YELLOW = "yellow"
    RED = "red"


GREEN, YELLOW, RED = Colour


@dataclass(frozen=True)
class Finding:
    """The part examined, its colour, and the remedy when it is not green."""

    name: str
    colour: Colour
    sentence: str
    remedy: str = ""
