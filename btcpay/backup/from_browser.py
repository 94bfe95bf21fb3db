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

    The report also tells why a backup is refused. Removes the uploaded file, and keeps
    an examined copy. The copy lacks the commands that receive events: they would run
    with the rights of the service, and the person in the browser may not have these
    rights.
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

    def agree(moves: list[Move], _lost: list[str], _programs: list[str]) -> None:
        if not moves:
            raise CommandError("nothing was changed: the file has no merchant")

    restored = prepare(
        settings,
        pending.upload,
        pending.copy,
        skip,
        agree,
        clock,
        OldDatabase(),
    )
    programs = []
    with closing(open_database(f"sqlite:///{pending.copy}")) as copy, copy.write():
        for row in copy.rows(receivers.LIST):
            if row.command:
                programs.append(row.command)
                copy.run(receivers.REMOVE, id=row.id)
        newest_invoice_ms = copy.get(blocks.LAST_INVOICE)[0] or 0
        _refuse_unusable(copy, newest_invoice_ms)
    return Report(
        to_ms(clock()),
        moves=tuple(restored.moves),
        programs=tuple(programs),
        newest_invoice_ms=newest_invoice_ms,
    )


def _refuse_unusable(copy: Database, newest_invoice_ms: int) -> None:
    """Raises CommandError or BadRow if the restored shop could not show its pages.

    Then only somebody with a shell could repair it.
    """
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
    ANSWER_WITHIN ago, or if the database is not empty. Then nothing is changed.
    """
    report = pending.report()
    if report is None or report.problem:
        raise CommandError("nothing was changed: the backup was not examined")
    if now - from_ms(report.examined_ms) > ANSWER_WITHIN:
        raise CommandError(
            "nothing was changed: the backup was examined more than an hour ago; upload"
            " it again"
        )
    kept = {key: meta.get(db, key) for key in _KEPT}

    def keep_secrets_and_finish() -> T:
        for key, value in kept.items():
            if value is not None:
                meta.put(db, key, value)
        return finish()

    with locks.only_one(db, settings.database_url, "check", wait=True):
        result = carry_over(pending.copy, db, keep_secrets_and_finish)
    pending.discard()
    return result
