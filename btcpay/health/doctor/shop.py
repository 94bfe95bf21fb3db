"""Holds the input of the doctor's examinations."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path

from btcpay.settings.settings import Settings


@dataclass(frozen=True)
class Shop:
    """The shop that is examined: its settings, its environment, its clock and its disk.

    `environ` has the environment variables. `now` returns the time. `free_bytes` returns
    the number of free bytes on the disk of a folder.
    """

    settings: Settings
    environ: Mapping[str, str]
    now: Callable[[], datetime]
    free_bytes: Callable[[Path], int]
