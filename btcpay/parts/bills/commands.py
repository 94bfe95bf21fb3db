"""The command group `bill`: creates, lists, shows, ends, resumes and undoes bills."""

from collections.abc import Iterable
from datetime import UTC, datetime
from typing import Any

import click

from btcpay import hooks
from btcpay.cli.operation_options import order_fields, parse_number
from btcpay.cli.output import say
from btcpay.cli.resource_commands import add_list_and_show, facts_of
from btcpay.cli.shell import Shell, with_json_shell, with_shell
from btcpay.invoices.links import greatest_amount
from btcpay.invoices.orders import order_of
from btcpay.merchants.account import dust_limit_of_account
from btcpay.merchants.merchants import find_merchant
from btcpay.parts.bills import actions, queries
from btcpay.parts.bills import undo as undoing
from btcpay.parts.bills.calendar import EVERY
from btcpay.parts.bills.kinds import RESOURCE
from btcpay.prices.price import Prices
from btcpay.values.money import checked_currency
from btcpay.values.times import iso, iso_ms
from storage.database import Database

DAYS = click.IntRange(0, actions.MOST_DAYS)
LIST_COLUMNS = (
    "id merchant status amount paid currency reference every due_at created_at"
)
bill = click.Group("bill", help="Bills, which are priced when they are paid.")


@bill.command("create")
@click.argument("merchant")
@click.option(
    "--amount",
    required=True,
    callback=parse_number,
    metavar="A",
    help="The amount owed.",
)
@click.option("--currency", metavar="EUR", help="[default: the merchant's]")
@click.option(
    "--email",
    "customer_email",
    metavar="E",
    help="The customer's address, for mail.",
)
@click.option("--reference", metavar="R", help="Your own number; the customer sees it.")
@click.option(
    "--description", metavar="D", help="What it is for; the customer sees it."
)
@click.option(
    "--due",
    "due_days",
    type=DAYS,
    default=actions.DUE_DAYS,
    metavar="DAYS",
    show_default=True,
)
@click.option("--every", type=click.Choice(EVERY), help="Make it again each period.")
@click.option(
    "--until",
    type=click.DateTime(["%Y-%m-%d"]),
    metavar="DATE",
    help="Make none later.",
)
@with_json_shell
def create(
    shell: Shell,
    merchant: str,
    currency: str | None,
    due_days: int,
    every: str | None,
    until: datetime | None,
    reference: str | None,
    **fields: Any,
) -> None:
    """Make a bill; prints its id and its page for the customer."""
    if until and not every:
        raise click.UsageError("--until goes with --every")
    owner = find_merchant(shell.db, merchant)
    now = shell.now
    code = checked_currency(currency or owner.currency)
    order_data = order_fields(code, fields) | {"reference": reference}
    dust_limit_sats = dust_limit_of_account(owner.descriptor)
    order = order_of(
        merchant_id=owner.id,
        body=order_data,
        currency=code,
        high=greatest_amount(code),
        dust_limit_sats=dust_limit_sats,
    )
    actions.refuse_unpayable(Prices(shell.settings), now, order)
    last_day = None
    if until:
        last_day = until.date()
    terms = actions.Terms(due_days, every, last_day)
    with shell.db.write():
        row = actions.make(shell.db, order, terms, now)
    facts = facts_of(RESOURCE, shell.settings.base_url, owner.name, row)
    shell.answer(facts, f"{facts['id']}\n{facts['bill_url']}")


@bill.command("end")
@click.argument("bill_id", metavar="ID")
@with_shell
def end(shell: Shell, bill_id: str) -> None:
    """End an open bill and its series; the customer is asked for nothing more."""
    actions.end(shell.db, shell.settings, bill_id, shell.now)
    say(f"{bill_id} has ended")


@bill.command("resume")
@click.argument("bill_id", metavar="ID")
@click.option("--skip", is_flag=True, help="Make none of the bills that it has missed.")
@with_shell
def resume(shell: Shell, bill_id: str, skip: bool) -> None:
    """Go on with a series of bills that waits for your decision.

    A series waits if it has missed more than a year of bills, or if its bills were undone. The
    next check makes the missed bills, a year of them at most.
    """
    first = undoing.resume(shell.db, bill_id, shell.now, skip=skip)
    next_at = "none"
    if first.renews_ms is not None:
        next_at = iso_ms(first.renews_ms)
    say(f"the series {first.id} goes on; its next bill is of {next_at}")


def _parse_time(_context: Any, _option: Any, text: str) -> datetime:
    """Parses the option's text as a time; the zone is UTC unless the text has one."""
    try:
        at = datetime.fromisoformat(text)
    except ValueError:
        raise click.BadParameter("say a time such as 2026-11-28T14:30Z") from None
    if at.tzinfo:
        return at
    return at.replace(tzinfo=UTC)


@bill.command("undo")
@click.option(
    "--since",
    required=True,
    callback=_parse_time,
    metavar="TIME",
    help="Such as 2026-11-28T14:30Z.",
)
@click.option("--series", metavar="ID", help="Of this series alone.")
@click.option("--yes", is_flag=True, help="Do not ask.")
@with_json_shell
def undo(shell: Shell, since: datetime, series: str | None, yes: bool) -> None:
    """Undo the unpaid bills that series have made since a time, such as by a wrong clock.

    These bills end without a mail. Each series goes on with the first period whose bill was
    undone. A bill that has received a payment is kept.
    """
    counts = undoing.count_made_since(shell.db, since)
    if series is not None:
        wanted_id = RESOURCE.find(shell.db, series).series_id
        counts = {id: count for id, count in counts.items() if id == wanted_id}
    total = sum(counts.values())
    say(f"unpaid bills that series have made since {iso(since)}: {total}")
    if counts and not yes:
        question = f"End them, and put {len(counts)} series back?"
        click.confirm(question, abort=True, err=True)
    result = _undo_all(shell, counts, since)
    lines = [f"{len(result.ids)} bills are undone"]
    lines += [f"{id} stays: something has come to it" for id in result.kept_ids]
    shell.answer({"undone": result.ids, "kept": result.kept_ids}, "\n".join(lines))


def _undo_all(
    shell: Shell, series_ids: Iterable[str], since: datetime
) -> undoing.Undone:
    ids: list[str] = []
    kept_ids: list[str] = []
    for series_id in series_ids:
        result = undoing.undo(shell.db, shell.settings, series_id, since, shell.now)
        ids += result.ids
        kept_ids += result.kept_ids
    return undoing.Undone(ids, kept_ids)


def _invoice_ids(db: Database, id: str) -> dict[str, Any]:
    return {"invoices": [row.id for row in db.rows(queries.ALL_INVOICES, id=id)]}


add_list_and_show(bill, RESOURCE, queries.NEWEST, LIST_COLUMNS, _invoice_ids)

HOOK = hooks.Commands(commands={"bill": bill})
