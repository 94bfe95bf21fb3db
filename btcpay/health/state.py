"""The state of the shop from one pure function, which `/readyz`, the doctor and the pages show."""

from dataclasses import dataclass
from datetime import datetime, timedelta

from btcpay.chain.progress import Progress, progress_in, progress_of
from btcpay.settings.settings import Settings
from btcpay.values.finding import GREEN, RED, YELLOW, Colour
from btcpay.values.networks import Network
from btcpay.values.times import from_ms_or_none
from storage.database import Database
from storage.queries import meta
from storage.queries.lists import today

# A shop that is backed up every night has then missed two backups.
BACKUP_AGE = timedelta(days=3)
# Of BLOCKTILL_CHECK_MAX_AGE_MIN: three minutes, when a check of every minute has failed twice.
LATE = 1 / 5


@dataclass(frozen=True)
class State:
    """Colours of the shop's health, and the facts behind them."""

    # Green while payments are found: a check was complete within BLOCKTILL_CHECK_MAX_AGE_MIN, and
    # its time is no further in the future. Yellow before the first. `/readyz` and alarms use this.
    found: Colour
    found_at: datetime | None
    checked: Colour  # the same, but yellow once the check is LATE: no explorer answers, or no cron
    previews: Colour  # yellow if open pages could not be looked up in time; their money is found
    previews_late: int  # the number of these pages
    chain: Colour  # red if its newest block is too old, yellow while blocks are still to be read
    progress: Progress | None
    backup: Colour


def state_in(db: Database, settings: Settings, now: datetime) -> State:
    found_at, backed_up_at = (
        meta.time(db, key) for key in (meta.Key.CHECKED_AT, meta.Key.BACKED_UP_AT)
    )
    late = meta.count(db, meta.Key.PREVIEWS_LATE)
    return state_of(found_at, late, progress_of(db, now), backed_up_at, settings, now)


def state_in_row(shop: today.Shop, settings: Settings, now: datetime) -> State:
    """The state, by the facts that a merchant's first page reads with its shop."""
    found_at, backed_up_at = map(from_ms_or_none, (shop.checked_at, shop.backed_up_at))
    late = shop.previews_late or 0
    return state_of(found_at, late, progress_in(shop), backed_up_at, settings, now)


def state_of(
    found_at: datetime | None,
    previews_late: int,
    progress: Progress | None,
    backed_up_at: datetime | None,
    settings: Settings,
    now: datetime,
) -> State:
    """`found_at`: when a check was last complete. Each time is None until there is one."""
    max_age = timedelta(minutes=settings.check_max_age_min)
    found = (
        YELLOW
        if found_at is None
        else GREEN
        if _is_within(found_at, max_age, now)
        else RED
    )
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
    """False for a time in the future, too."""
    return at is not None and abs(now - at) <= age


def _chain(progress: Progress | None, network: Network, now: datetime) -> Colour:
    if progress and network.stands_still(progress.mined_at, now):
        return RED
    if progress and progress.behind:
        return YELLOW
    return GREEN
