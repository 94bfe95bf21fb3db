"""Formats the report of a check (a run of `blocktill check`) for people."""

import click

from btcpay.check.report import Report
from btcpay.values.times import SET_CLOCK

MORE_CALLS = "see BLOCKTILL_EXPLORER_CALLS_PER_HOUR"
BYTES_PER_MB = 1_000_000


def summary_lines(report: Report) -> list[str]:
    """Returns lines about the work done, failures, delays and changed invoices."""
    lines = [
        f"blocks read: {report.blocks_read},"
        f" invoices looked for in the mempool: {report.looked_at},"
        f" calls: {report.calls}, MB: {report.read_bytes / BYTES_PER_MB:.1f}"
    ]
    lines += _failures(report)
    lines += [click.style(line, fg="red") for line in _postponed_work(report)]
    lines += [click.style(line, fg="yellow") for line in _warnings(report)]
    for invoice_id, status in report.new_statuses.items():
        lines.append(f"{invoice_id} is {status}")
    return lines


def _failures(report: Report) -> list[str]:
    """Returns a line for each reason why the run is not complete."""
    lines = []
    if report.blocks_behind:
        lines.append(
            f"{_blocks(report.blocks_behind)} still to be read, which takes about"
            f" {_hours(report.hours_behind)}: {MORE_CALLS}"
        )
    if report.failed:
        lines.append(f"invoices that could not be looked for: {len(report.failed)}")
    if report.set_aside:
        heights = ", ".join(map(str, report.set_aside))
        lines.append(f"blocks that could not be read, for now: {heights}")
    if report.chain_failed:
        lines.append("the chain could not be read: `blocktill doctor` says what to do")
    if report.stuck_reason:
        lines.append(
            f"the chain may not be whole, and nothing expires: {report.stuck_reason}"
        )
    if report.clock_ahead_s:
        seconds = report.clock_ahead_s
        lines.append(f"this machine's clock is {seconds} s ahead: {SET_CLOCK}")
    return lines


def _blocks(count: int) -> str:
    if count == 1:
        return "1 block is"
    return f"{count} blocks are"


def _hours(count: int) -> str:
    if count == 1:
        return "an hour"
    return f"{count} hours"


def _postponed_work(report: Report) -> list[str]:
    """Returns a line for each kind of postponed work. Such work delays no payment."""
    lines = []
    if report.parts_behind:
        lines.append(
            "parts could not do their work, and do it later; payments are found: `blocktill doctor`"
        )
    if report.doubt:
        lines.append(
            f"nothing is renewed or erased until the time is confirmed: {report.doubt}"
        )
    return lines


def _warnings(report: Report) -> list[str]:
    """Returns a line for each warning about a run that is nevertheless complete."""
    lines = []
    if report.unreached:
        lines.append(
            f"previews are late for {len(report.unreached)} of the invoices whose page is open;"
            f" their payments are found in blocks: read the warnings, or {MORE_CALLS}"
        )
    if report.put_off:
        lines.append(f"invoices left for the next run: {report.put_off}")
    if report.has_tip and not report.is_agreed:
        lines.append(
            "only one of the sources shows the newest blocks: invoices end a day after their"
            " deadline; `blocktill doctor` says which"
        )
    return lines
