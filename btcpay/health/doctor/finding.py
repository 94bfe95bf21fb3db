"""A finding: what was examined, its colour, one line about it, and what helps."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path

from btcpay.settings.settings import Settings
from storage.database import Database

GREEN, YELLOW, RED = "green", "yellow", "red"


@dataclass(frozen=True)
class Finding:
    """What was examined, how it is, and what helps when it is not green.

    `brief` stands in the line when the sentence is too long for one.
    """

    name: str
    colour: str
    sentence: str
    remedy: str = ""
    brief: str = field(default="", compare=False)


@dataclass(frozen=True)
class Patient:
    """The shop to examine; `now` reads the clock, `free_bytes` a folder's disk."""

    settings: Settings
    environ: Mapping[str, str]
    now: Callable[[], datetime]
    free_bytes: Callable[[Path], int]


@dataclass(frozen=True)
class Opened:
    """A patient and its open database, which has this program's version."""

    patient: Patient
    db: Database
