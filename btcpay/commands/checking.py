"""`check`: the cron run, once or again and again."""

import logging
import signal
import sys
import threading
from collections.abc import Callable, Iterable, Sequence
from contextlib import AbstractContextManager, nullcontext
from typing import NoReturn

import click
from peewee import PeeweeException

from btcpay import fetch
from btcpay.budget import Budget
from btcpay.check import Checker
from btcpay.clock import utc_now
from btcpay.commands.shell import Shell, answer_json, as_json, say, with_shell
from btcpay.errors import CommandError
from btcpay.explorer import Explorers
from btcpay.runs import Run
from btcpay.service import new_prices
from btcpay.witness import REMEDY
from storage import invoices, schema
from storage.database import in_one_line

# Calls at once: a public explorer, with its 600 an hour, sees four; one of your own sixteen.
MOST_IN_FLIGHT, HOURLY_FOR_ONE = 16, 150

log = logging.getLogger(__name__)


@click.command()
@click.option("--watch", type=click.IntRange(1, 86_400), metavar="SECONDS", help="Again and again.")
@click.option("--invoice", "invoice_id", metavar="ID", help="Only this one, whatever its age.")
@as_json
@with_shell
def check(shell: Shell, watch: int | None, invoice_id: str | None, as_json: bool) -> None:
    """Look at the deposit addresses and settle what is paid.

    Exit status 0: every due address was looked at; 1: some could not be, or the clock is ahead.
    """
    if watch is not None and invoice_id is not None:
        raise click.UsageError("--watch and --invoice do not go together")
    if invoice_id is not None:
        if shell.db.row(invoices.WHOLE, id=invoice_id) is None:
            raise CommandError(f"there is no invoice {invoice_id!r}")
        # A look by hand is always made; it counts, but nothing is refused.
        _end(new_checker(shell, sys.maxsize).run([invoice_id]), as_json)
    new = _checkers(shell)
    if watch is None:
        _end(_run_alone(shell, new), as_json)
    stop = threading.Event()
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, lambda *_: stop.set())
    while not stop.is_set():
        try:
            run = _run_alone(shell, new)
        except PeeweeException as error:
            log.error("this check could not use the database: %s", in_one_line(error))
        else:
            if run and (run.changed or not run.complete):
                _report(run, as_json)
        stop.wait(watch)


def _end(run: Run | None, as_json: bool) -> NoReturn:
    _report(run, as_json)
    sys.exit(0 if run is None or run.complete else 1)


def _checkers(shell: Shell, per_hour: int | None = None) -> Callable[[], Checker]:
    """Makes a checker for each run: explorers in their first order, connections and price kept."""
    settings, prices = shell.settings, new_prices(shell.settings)
    per_hour = per_hour or settings.explorer_calls_per_hour
    in_flight = max(1, min(MOST_IN_FLIGHT, per_hour // HOURLY_FOR_ONE))
    session = fetch.new_session(in_flight)

    def new() -> Checker:
        budget = Budget(shell.db, per_hour, utc_now)
        explorers = Explorers(settings.explorers, session, budget)
        return Checker(shell.db, settings, explorers, prices, utc_now, in_flight)

    return new


def new_checker(shell: Shell, per_hour: int | None = None) -> Checker:
    """A checker for one run; `per_hour` in place of the budget that is set."""
    return _checkers(shell, per_hour)()


def _run_alone(shell: Shell, new: Callable[[], Checker]) -> Run | None:
    """A run over all that is watched; None when another one is at it.

    On a server several runs share what is due.
    """
    if shell.db.is_server:
        return _run(new())
    with schema.only_one(shell.db, shell.settings.database_url, "check") as alone:
        if alone:
            return _run(new())
    say("another check is running; this one does nothing")
    return None


def _run(checker: Checker) -> Run:
    run = checker.run(progress=_bar if sys.stderr.isatty() else nullcontext)
    checker.finish(run)
    return run


def _bar(ids: Sequence[str]) -> AbstractContextManager[Iterable[str]]:
    return click.progressbar(ids, label="addresses", file=sys.stderr)


def _report(run: Run | None, as_json: bool) -> None:
    if run is None:
        summary: dict = {"skipped": True}
    else:
        summary = {
            "looked_at": run.looked_at,
            "failed": run.failed,
            "unreached": run.unreached,
            "held": run.held,
            "put_off": run.put_off,
            "chain_failed": run.tip_failed,
            "clock_ahead_s": run.clock_ahead_s,
            "changed": run.changed,
            "calls": run.calls,
        }
    if as_json:
        answer_json(summary)
    elif run:
        click.echo(
            f"looked at {run.looked_at} addresses with {run.calls} calls,"
            f" {len(run.failed)} could not be asked, {run.put_off} wait for their turn"
        )
        if run.unreached:
            click.echo(
                f"the budget of calls did not reach {len(run.unreached)} that somebody waits for:"
                " see BTCPAY_EXPLORER_CALLS_PER_HOUR"
            )
        if run.held:
            click.echo(
                f"another check holds {len(run.held)} and has not looked at them:"
                " was it killed? The next run does"
            )
        if run.tip_failed:
            click.echo("no explorer could be asked for the chain's tip: nothing was looked at")
        if run.clock_ahead_s:
            click.echo(f"this machine's clock is {run.clock_ahead_s} s ahead: {REMEDY}")
        for invoice_id, status in run.changed.items():
            click.echo(f"{invoice_id} is {status}")


COMMANDS = (check,)
