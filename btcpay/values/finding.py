"""A finding: what was examined, its colour, one line about it, and what helps."""

from dataclasses import dataclass, field
from enum import StrEnum


class Colour(StrEnum):
    """How well a part is: red when a sale or its payment suffers, yellow when it soon may."""

    GREEN = "green"
    YELLOW = "yellow"
    RED = "red"


GREEN, YELLOW, RED = Colour


@dataclass(frozen=True)
class Finding:
    """What was examined, how it is, and what helps when it is not green.

    `brief` stands in the line when the sentence is too long for one. `is_outside`: what explorers
    and price sources answered, not the shop's own.
    """

    name: str
    colour: Colour
    sentence: str
    remedy: str = ""
    brief: str = field(default="", compare=False)
    is_outside: bool = field(default=False, compare=False)
