"""The output of a check: its summary; with --quiet nothing while all is well (cron mails it)."""

import logging
import sys
from datetime import timedelta
from logging.handlers import MemoryHandler
from typing import Any, NoReturn

import click

from btcpay.check.report import Report
from btcpay.check.run import MOST_RUN_S
from btcpay.cli.context import Shell, answer_json, plain, say
from btcpay.settings.logs import is_json
from btcpay.values.errors import CommandError
from btcpay.values.times import SET_CLOCK, boot_mark, elapsed
from storage.database import place_of
from storage.queries import merchants, meta, sources

log = logging.getLogger(__name__)

MORE_CALLS = "see BLOCKTILL_EXPLORER_CALLS_PER_HOUR"
# Fields of a report that its summary has.
SHOWN = (
    "blocks_read blocks_behind hours_behind looked_at failed unreached put_off chain_failed stuck"
    " clock_ahead_s doubt set_aside parts_behind changed calls"
)
PEER = "place height good_at"
MOST_HELD = 1000  # log lines; a run with more of them is printed as it comes


class Reporter:
    """Shows runs of one command; `quiet` holds log lines back, but no errors, until a run ends."""

    def __init__(self, shell: Shell, quiet: bool) -> None:
        self._quiet = quiet
        self._as_json = shell.as_json
        self._held = list[MemoryHandler]()
        self._db = shell.db
        self._merchants = len(shell.db.rows(merchants.ALL))
        if not self._merchants:
            place = place_of(shell.settings.database_url)
            said = f"there is no merchant in {place} yet: until there is, nothing can be paid"
            say(
                f"{said} (`blocktill merchant add`); or is BLOCKTILL_DATABASE_URL wrong?"
            )
        if quiet:
            self._held = [_holding(handler) for handler in logging.root.handlers]
            logging.root.handlers = list(self._held)

    def show(self, report: Report | None, brief: bool = False) -> None:
        """Shows a run, or a skipped one (None); `brief`: only if something has changed.

        Raises CommandError when it was skipped for a run that takes longer than one may.
        """
        if report is None:
            age = elapsed(meta.get(self._db, meta.Key.RUN_SINCE) or "", boot_mark())
            if age and age > timedelta(seconds=MOST_RUN_S):
                minutes = age // timedelta(minutes=1)
                raise CommandError(
                    f"another check has been running for {minutes} minutes: look at it"
                )
            if not self._quiet:
                say("another check is running; this one does nothing")
        well = report is None or report.complete
        for held in self._held:
            held.buffer.clear() if well else held.flush()
        if well and (self._quiet or (brief and not (report and report.changed))):
            return
        if self._as_json:
            answer_json(self._summary(report))
        elif report and is_json(logging.root):
            level = logging.INFO if well else logging.ERROR
            log.log(level, "check", extra={"fields": self._summary(report)})
        elif report:
            click.echo("\n".join(summary_lines(report)))

    def end(self, report: Report | None) -> NoReturn:
        self.show(report)
        sys.exit(0 if report is None or report.complete else 1)

    def _summary(self, report: Report | None) -> dict[str, Any]:
        if report is None:
            return {"skipped": True}
        return {name: getattr(report, name) for name in SHOWN.split()} | {
            "stuck": report.stuck or None,
            "doubt": report.doubt or None,
            "bytes": report.read_bytes,
            "merchants": self._merchants,
            "listens": bool(meta.get(self._db, meta.Key.LISTENS)),
            "peers": [plain(row, PEER) for row in self._db.rows(sources.PEERS)],
        }


def _holding(handler: logging.Handler) -> MemoryHandler:
    held = MemoryHandler(MOST_HELD, logging.ERROR, handler, flushOnClose=False)
    held.setFormatter(
        handler.formatter
    )  # it formats nothing, but tells how lines are written
    return held


def _heights(report: Report) -> str:
    return ", ".join(map(str, report.set_aside))


def summary_lines(report: Report) -> list[str]:
    behind = report.blocks_behind
    looked_at = report.looked_at
    ahead_s = report.clock_ahead_s
    blocks = "1 block is" if behind == 1 else f"{behind} blocks are"
    hours = "an hour" if report.hours_behind == 1 else f"{report.hours_behind} hours"
    said = [
        (behind, f"{blocks} still to be read, which takes about {hours}: {MORE_CALLS}"),
        (report.failed, f"invoices that could not be looked for: {len(report.failed)}"),
        (
            report.set_aside,
            f"blocks that could not be read, for now: {_heights(report)}",
        ),
        (
            report.chain_failed,
            "the chain could not be read: `blocktill doctor` says what to do",
        ),
        (
            report.stuck,
            f"the chain may not be whole, and nothing expires: {report.stuck}",
        ),
        (ahead_s, f"this machine's clock is {ahead_s} s ahead: {SET_CLOCK}"),
    ]
    parts = "parts could not do their work, and do it later; payments are found: `blocktill doctor`"
    doubt = "nothing is renewed or erased until the time is confirmed: " + report.doubt
    late = [  # and no failure
        (
            report.unreached,
            f"previews are late for {len(report.unreached)} of the invoices whose page is open;"
            f" their payments are found in blocks: read the warnings, or {MORE_CALLS}",
        ),
        (report.put_off, f"invoices left for the next run: {report.put_off}"),
        (
            report.answered and not report.is_agreed,
            "only one of the sources shows the newest blocks: invoices end a day after their"
            " deadline; `blocktill doctor` says which",
        ),
    ]
    return [
        f"blocks read: {report.blocks_read}, invoices looked for in the mempool: {looked_at},"
        f" calls: {report.calls}, MB: {report.read_bytes / 1e6:.1f}",
        *(line for is_so, line in said if is_so),
        *([click.style(parts, fg="red")] if report.parts_behind else []),
        *([click.style(doubt, fg="red")] if report.doubt else []),
        *(click.style(line, fg="yellow") for is_so, line in late if is_so),
        *(f"{invoice_id} is {status}" for invoice_id, status in report.changed.items()),
    ]
