"""The shop that the doctor examines."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path

from btcpay.settings.settings import Settings


@dataclass(frozen=True)
class Shop:
    """`now` reads the clock, `free_bytes` the disk of a folder."""

    settings: Settings
    environ: Mapping[str, str]
    now: Callable[[], datetime]
    free_bytes: Callable[[Path], int]
