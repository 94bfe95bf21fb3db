"""The first look at the chain, when the first merchant is made: the headers up to the tip.

The tip must be known before the first invoice, so that no coin that is older pays it.
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

# Somebody waits; the next check asks for what is missing by then.
MOST_S = 10.0


def begin_chain(db: Database, settings: Settings, now: Callable[[], datetime]) -> bool:
    """Stores the headers up to the tip, unless some are stored already; True if they are known.

    No block is read. If no source answers in time nothing is lost, and the next check begins.
    """
    if db.row(blocks.TOP):
        return True
    quota = Quota(db, settings.explorer_calls_per_hour, now)
    sources = open_sources(settings, db, now) or open_explorers(settings, quota)

    def now_by_sources() -> datetime:
        own_time = now()
        return own_time - sources.clock_skew.time_ahead(own_time, time.monotonic())

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
        sources.note(db, settings, now())
    # The blocks that come until the first check then witness the time until then.
    judge_clock(db, settings.network, now(), boot_mark(), follower.is_agreed)
    return True
