"""`check`: the cron run, once or again and again."""

import logging
import signal
import sys
import threading
import time
from collections.abc import Callable, Sequence
from contextlib import ExitStack

import click
from peewee import PeeweeException

from btcpay.chain.belief import believe, current_moment
from btcpay.chain.explorers.pool import open_explorers
from btcpay.chain.explorers.quota import Quota
from btcpay.chain.pool import open_sources
from btcpay.check.announcements import open_announcements
from btcpay.check.report import Report
from btcpay.check.run import Checker
from btcpay.cli.check.report import Reporter
from btcpay.cli.context import Shell, Stop, with_json_shell
from btcpay.http import http_client
from btcpay.invoices.status import find_invoice
from btcpay.notify.delivery_queue import MAIL_PART, PROGRAM_PARTS
from btcpay.notify.outbox import Outbox, new_send
from btcpay.prices.price import Prices
from btcpay.values.errors import CommandError
from btcpay.values.times import boot_mark, utc_now
from storage import locks
from storage.database import in_one_line
from storage.queries import meta, sources

# Calls at once: a public explorer, with its 600 an hour, sees four; one of your own sixteen.
MOST_IN_FLIGHT = 16
HOURLY_FOR_ONE = 150
# While somebody waits at a page the mempool is asked again so often, until cron's minute ends.
LOOKS_EVERY_S = 5
STAYS_S = 50

log = logging.getLogger(__name__)


@click.command()
@click.option(
    "--watch", type=click.IntRange(1, 86_400), metavar="SECONDS", help="Repeat it."
)
@click.option("--once", is_flag=True, help="Do not stay for payers who wait: one look.")
@click.option("--invoice", "only", metavar="ID", help="Look only for this invoice.")
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
    watch: int | None,
    once: bool,
    only: str | None,
    quiet: bool,
    clock_is_right: bool,
    new_peers: bool,
) -> None:
    """Read new blocks, look at the mempool, settle what is paid, deliver webhooks and mail.

    Exit status 0 when every block is read and nothing failed, else 1.
    """
    if watch is not None and (once or only is not None):
        raise click.UsageError("--watch goes neither with --once nor with --invoice")
    if new_peers:
        shell.db.run(sources.FORGET_ALL_PEERS)
    if clock_is_right:
        believe(shell.db, current_moment(shell.db, shell.now))
    reporter = Reporter(shell, quiet)
    listening = open_announcements(shell.settings, shell.db, utc_now)
    if only is not None:
        find_invoice(shell.db, only)
        # A look by hand is always made: it counts against the quota, but is never refused.
        with locks.only_one(shell.db, shell.settings.database_url, "check", wait=True):
            reporter.end(_checkers(shell, sys.maxsize)().run([only]))
    outward = Outward(shell)
    if watch is None:
        new = _checkers(shell)
        until_s = time.monotonic() + (0 if once else STAYS_S)
        try:
            report = _run_alone(shell, new, outward, until_s, time.sleep)
        finally:  # a check that fails still notifies merchants
            outward.start()
            outward.wait()
        reporter.end(report)
    stop = Stop(signal.SIGTERM, signal.SIGINT)
    new = _checkers(shell, hear=listening.apply if listening else None)

    def pause(seconds: float) -> bool:
        if listening:
            return listening.pause(seconds, stop.wait, outward.start)
        return stop.wait(seconds)

    def rest(until_s: float) -> None:
        outward.start()
        stop.wait(max(1.0, until_s - time.monotonic()))

    while not stop.wait():
        until_s = time.monotonic() + watch
        try:
            reporter.show(_run_alone(shell, new, outward, until_s, pause), brief=True)
            outward.start()
            pause(max(1.0, until_s - time.monotonic()))
        except (PeeweeException, CommandError) as error:
            log.error("the check failed: %s", in_one_line(error))
            rest(until_s)
        except Exception:  # the outermost edge: payments are found in the next run
            log.exception("the check failed")
            rest(until_s)


class Outward:
    """The outboxes beside the check: no check waits for a receiver, and no program for the mail."""

    def __init__(self, shell: Shell) -> None:
        programs = PROGRAM_PARTS[shell.db.is_server]
        self._all = (Outgoing(shell, programs), Outgoing(shell, [MAIL_PART]))

    def start(self) -> None:
        """Delivers what is due, unless the last runs are still at it."""
        for outgoing in self._all:
            outgoing.start()

    def wait(self) -> None:
        """Waits until that is done, for as long as a run may take."""
        for outgoing in self._all:
            outgoing.wait()


class Outgoing:
    """An outbox of some parts of the receivers, in a thread of its own."""

    def __init__(self, shell: Shell, parts: Sequence[str]) -> None:
        self._shell = shell
        self._parts = parts
        self._outbox = Outbox(
            shell.db, shell.settings, utc_now, new_send(shell.settings)
        )
        self._thread = threading.Thread()

    def start(self) -> None:
        if not self._thread.is_alive():
            self._thread = threading.Thread(target=self._run, daemon=True)
            self._thread.start()

    def wait(self) -> None:
        self._thread.join()

    def _run(self) -> None:
        db = self._shell.db
        try:
            with ExitStack() as held:
                url = self._shell.settings.database_url
                result = self._outbox.run(
                    take=lambda part: held.enter_context(locks.only_one(db, url, part)),
                    only=self._parts,
                )
        except PeeweeException as error:
            log.error("nothing could be delivered: %s", in_one_line(error))
            return
        finally:
            db.close()
        if result.delivered or result.failed:
            log.info(
                "notifications: %d delivered, %d not", result.delivered, result.failed
            )


def _checkers(
    shell: Shell, per_hour: int = 0, hear: Callable[[Report], None] | None = None
) -> Callable[[], Checker]:
    """Makes a checker for each run: explorers in their first order, connections and price kept.

    `per_hour` replaces the quota of the settings.
    """
    settings = shell.settings
    prices = Prices(shell.settings)
    per_hour = per_hour or settings.explorer_calls_per_hour
    in_flight = max(1, min(MOST_IN_FLIGHT, per_hour // HOURLY_FOR_ONE))
    session = http_client.Session(in_flight, settings.proxy)

    def new() -> Checker:
        quota = Quota(shell.db, per_hour, utc_now)
        explorers = open_explorers(settings, quota, session)
        sources = open_sources(settings, shell.db, utc_now) or explorers
        means = shell.db, settings, sources, prices, utc_now
        return Checker(*means, explorers=explorers, in_flight=in_flight, hear=hear)

    return new


def _run_alone(
    shell: Shell,
    new: Callable[[], Checker],
    outward: Outward,
    until_s: float,
    pause: Callable[[float], bool | None],
) -> Report | None:
    """A run over all that is due; None when another one is at it. Raises CommandError.

    While somebody waits at a page it looks again until then, unless a `pause` ends it; other runs
    may come in between.
    """
    checker = new()
    report = None
    while True:
        with locks.only_one(shell.db, shell.settings.database_url, "check") as alone:
            if not alone:
                return report
            meta.put(shell.db, meta.Key.RUN_SINCE, boot_mark())
            if report is None:
                report = checker.run()
                checker.finish(report)
            if time.monotonic() > until_s or not checker.look_again(report):
                return report
        outward.start()
        if time.monotonic() + LOOKS_EVERY_S > until_s or pause(LOOKS_EVERY_S):
            return report
