"""Computes the shop's health for `/readyz`, the doctor and the merchant's pages."""

from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Protocol

from btcpay.chain.progress import KnownBlocks, Progress, progress_from_row, progress_of
from btcpay.settings.settings import Settings
from btcpay.values.finding import GREEN, RED, YELLOW, Colour
from btcpay.values.networks import Network
from btcpay.values.times import from_ms_or_none
from storage.database import Database
from storage.queries import meta

# The maximum age of the last backup. Two nightly backups may fail.
BACKUP_AGE = timedelta(days=3)
# The fraction of BLOCKTILL_CHECK_MAX_AGE_MIN after which a check is late. It is more than the time
# after which an idle check notes itself (`check/record.py`).
LATE_SHARE = 1 / 2


@dataclass(frozen=True)
class State:
    """The shop's health: a colour for each aspect, and the facts behind it.

    - `payments` says whether payments are being found; `/readyz` and alarms use it. It is
      green if the last complete check (`blocktill check`) is no older than
      BLOCKTILL_CHECK_MAX_AGE_MIN, and not in the future by more than that. It is yellow
      if no check has ever completed, else red.
    - `check` has the colour of `payments`, but turns yellow earlier: when LATE_SHARE of
      BLOCKTILL_CHECK_MAX_AGE_MIN has passed. The reason may be that no explorer responds,
      or that cron does not run the check.
    - `previews` is yellow if an invoice's page is open, but the mempool was not queried in
      time for the invoice, else green. Payments to the invoice are still found in blocks.
    - `chain` is red if the best known block is too old. It is yellow while some blocks
      have not been searched for payments, else green.
    - `backup` is green if the last backup was made within BACKUP_AGE, else yellow.

    `checked_at`, `previews_late` and `progress` are the arguments of `state_of`.
    """

    payments: Colour
    checked_at: datetime | None
    check: Colour
    previews: Colour
    previews_late: int
    chain: Colour
    progress: Progress | None
    backup: Colour


def state_in(db: Database, settings: Settings, now: datetime) -> State:
    """Computes the shop's health from the facts in the database."""
    return state_of(
        checked_at=meta.time(db, meta.Key.CHECKED_MS),
        previews_late=meta.count(db, meta.Key.PREVIEWS_LATE),
        progress=progress_of(db, now),
        backed_up_at=meta.time(db, meta.Key.BACKED_UP_MS),
        settings=settings,
        now=now,
    )


class RowOfFacts(KnownBlocks, Protocol):
    """A database row with the facts from which the shop's health is computed.

    The merchant's page *Today* loads these facts together with other values, in one
    query.
    """

    @property
    def checked_ms(self) -> int | None: ...
    @property
    def previews_late(self) -> int | None: ...
    @property
    def backed_up_ms(self) -> int | None: ...


def state_in_row(
    db: Database,
    row: RowOfFacts,
    settings: Settings,
    now: datetime,
) -> State:
    """Computes the shop's health from the facts in a row that is already loaded."""
    return state_of(
        checked_at=from_ms_or_none(row.checked_ms),
        previews_late=row.previews_late or 0,
        progress=progress_from_row(db, row),
        backed_up_at=from_ms_or_none(row.backed_up_ms),
        settings=settings,
        now=now,
    )


def state_of(
    checked_at: datetime | None,
    previews_late: int,
    progress: Progress | None,
    backed_up_at: datetime | None,
    settings: Settings,
    now: datetime,
) -> State:
    """Computes the shop's health from these facts.

    `checked_at` is the time of the last complete check, None if there was none.
    `previews_late` is the number of open pages for which the mempool was not queried in
    time. `progress` says how far blocks were searched, None before the first block.
    `backed_up_at` is the time of the last backup, None if there was none.
    """
    max_age = timedelta(minutes=settings.check_max_age_min)
    payments = _payments(checked_at, max_age, now)
    check = payments
    if payments == GREEN and not _is_within(checked_at, max_age * LATE_SHARE, now):
        check = YELLOW
    previews = GREEN
    if previews_late:
        previews = YELLOW
    backup = YELLOW
    if _is_within(backed_up_at, BACKUP_AGE, now):
        backup = GREEN
    return State(
        payments=payments,
        checked_at=checked_at,
        check=check,
        previews=previews,
        previews_late=previews_late,
        chain=_chain(progress, settings.network, now),
        progress=progress,
        backup=backup,
    )


def _payments(checked_at: datetime | None, max_age: timedelta, now: datetime) -> Colour:
    if checked_at is None:
        return YELLOW
    if _is_within(checked_at, max_age, now):
        return GREEN
    return RED


def _is_within(at: datetime | None, age: timedelta, now: datetime) -> bool:
    """True if `at` is at most `age` in the past or in the future; False for None."""
    return at is not None and abs(now - at) <= age


def _chain(progress: Progress | None, network: Network, now: datetime) -> Colour:
    if progress and network.stands_still(progress.mined_at, now):
        return RED
    if progress and progress.behind:
        return YELLOW
    return GREEN
