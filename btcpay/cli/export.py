"""Command `export`: streams payments (CSV, ledgers) and wallet labels to standard output."""

import sys
from collections.abc import Iterable, Iterator
from datetime import UTC, datetime
from itertools import chain
from typing import Any, NamedTuple

import click

from btcpay.cli.output import json_lines, json_value
from btcpay.cli.shell import Shell, with_json_shell, with_shell
from btcpay.exports import payments
from btcpay.exports.labels import label_lines
from btcpay.exports.ledgers import FORMATS
from btcpay.merchants.merchants import find_merchant
from btcpay.values.times import in_zone, to_ms, zone_of
from storage.database import Database
from storage.models import Merchant
from storage.queries import merchants

# A date, which means its first moment, or an ISO 8601 time. If the time has no offset from UTC, it
# is in the merchant's time zone.
MOMENT = click.DateTime(["%Y-%m-%d", "%Y-%m-%dT%H:%M:%S", "%Y-%m-%dT%H:%M:%S%z"])
FORM = click.Choice(["csv", "koinly", "beancount"])
merchant_option = click.option(
    "--merchant", metavar="NAME", help="Only this merchant's."
)
export = click.Group(
    "export", help="Files for the bookkeeper and for the wallet, on standard output."
)


@export.command("payments")
@click.option(
    "--from",
    "from_at",
    metavar="DATE",
    type=MOMENT,
    help="Received then or later.",
)
@click.option(
    "--to",
    "to_at",
    metavar="DATE",
    type=MOMENT,
    help="Received before that.",
)
@click.option(
    "--format",
    "form",
    type=FORM,
    default="csv",
    help="Koinly's is its simple template.",
)
@merchant_option
@with_json_shell
def export_payments(
    shell: Shell,
    from_at: datetime | None,
    to_at: datetime | None,
    form: str,
    merchant: str | None,
) -> None:
    """Write payments as CSV (RFC 4180, UTF-8): merchant by merchant, oldest first.

    Days and times of --from and --to are in each merchant's time zone; --from is included, --to
    is not.
    """
    records_by_merchant = []
    # All options are checked before anything is printed.
    for owner in _owners(shell.db, merchant):
        span = _span_of(owner, from_at, to_at)
        records_by_merchant.append(
            payments.payment_records(shell.db, owner, span.first_ms, span.before_ms)
        )
    records = chain.from_iterable(records_by_merchant)
    if shell.as_json:
        _write(json_lines(_json_records(records)))
    else:
        _write(FORMATS[form].lines(records, "en", UTC))


def _json_records(records: Iterable[dict[str, Any]]) -> Iterator[dict[str, Any]]:
    for record in records:
        yield {name: json_value(name, value) for name, value in record.items()}


class _Span(NamedTuple):
    """A period in ms since 1970; `before_ms` is the first millisecond after it."""

    first_ms: int
    before_ms: int


def _span_of(
    owner: Merchant,
    from_at: datetime | None,
    to_at: datetime | None,
) -> _Span:
    """Returns the period from --from to --to in the merchant's time zone.

    A time before 1970 is replaced by the start of 1970. Raises UsageError if --from is
    later than --to.
    """
    zone = zone_of(owner.timezone)
    first_ms = 0
    before_ms = payments.END
    if from_at:
        first_ms = to_ms(in_zone(from_at, zone))
    if to_at:
        before_ms = to_ms(in_zone(to_at, zone))
    if from_at and to_at and first_ms > before_ms:
        raise click.UsageError("--from is later than --to")
    return _Span(max(0, first_ms), max(0, before_ms))


@export.command("labels")
@merchant_option
@with_shell
def export_labels(shell: Shell, merchant: str | None) -> None:
    """Write labels of addresses, transactions and outputs as BIP329 JSON lines.

    Wallets such as Sparrow import them. The labels show who paid for what, so delete the file
    after the import.
    """
    for owner in _owners(shell.db, merchant):
        _write(label_lines(shell.db, owner))


def _owners(db: Database, name: str | None) -> list[Merchant]:
    if name is None:
        return db.rows(merchants.ALL)
    return [find_merchant(db, name)]


def _write(lines: Iterable[str]) -> None:
    """Writes UTF-8 to standard output, regardless of the terminal's encoding."""
    sys.stdout.buffer.writelines(line.encode() for line in lines)
    sys.stdout.buffer.flush()
