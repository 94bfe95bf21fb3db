"""Whether the shop is well: one pure function; `/readyz`, the doctor and the pages render it."""

from dataclasses import dataclass
from datetime import datetime, timedelta

from btcpay.chain.progress import Progress, progress_of
from btcpay.settings.settings import Settings
from btcpay.values.finding import GREEN, RED, YELLOW, Colour
from btcpay.values.networks import Network
from storage.database import Database
from storage.queries import meta

# A shop that is backed up every night has missed two of them.
BACKUP_AGE = timedelta(days=3)
# Of BTCPAY_CHECK_MAX_AGE_MIN: three minutes, when a check that runs every minute has failed twice.
LATE = 1 / 5


@dataclass(frozen=True)
class State:
    """How well the shop is, and the facts that say so.

    `found`: green when payments are found: a check was complete within BTCPAY_CHECK_MAX_AGE_MIN,
    and is no further ahead of our clock. Yellow before the first. `/readyz` and every alarm mean
    this alone. `checked`: the same, and yellow as soon as the check is LATE: explorers do not
    answer, or nobody runs it. `previews`: yellow while the mempool could not be asked in time for
    `previews_late` pages that somebody looks at: what comes is seen late, and found all the same.
    `chain`: red when the newest block is so old that the chain seems to stand still, yellow while
    blocks are still to be read.
    """

    found: Colour
    found_at: datetime | None
    checked: Colour
    previews: Colour
    previews_late: int
    chain: Colour
    progress: Progress | None
    backup: Colour


def state_in(db: Database, settings: Settings, now: datetime) -> State:
    found_at, backed_up_at = (
        meta.time(db, key) for key in (meta.Key.CHECKED_AT, meta.Key.BACKED_UP_AT)
    )
    late = meta.count(db, meta.Key.PREVIEWS_LATE)
    return state_of(found_at, late, progress_of(db, now), backed_up_at, settings, now)


def state_of(
    found_at: datetime | None,
    previews_late: int,
    progress: Progress | None,
    backed_up_at: datetime | None,
    settings: Settings,
    now: datetime,
) -> State:
    """`found_at`: when a check was last complete; None of each time before there is one."""
    max_age = timedelta(minutes=settings.check_max_age_min)
    found = YELLOW if found_at is None else GREEN if _is_within(found_at, max_age, now) else RED
    is_late = found == GREEN and not _is_within(found_at, max_age * LATE, now)
    return State(
        found=found,
        found_at=found_at,
        checked=YELLOW if is_late else found,
        previews=YELLOW if previews_late else GREEN,
        previews_late=previews_late,
        chain=_chain(progress, settings.network, now),
        progress=progress,
        backup=GREEN if _is_within(backed_up_at, BACKUP_AGE, now) else YELLOW,
    )


def _is_within(at: datetime | None, age: timedelta, now: datetime) -> bool:
    """A time in the future is as bad as one long ago."""
    return at is not None and abs(now - at) <= age


def _chain(progress: Progress | None, network: Network, now: datetime) -> Colour:
    if progress and network.stands_still(progress.mined_at, now):
        return RED
    return YELLOW if progress and progress.behind else GREEN
