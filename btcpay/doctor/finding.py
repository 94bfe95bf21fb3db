"""A finding: what was looked into, its colour, one line, and what helps."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path

from btcpay.settings import Settings
from storage.database import Database

GREEN, YELLOW, RED = "green", "yellow", "red"


@dataclass(frozen=True)
class Finding:
    """What was looked into, how it stands, and what helps where it is not green."""

    name: str
    colour: str
    sentence: str
    remedy: str = ""


@dataclass(frozen=True)
class Patient:
    """What is examined: `now` reads the wall clock, `free_bytes` what a folder's disk has left."""

    settings: Settings
    environ: Mapping[str, str]
    now: Callable[[], datetime]
    free_bytes: Callable[[Path], int]


@dataclass(frozen=True)
class Opened:
    """A patient whose database is of this version."""

    patient: Patient
    db: Database
