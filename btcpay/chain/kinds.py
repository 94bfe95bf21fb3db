"""Kinds of block source that stand in the explorers' place: a class each, brought by a part."""

from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime

from btcpay.chain.pool import Pool
from btcpay.chain.sources import Announcing, BlockSource
from btcpay.settings.settings import Settings
from btcpay.values.parts import brought
from storage.database import Database


@dataclass(frozen=True)
class Kind(ABC):
    """A kind of source that is set.

    A part's `source.py` has `source(settings, db, now)`: one of these, or None where it is not set.
    """

    settings: Settings
    db: Database
    now: Callable[[], datetime]

    @abstractmethod
    def open(self) -> Pool[BlockSource]:
        """The sources of one run."""

    def listener(self) -> Announcing | None:
        """It listens once it is told to; None where these announce nothing."""
        return None


def kind_of(settings: Settings, db: Database, now: Callable[[], datetime]) -> Kind | None:
    """The first that is set; without one the explorers show headers and blocks."""
    kinds = (part.source(settings, db, now) for part in brought("source"))
    return next(filter(None, kinds), None)
