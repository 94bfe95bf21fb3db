"""A finding: what was examined, its colour, one line about it, and what helps."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path

from btcpay.health.state import Colour
from btcpay.settings.settings import Settings


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


@dataclass(frozen=True)
class Shop:
    """The shop to examine; `now` reads the clock, `free_bytes` the disk of a folder."""

    settings: Settings
    environ: Mapping[str, str]
    now: Callable[[], datetime]
    free_bytes: Callable[[Path], int]
