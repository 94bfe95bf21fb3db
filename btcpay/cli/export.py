"""`export`: payments for the bookkeeper, labels for the wallet; written while they are read."""

import sys
from collections.abc import Iterable
from datetime import UTC, datetime
from itertools import chain

import click

from btcpay.cli.context import Shell, json_lines, number, with_json_shell, with_shell
from btcpay.exports import payments
from btcpay.exports.ledgers import FORMATS
from btcpay.exports.payments import label_lines
from btcpay.merchants.merchants import find_merchant
from btcpay.values.times import in_zone, to_ms, zone_of
from storage.database import Database
from storage.models import Merchant
from storage.queries import merchants

# A day's beginning or an ISO 8601 time; without an offset it is in the merchant's zone.
MOMENT = click.DateTime(["%Y-%m-%d", "%Y-%m-%dT%H:%M:%S", "%Y-%m-%dT%H:%M:%S%z"])
FORM = click.Choice(["csv", "koinly", "beancount"])
of_merchant = click.option("--merchant", metavar="NAME", help="Only this merchant's.")
export = click.Group(
    "export", help="Files for the bookkeeper and for the wallet, on standard output."
)


@export.command("payments")
@click.option(
    "--from", "from_at", metavar="DATE", type=MOMENT, help="Received then or later."
)
@click.option(
    "--to", "to_at", metavar="DATE", type=MOMENT, help="Received before that."
)
@click.option(
    "--format",
    "form",
    type=FORM,
    default="csv",
    help="Koinly's is its simple template.",
)
@of_merchant
@with_json_shell
def export_payments(
    shell: Shell,
    from_at: datetime | None,
    to_at: datetime | None,
    form: str,
    merchant: str | None,
) -> None:
    """Payments as CSV (RFC 4180, UTF-8), one line each: merchant by merchant, oldest first.

    Days and times of --from and --to are those of each merchant's time zone; --from is
    included, --to is not.
    """
    owners = [
        (owner, _span(owner, from_at, to_at)) for owner in _chosen(shell.db, merchant)
    ]
    records = chain.from_iterable(
        payments.payment_records(shell.db, owner, *span) for owner, span in owners
    )
    exact = (
        {name: number(name, value) for name, value in row.items()} for row in records
    )
    lines = FORMATS[form].lines(records, "en", UTC)
    _write(json_lines(exact) if shell.as_json else lines)


def _span(
    owner: Merchant, from_at: datetime | None, to_at: datetime | None
) -> tuple[int, int]:
    """The first millisecond, and the one after the last."""
    zone = zone_of(owner.timezone)
    first_ms = max(0, to_ms(in_zone(from_at, zone))) if from_at else 0
    before_ms = to_ms(in_zone(to_at, zone)) if to_at else payments.END
    if from_at and to_at and first_ms > before_ms:
        raise click.UsageError("--from is later than --to")
    return first_ms, before_ms


@export.command("labels")
@of_merchant
@with_shell
def export_labels(shell: Shell, merchant: str | None) -> None:
    """Labels of addresses, transactions and outputs as BIP329 JSON lines.

    Wallets such as Sparrow import them. They show who paid for what: delete the file afterwards.
    """
    for owner in _chosen(shell.db, merchant):
        _write(label_lines(shell.db, owner))


def _chosen(db: Database, name: str | None) -> list[Merchant]:
    if name is None:
        return db.rows(merchants.ALL)
    return [find_merchant(db, name)]


def _write(lines: Iterable[str]) -> None:
    """To standard output in UTF-8, whatever the terminal's own encoding is."""
    sys.stdout.buffer.writelines(line.encode() for line in lines)
    sys.stdout.buffer.flush()
