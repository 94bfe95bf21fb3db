"""Fetches the block headers up to the tip when the first merchant is created.

The tip must be known before the first invoice is made, so that outputs in earlier
blocks never pay the invoice.
"""

import logging
import time
from collections.abc import Callable
from datetime import datetime

from btcpay.chain.belief import judge_clock
from btcpay.chain.explorers.pool import open_explorers
from btcpay.chain.explorers.quota import Quota
from btcpay.chain.first_header import keep_first_header
from btcpay.chain.follow import Follower
from btcpay.chain.pool import open_sources
from btcpay.check.undo import undo_above
from btcpay.settings.settings import Settings
from btcpay.values.errors import ExplorerError
from btcpay.values.times import boot_mark
from storage.database import Database
from storage.queries import blocks

log = logging.getLogger(__name__)

# The merchant waits for this request. The next check fetches the missing headers.
MOST_S = 10.0


def begin_chain(db: Database, settings: Settings, now: Callable[[], datetime]) -> bool:
    """Stores the headers up to the tip, unless some are stored already.

    Does not search blocks for payments. Returns True if headers are stored at the end.
    Returns False if no source responds correctly in time; the next check then fetches
    the headers.
    """
    if db.get_or_none(blocks.TOP):
        return True
    quota = Quota(db, settings.explorer_calls_per_hour, now)
    sources = open_sources(settings, db, now) or open_explorers(settings, quota)

    def now_by_sources() -> datetime:
        own_time = now()
        ahead = sources.clock_skew.time_ahead(own_time, time.monotonic())
        return own_time - ahead

    def undo(height: int) -> None:
        undo_above(db, settings, height, now())

    sources.end_within(MOST_S)
    try:
        keep_first_header(db, settings.network, sources, now_by_sources)
        follower = Follower(db, settings.network, sources, undo)
        follower.follow()
    except ExplorerError as error:
        log.warning("the next check begins to follow the chain: %s", error)
        return False
    finally:
        sources.close()
        sources.store_outcomes(db, settings, now())
    # From now on the first check can compare the clock with the blocks mined since.
    judge_clock(db, settings.network, now(), boot_mark(), follower.is_agreed)
    return True
