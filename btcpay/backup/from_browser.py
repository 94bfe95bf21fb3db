"""Examines a backup that a browser has uploaded, and fills an empty database with it."""

import sqlite3
from collections.abc import Callable
from contextlib import closing
from datetime import datetime, timedelta
from typing import TypeVar

from btcpay.backup.address_counters import Clock, Move
from btcpay.backup.pending import PendingRestore, Report
from btcpay.backup.restore import prepare
from btcpay.settings.settings import Settings
from btcpay.values.errors import BtcpayError, CommandError
from btcpay.values.money import checked_currency
from btcpay.values.times import from_ms, to_ms, zone_of
from storage import locks
from storage.backup import sqlite_file
from storage.backup.into_empty import carry_over
from storage.backup.old_database import OldDatabase
from storage.database import Database, in_one_line, open_database
from storage.faults import PeeweeException
from storage.queries import blocks, merchants, meta, receivers

T = TypeVar("T")

# After an hour the chain may have other used addresses, and must be searched again.
ANSWER_WITHIN = timedelta(hours=1)
# Secrets of this installation, which processes of the service have read already.
_KEPT = (meta.Key.PASSWORD_SALT, meta.Key.COOKIE_KEY)


def examine(
    pending: PendingRestore,
    settings: Settings,
    skip: int,
    clock: Clock,
) -> None:
    """Examines the uploaded backup as `blocktill restore` does, and writes the report.

    If the backup is refused, the report says why. Removes the uploaded file, and keeps an
    examined copy of an accepted backup. The copy lacks the commands that receive events:
    they would run with the rights of the service, which the person in the browser may not
    have. `skip` is the number of addresses that each address counter leaves out after the
    last used one.
    """
    try:
        report = _examine(pending, settings, skip, clock)
    except (BtcpayError, PeeweeException, sqlite3.Error, OSError) as error:
        text = in_one_line(error).replace(str(pending.upload), "the file")
        report = Report(to_ms(clock()), problem=text or type(error).__name__)
        sqlite_file.discard(pending.copy)
    sqlite_file.discard(pending.upload)
    pending.write_report(report)


def _examine(
    pending: PendingRestore,
    settings: Settings,
    skip: int,
    clock: Clock,
) -> Report:
    """Makes the examined copy, and returns a report on what a restore would do.

    Raises CommandError if the backup is refused.
    """
    restored = prepare(
        settings,
        file=pending.upload,
        new=pending.copy,
        skip=skip,
        agree=_require_merchant,
        clock=clock,
        present=OldDatabase(),
    )
    with closing(open_database(f"sqlite:///{pending.copy}")) as copy, copy.write():
        programs = _remove_programs(copy)
        newest_invoice_ms = copy.get(blocks.LAST_INVOICE)[0] or 0
        _refuse_unusable(copy, newest_invoice_ms)
    return Report(
        to_ms(clock()),
        moves=tuple(restored.moves),
        programs=tuple(programs),
        newest_invoice_ms=newest_invoice_ms,
    )


def _require_merchant(
    moves: list[Move], _lost: list[str], _programs: list[str]
) -> None:
    """Raises CommandError if the backup has no merchant. The owner is asked later."""
    if not moves:
        raise CommandError("nothing was changed: the file has no merchant")


def _remove_programs(copy: Database) -> list[str]:
    """Removes the commands that receive events from the copy, and returns them."""
    programs = []
    for row in copy.rows(receivers.LIST):
        if row.command:
            programs.append(row.command)
            copy.run(receivers.REMOVE, id=row.id)
    return programs


def _refuse_unusable(copy: Database, newest_invoice_ms: int) -> None:
    """Raises CommandError or BadRow if the restored shop could not show its pages.

    Then only somebody with a shell could repair it.
    """
    # Each of these calls raises an error for an invalid value.
    from_ms(newest_invoice_ms)
    for merchant in copy.rows(merchants.ALL):
        zone_of(merchant.timezone)
        checked_currency(merchant.currency)


def put_in(
    db: Database,
    settings: Settings,
    pending: PendingRestore,
    now: datetime,
    finish: Callable[[], T],
) -> T:
    """Fills the empty database with the examined backup, while the service runs.

    First waits until a running check (`blocktill check`) has ended. Calls `finish` in
    the database transaction that fills the database, and returns its result. Raises
    CommandError if the backup was refused, was not examined, or was examined more than
    ANSWER_WITHIN ago, or if the database is not empty. In these cases nothing is changed.
    """
    report = pending.report()
    if report is None or report.problem:
        raise CommandError("nothing was changed: the backup was not examined")
    if now - from_ms(report.examined_ms) > ANSWER_WITHIN:
        raise CommandError(
            "nothing was changed: the backup was examined more than an hour ago; upload"
            " it again"
        )
    own_secrets = {key: meta.get(db, key) for key in _KEPT}

    def keep_secrets_and_finish() -> T:
        """Replaces the backup's secrets by those of this installation, then finishes."""
        for key, value in own_secrets.items():
            if value is not None:
                meta.put(db, key, value)
        return finish()

    with locks.only_one(db, settings.database_url, "check", wait=True):
        result = carry_over(pending.copy, db, keep_secrets_and_finish)
    pending.discard()
    return result
