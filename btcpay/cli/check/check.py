"""Command `check`: looks for payments once, or repeatedly with --watch."""

import contextlib
import logging
import signal
import sys
import time
from collections.abc import Callable
from typing import NoReturn

import click

from btcpay.chain.belief import believe, current_moment
from btcpay.check.announcements import open_announcements
from btcpay.check.record import RunRecord, renew_after
from btcpay.check.report import Report
from btcpay.check.run import Checker
from btcpay.cli.check.checkers import checker_factory
from btcpay.cli.check.deliveries import Deliveries
from btcpay.cli.check.report import Reporter
from btcpay.cli.shell import Shell, with_json_shell
from btcpay.cli.stop import Stop
from btcpay.invoices.status import find_invoice
from btcpay.values.errors import CommandError
from btcpay.values.times import utc_now
from storage import locks
from storage.database import in_one_line
from storage.faults import PeeweeException
from storage.queries import meta, sources

# Seconds between two looks at the mempool, while a payer has a page open.
LOOKS_EVERY_S = 5
# Maximum duration of a run while a payer has a page open. It ends before cron starts the next one.
STAYS_S = 50
LEAST_PAUSE_S = 1.0  # minimum pause between two runs of --watch

log = logging.getLogger(__name__)


@click.command()
@click.option(
    "--watch",
    "every_s",
    type=click.IntRange(1, 86_400),
    metavar="SECONDS",
    help="Repeat it.",
)
@click.option("--once", is_flag=True, help="Do not stay for payers who wait: one look.")
@click.option(
    "--invoice",
    "invoice_id",
    metavar="ID",
    help="Look only for this invoice.",
)
@click.option(
    "--quiet", is_flag=True, help="Print nothing while all is well, for cron."
)
@click.option(
    "--clock-is-right",
    is_flag=True,
    help="Believe the clock, though it has leapt since.",
)
@click.option(
    "--new-peers", is_flag=True, help="Forget all peers that earlier runs have met."
)
@with_json_shell
def check(
    shell: Shell,
    every_s: int | None,
    once: bool,
    invoice_id: str | None,
    quiet: bool,
    clock_is_right: bool,
    new_peers: bool,
) -> None:
    """Read new blocks, look at the mempool, settle paid invoices, deliver webhooks and mail.

    Exit status 0 if every block is read and nothing failed, else 1.
    """
    if every_s is not None and (once or invoice_id is not None):
        raise click.UsageError("--watch goes neither with --once nor with --invoice")
    if new_peers:
        shell.db.run(sources.FORGET_ALL_PEERS)
    if clock_is_right:
        believe(shell.db, current_moment(shell.db, shell.now))
    reporter = Reporter(shell, quiet)
    if invoice_id is not None:
        _check_invoice(shell, reporter, invoice_id)
    if every_s is not None:
        _watch(shell, reporter, every_s)
    elif once:
        _check_once(shell, reporter, 0)
    else:
        _check_once(shell, reporter, STAYS_S)


def _check_invoice(shell: Shell, reporter: Reporter, invoice_id: str) -> NoReturn:
    """Runs the check for one invoice, and exits.

    Raises CommandError if there is no invoice with this id.
    """
    find_invoice(shell.db, invoice_id)
    # An operator's own check counts in the quota, but the quota never refuses it.
    new_checker = checker_factory(shell, per_hour=sys.maxsize)
    with locks.only_one(shell.db, shell.settings.database_url, "check", wait=True):
        reporter.end(new_checker().run([invoice_id]))


def _check_once(shell: Shell, reporter: Reporter, stays_s: int) -> NoReturn:
    """Runs the check once, and exits.

    While a payer has a page open, the run goes on for up to `stays_s` seconds, and looks
    at the mempool every LOOKS_EVERY_S.
    """
    deliveries = Deliveries(shell)
    new_checker = checker_factory(shell)
    end_s = time.monotonic() + stays_s
    try:
        report = _run_alone(shell, new_checker, deliveries, end_s, time.sleep)
    finally:  # a failed check still sends notifications
        deliveries.start()
        deliveries.wait()
    reporter.end(report)


def _watch(shell: Shell, reporter: Reporter, every_s: int) -> None:
    """Runs the check every `every_s` seconds, until SIGTERM or SIGINT.

    If a part (an optional plug-in) listens to peers, the transactions that they announce
    are applied between the runs.
    """
    announcements = open_announcements(shell.settings, shell.db, utc_now)
    deliveries = Deliveries(shell)
    stop = Stop(signal.SIGTERM, signal.SIGINT)
    record = RunRecord(renew_after(shell.settings, every_s))
    hear = None
    if announcements:
        hear = announcements.apply
    new_checker = checker_factory(shell, hear=hear, record=record)

    def pause(seconds: float) -> bool:
        """Waits, and applies announced transactions. Returns True once `stop` is set."""
        if announcements:
            return announcements.pause(seconds, stop.wait, deliveries.start)
        return stop.wait(seconds)

    def rest_after_error(end_s: float) -> None:
        """Waits until the next run. Applies no announcements, which could fail too."""
        deliveries.start()
        stop.wait(max(LEAST_PAUSE_S, end_s - time.monotonic()))

    while not stop.wait():
        end_s = time.monotonic() + every_s
        try:
            report = _run_alone(shell, new_checker, deliveries, end_s, pause)
            reporter.show(report, brief=True)
            deliveries.start()
            pause(max(LEAST_PAUSE_S, end_s - time.monotonic()))
        except (PeeweeException, CommandError) as error:
            log.error("the check failed: %s", in_one_line(error))
            rest_after_error(end_s)
        except Exception:  # any other error: the next run finds the payments
            log.exception("the check failed")
            rest_after_error(end_s)
    # If these totals are lost, that is no reason to end with an error.
    with contextlib.suppress(PeeweeException):
        record.flush(shell.db)


def _run_alone(
    shell: Shell,
    new_checker: Callable[[], Checker],
    deliveries: Deliveries,
    end_s: float,
    pause: Callable[[float], bool | None],
) -> Report | None:
    """Runs the check on everything that is due, while it holds the lock of runs.

    While a payer has a page open, looks at the mempool every LOOKS_EVERY_S, until the
    time `end_s` (of the monotonic clock) or until `pause` returns True. During each pause
    the lock is free for other runs.

    Returns the report of the run. Returns None if another run holds the lock at the start.
    """
    db = shell.db
    checker = new_checker()
    report = None
    while True:
        with locks.only_one(db, shell.settings.database_url, "check") as is_alone:
            if not is_alone:
                return report
            if meta.get(db, meta.Key.RUN_SINCE):  # of a skipped run, in report.py
                meta.put(db, meta.Key.RUN_SINCE, "")
            if report is None:
                report = checker.run()
                checker.finish(report)
            is_time_up = time.monotonic() > end_s
            if is_time_up or not checker.look_again(report):
                return report
        deliveries.start()
        is_pause_too_long = time.monotonic() + LOOKS_EVERY_S > end_s
        if is_pause_too_long or pause(LOOKS_EVERY_S):
            return report
