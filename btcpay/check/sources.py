"""Sources that parts bring: their pool shows headers and blocks, and is heard between two runs."""

from collections.abc import Callable
from datetime import datetime
from typing import Protocol

from btcpay.chain.pool import Pool
from btcpay.chain.sources import BlockSource
from btcpay.check.report import Report
from btcpay.settings.settings import Settings
from btcpay.values.parts import brought
from storage.database import Database


class Listening(Protocol):
    """Hears transactions as sources announce them, and applies them to the invoices."""

    def apply(self, report: Report) -> None:
        """Applies everything that was heard before now, within a run."""

    def pause(
        self, seconds: float, wait: Callable[[float], bool], applied: Callable[[], None]
    ) -> bool:
        """Listens for that long, and calls `applied` after news; True when `wait` has ended it."""


def open_sources(
    settings: Settings, db: Database, now: Callable[[], datetime]
) -> Pool[BlockSource] | None:
    """The first pool that a part's `source` opens for a run; None: the explorers show blocks."""
    opened = (part.source(settings, db, now) for part in brought("source"))
    return next(filter(None, opened), None)


def listening_of(settings: Settings, db: Database, now: Callable[[], datetime]) -> Listening | None:
    """The first that a part's `listening` has; None where nothing that is set announces."""
    found = (part.listening(settings, db, now) for part in brought("listening"))
    return next(filter(None, found), None)
