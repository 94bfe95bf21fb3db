"""Prints the result of a check (a run of `blocktill check`, which looks for payments).

With --quiet nothing is printed if the check succeeds, since cron mails every output.
"""

import logging
import sys
from contextlib import suppress
from datetime import timedelta
from logging.handlers import MemoryHandler
from typing import Any, NoReturn

import click

from btcpay.check.report import Report
from btcpay.check.run import MOST_RUN_S
from btcpay.cli.check.summary import summary_lines
from btcpay.cli.output import answer_json, json_object, say
from btcpay.cli.shell import Shell
from btcpay.settings.logs import is_json
from btcpay.values.errors import CommandError
from btcpay.values.times import boot_mark, time_between
from storage.database import place_of
from storage.faults import PeeweeException
from storage.queries import merchants, meta, sources

log = logging.getLogger(__name__)

# Fields of a report that its JSON contains unchanged.
REPORT_FIELDS = (
    "blocks_read blocks_behind hours_behind looked_at failed unreached put_off chain_failed"
    " clock_ahead_s set_aside parts_behind calls"
)
PEER_COLUMNS = "place height good_at"
MOST_HELD = 1000  # maximum number of held log lines; if it is reached, they are printed


class Reporter:
    """Prints the results of a command's checks.

    When it is created, it prints a note if there is no merchant yet. If `quiet` is True,
    it then takes the place of the log's handlers: log lines are held back until the
    check ends, and are printed only if the check has failed.
    """

    def __init__(self, shell: Shell, quiet: bool) -> None:
        self._quiet = quiet
        self._as_json = shell.as_json
        self._buffers = list[MemoryHandler]()
        self._db = shell.db
        self._merchants = len(shell.db.rows(merchants.ALL))
        if not self._merchants:
            place = place_of(shell.settings.database_url)
            say(
                f"there is no merchant in {place} yet: until there is, nothing can be paid"
                " (`blocktill merchant add`); or is BLOCKTILL_DATABASE_URL wrong?"
            )
        if quiet:
            self._buffers = [_buffer(handler) for handler in logging.root.handlers]
            logging.root.handlers = list(self._buffers)

    def show(self, report: Report | None, brief: bool = False) -> None:
        """Prints the report of a check.

        If `brief` is True, a complete check is printed only if an invoice has changed.

        If `report` is None, the check was skipped because another check is running. This
        is printed too. Raises CommandError if the other check has exceeded its time limit.
        """
        if report is None:
            self._show_other_run(brief)
            return
        self._release_log(report.complete)
        is_wanted = not brief or report.new_statuses
        if report.complete and (self._quiet or not is_wanted):
            return
        if self._as_json:
            answer_json(self._summary(report))
        elif not is_json(logging.root):
            click.echo("\n".join(summary_lines(report)))
        elif report.complete:
            log.info("check", extra={"fields": self._summary(report)})
        else:
            log.error("check", extra={"fields": self._summary(report)})

    def _show_other_run(self, brief: bool) -> None:
        """Prints that another run is in progress.

        Raises CommandError if runs have been skipped for longer than MOST_RUN_S.
        """
        skipped_for = self._skipped_for()
        if skipped_for > timedelta(seconds=MOST_RUN_S):
            minutes = skipped_for // timedelta(minutes=1)
            raise CommandError(
                f"another check has been running for {minutes} minutes: look at it"
            )
        if not self._quiet:
            say("another check is running; this one does nothing")
        self._release_log(is_well=True)
        if self._as_json and not self._quiet and not brief:
            answer_json({"skipped": True})

    def _skipped_for(self) -> timedelta:
        """Returns for how long runs have been skipped; 0 for the first skipped run.

        The first run that is skipped stores the time. A run that is not skipped deletes
        it.
        """
        skipped_since = meta.get(self._db, meta.Key.RUN_SINCE) or ""
        mark = boot_mark()
        age = time_between(skipped_since, mark)
        if age is not None:
            return age
        # This write fails if the other run is just writing. The next skipped run then
        # stores its own time.
        with suppress(PeeweeException):
            meta.put(self._db, meta.Key.RUN_SINCE, mark)
        return timedelta()

    def _release_log(self, is_well: bool) -> None:
        """Discards the held log lines if the run is well, else prints them."""
        for buffer in self._buffers:
            if is_well:
                buffer.buffer.clear()
            else:
                buffer.flush()

    def end(self, report: Report | None) -> NoReturn:
        """Prints the report, and exits: with status 0 if the check is complete, else 1."""
        self.show(report)
        if report is None or report.complete:
            sys.exit(0)
        sys.exit(1)

    def _summary(self, report: Report) -> dict[str, Any]:
        """Returns the report as a JSON object."""
        summary = {name: getattr(report, name) for name in REPORT_FIELDS.split()}
        peers = self._db.rows(sources.PEERS)
        return summary | {
            "changed": report.new_statuses,
            "stuck": report.stuck_reason or None,
            "doubt": report.doubt or None,
            "bytes": report.read_bytes,
            "merchants": self._merchants,
            "listens": bool(meta.get(self._db, meta.Key.LISTENS)),
            "peers": [json_object(peer, PEER_COLUMNS) for peer in peers],
        }


def _buffer(handler: logging.Handler) -> MemoryHandler:
    """Returns a handler that holds log lines back from `handler` until an error is logged."""
    buffer = MemoryHandler(MOST_HELD, logging.ERROR, handler, flushOnClose=False)
    # A MemoryHandler formats nothing, but `is_json` looks at its formatter.
    buffer.setFormatter(handler.formatter)
    return buffer
