"""Stores times and totals of the runs of a process, but seldom while nothing changes."""

from collections import Counter
from dataclasses import dataclass, field
from datetime import datetime, timedelta

from btcpay.check.report import Report
from btcpay.settings.settings import Settings
from btcpay.values.times import time_between
from storage.database import Database
from storage.queries import meta
from storage.queries.meta import Key
from storage.queries.totals import tallies

# How old the stored time of a run may be before a run that found nothing new stores its own, as a
# fraction of BLOCKTILL_CHECK_MAX_AGE_MIN: by default six minutes. A check is late at half of that
# setting.
RENEWED = 2 / 5
# Totals change in each run, and are in a table of their own. While nothing happens, they are stored
# once an hour, since each store writes further pages to the disk.
TOTALS_AGAIN = timedelta(hours=1)


@dataclass
class RunRecord:
    """The times and totals of the runs of the check by one process.

    1. A run that finds something new, or ends in another way than the run before, stores
       both its times and the totals.
    2. Any other run stores its times only if the stored values differ or are at least
       `renew_after` old. A run that stores its times also stores the totals if an
       explorer has failed, or if the totals were last stored TOTALS_AGAIN ago.

    Totals that are not stored yet are lost if the process is killed.
    """

    renew_after: timedelta = timedelta()
    _totals: Counter[tuple[str, str]] = field(default_factory=Counter)
    _was_complete: bool | None = None
    _completed_at: datetime | None = None
    _totals_at: datetime | None = None
    _tip_since: str | None = None  # the new tip and its `boot_mark`, until stored

    def count(self, db: Database, totals: Counter[tuple[str, str]]) -> None:
        """Adds `totals`, which are by name and label, to those that are not stored yet.

        If `renew_after` is zero, stores all these totals at once.
        """
        self._totals.update(totals)
        if self._totals and not self.renew_after:
            self.flush(db)

    def note(self, db: Database, report: Report, listens: str, now: datetime) -> None:
        """Stores the run's result and times, for pages, `blocktill doctor` and metrics.

        Does so only in the cases that `RunRecord` names. `listens` is "yes" if
        announced transactions are applied between runs, else "". The commit is not
        forced onto the disk (no fsync): after a power cut, the next run stores its own
        result.
        """
        result = "incomplete"
        if report.complete:
            result = "complete"
            self._completed_at = now
        self._totals["checks", result] += 1
        self._totals["check_ms", ""] += report.took_ms
        self._totals["blocks", ""] += report.blocks_read
        is_like_before = report.complete == self._was_complete and not report.has_news
        self._was_complete = report.complete
        late_count = str(len(report.unreached))
        if is_like_before and self._is_stored(db, listens, late_count, now):
            return
        with db.unforced(), db.write():
            if report.has_tip:
                meta.put(db, Key.PREVIEWS_LATE, late_count)
            meta.put(db, Key.LISTENS, listens)
            self._put_times(db, report, now)
            are_totals_due = self._are_totals_old(now) or self._has_failures()
            if not is_like_before or are_totals_due:
                self._put_totals(db)
                self._totals_at = now

    def _put_times(self, db: Database, report: Report, now: datetime) -> None:
        """Stores the run's times, and the time of a new tip if there is one."""
        meta.put_time(db, Key.RAN_MS, report.began_at or now)
        if report.read_at:
            meta.put_time(db, Key.READ_MS, report.read_at)
        self._put_completed(db, now)
        if self._tip_since:
            meta.put(db, Key.TIP_SINCE, self._tip_since)
            self._tip_since = None

    def silence(self, db: Database, tip: str, mark: str) -> timedelta:
        """Returns how long `tip` has been the newest block; 0 if that is not known.

        `mark` is what `boot_mark` returns now: the seconds since the machine's boot,
        which no change of the clock affects. If `tip` is new, the next call of `note`
        stores it.
        """
        since = self._tip_since or meta.get(db, Key.TIP_SINCE) or ""
        known_tip, _, since_mark = since.partition(" ")
        if known_tip == tip:
            silence = time_between(since_mark, mark)
            if silence is not None:
                return silence
        self._tip_since = f"{tip} {mark}"
        return timedelta()

    def flush(self, db: Database) -> None:
        """Stores the totals. Called when the process ends."""
        with db.write():
            self._put_totals(db)

    def _is_stored(
        self,
        db: Database,
        listens: str,
        late_count: str,
        now: datetime,
    ) -> bool:
        """True if these values are stored, with a time younger than `renew_after`."""
        key = Key.RAN_MS
        if self._was_complete:
            # Another process whose runs are incomplete may store RAN_MS, but not this one.
            key = Key.CHECKED_MS
        stored_at = meta.time(db, key)
        if stored_at is None:
            return False
        is_young = timedelta() <= now - stored_at < self.renew_after
        if not is_young or meta.get(db, Key.LISTENS) != listens:
            return False
        return meta.get(db, Key.PREVIEWS_LATE) == late_count

    def _put_completed(self, db: Database, now: datetime) -> None:
        """Stores the time of the last complete run of this process, if there was one.

        A later time that another process has stored stays, unless it is after `now`:
        then it is wrong.
        """
        if self._completed_at is None:
            return
        stored_at = meta.time(db, Key.CHECKED_MS)
        if stored_at is not None and self._completed_at <= stored_at <= now:
            return
        meta.put_time(db, Key.CHECKED_MS, self._completed_at)

    def _are_totals_old(self, now: datetime) -> bool:
        if self._totals_at is None:
            return True
        return not timedelta() <= now - self._totals_at < TOTALS_AGAIN

    def _has_failures(self) -> bool:
        """True if an explorer has failed since the totals were last stored.

        They must be stored at once, since the alert looks only at the last half hour.
        """
        for (name, _), total in self._totals.items():
            if name == "explorer_failures" and total:
                return True
        return False

    def _put_totals(self, db: Database) -> None:
        for (name, label), total in self._totals.items():
            db.run(tallies.ADD, name=name, label=label, total=total)
        self._totals.clear()


def renew_after(settings: Settings, every_s: int) -> timedelta:
    """Returns how old the stored time of a run may be before a new one is stored.

    `every_s` is the number of seconds from the start of a run to that of the next.
    """
    most = timedelta(minutes=settings.check_max_age_min) * RENEWED
    return max(timedelta(), most - timedelta(seconds=every_s))
