"""Kinds of block source that stand in the explorers' place: a class each, brought by a part."""

from collections.abc import Callable
from datetime import datetime
from typing import Protocol

from btcpay.chain.pool import Pool
from btcpay.chain.sources import Announcing, BlockSource
from btcpay.settings.settings import Settings
from btcpay.values.parts import brought
from storage.database import Database


class Kind(Protocol):
    """A kind of source as the settings have it.

    A part's `source.py` has `source(settings, db, now)`, which is one, or None where it is not set.
    """

    def open(self) -> Pool[BlockSource]:
        """The sources of one run."""

    def listener(self) -> Announcing | None:
        """It listens once it is told to; None where these announce nothing."""
        return None


def kind_of(settings: Settings, db: Database, now: Callable[[], datetime]) -> Kind | None:
    """The first that is set; without one the explorers show headers and blocks."""
    kinds = (part.source(settings, db, now) for part in brought("source"))
    return next((kind for kind in kinds if kind), None)
