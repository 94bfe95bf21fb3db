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
    """A kind of source, as the settings have it. A part's class is `Source` in its `source.py`."""

    settings: Settings
    db: Database
    now: Callable[[], datetime]

    @property
    @abstractmethod
    def is_set(self) -> bool: ...

    @abstractmethod
    def open(self) -> Pool[BlockSource]:
        """The sources of one run."""

    def listener(self) -> Announcing | None:
        """It listens once it is told to; None where these announce nothing."""
        return None


def kind_of(settings: Settings, db: Database, now: Callable[[], datetime]) -> Kind | None:
    """The first that is set; without one the explorers show headers and blocks."""
    kinds = (part.Source(settings, db, now) for part in brought("source"))
    return next((kind for kind in kinds if kind.is_set), None)
