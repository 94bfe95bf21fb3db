"""`invoice list` and `invoice dismiss`: the invoices, and which of them want a human."""

import click

from btcpay.cli.context import Shell, as_json, say, show, with_shell
from btcpay.errors import CommandError
from btcpay.invoices.attention import heed
from btcpay.invoices.events import record
from btcpay.settlement.attention import REASONS, WAYS_OUT
from btcpay.times import utc_now
from schemas.requests import STATUSES
from storage.database import Row
from storage.queries import attentions, balances, invoices, listings

LIST_COLUMNS = (
    "id",
    "merchant",
    "status",
    "amount_sats",
    "received_sats",
    "amount_usd_quote",
    "created_at",
    "description",
)
WANTING_COLUMNS = (
    "id",
    "merchant",
    "status",
    "reason",
    "amount_sats",
    "received_sats",
    "missing_sats",
    "since_at",
    "description",
)


@click.command("list")
@click.option("--status", type=click.Choice(STATUSES))
@click.option("--attention", is_flag=True, help="What wants a human, longest first, and why.")
@click.option("--limit", type=click.IntRange(1, 10_000), default=100, show_default=True)
@as_json
@with_shell
def invoice_list(
    shell: Shell, status: str | None, attention: bool, limit: int, as_json: bool
) -> None:
    """The newest invoices, and what came to their addresses, confirmed or waiting."""
    if attention and status:
        raise click.UsageError("--attention lists invoices of every status")
    if attention:
        _show_wanting(shell.db.rows(listings.WANTING, limit=limit), as_json)
        return
    query = listings.ALL_BY_STATUS if status else listings.ALL
    show(shell.db.rows(query, status=status, limit=limit), LIST_COLUMNS, as_json)


def _show_wanting(rows: list[Row], as_json: bool) -> None:
    """The list, and for each reason in it what can be done."""
    if rows or as_json:
        show(rows, WANTING_COLUMNS, as_json)
    else:
        say("no invoice wants attention")
    found = {row["reason"] for row in rows}
    for reason in (reason for reason in WAYS_OUT if reason in found and not as_json):
        say(f"{reason}: {WAYS_OUT[reason]}")


@click.command("dismiss")
@click.argument("invoice_id", metavar="ID")
@click.option("--reason", required=True, help="Kept in the invoice's history.")
@with_shell
def invoice_dismiss(shell: Shell, invoice_id: str, reason: str) -> None:
    """Set aside why an invoice wants attention, until something new happens to it."""
    if not reason.strip():
        raise CommandError("a dismissal needs a reason: --reason TEXT")
    now = utc_now()
    with shell.db.write():
        balances.lock(shell.db, find_invoice(shell, invoice_id)["merchant_id"])
        wanted = shell.db.row(attentions.OF_INVOICE, invoice_id=invoice_id)
        if wanted is None:
            raise CommandError("nothing about this invoice wants attention")
        detail = {"attention": wanted["reason"], "reason": reason}
        record(shell.db, invoice_id, "dismissed", detail, now)
        heed(shell.db, shell.settings, invoice_id, now)
    say(f"dismissed {invoice_id}: {REASONS[wanted['reason']]}")


def find_invoice(shell: Shell, invoice_id: str) -> Row:
    """The whole row. Raises CommandError when there is none."""
    row = shell.db.row(invoices.WHOLE, id=invoice_id)
    if row is None:
        raise CommandError(f"there is no invoice {invoice_id!r}")
    return row
