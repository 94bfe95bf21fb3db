"""Builds the commands `list` and `show` for a resource of a part (an optional plug-in)."""

from collections.abc import Callable
from typing import Any

import click

from btcpay.cli.output import answer_json, number_text, printable, show
from btcpay.cli.shell import Shell, limit_option, with_json_shell
from btcpay.notify.kinds import PartResource
from storage.database import Database
from storage.queries import merchants
from storage.statement import Typed


def merchant_names(db: Database) -> dict[int, str]:
    """Returns the names of all merchants, by id."""
    return {row.id: row.name for row in db.rows(merchants.ALL)}


def facts_of(
    resource: PartResource[Any],
    base_url: str,
    merchant: str,
    row: Any,
) -> dict[str, Any]:
    """Returns the row's fields as in events, and the name of its merchant.

    Amounts are texts here, although they are JSON numbers in events: many programs drop
    the trailing zeros of JSON numbers.
    """
    facts = {"object": resource.name, "id": row.id, "merchant": merchant}
    for name, value in resource.serialize(base_url, row).items():
        facts[name] = number_text(value)
    return facts


def _nothing_more(_db: Database, _id: str) -> dict[str, Any]:
    return {}


def add_list_and_show(
    group: click.Group,
    resource: PartResource[Any],
    newest: Typed[Any],
    columns: str,
    more: Callable[[Database, str], dict[str, Any]] = _nothing_more,
) -> None:
    """Adds the commands `list` and `show` to `group`, for a resource of a part.

    `list` prints `columns` of the rows that the query `newest` selects. `show` prints
    all fields of one row, and the further fields that `more(db, id)` returns.
    """

    @group.command("list", help=f"The newest {resource.name}s of all merchants.")
    @limit_option
    @with_json_shell
    def list_(shell: Shell, limit: int) -> None:
        names = merchant_names(shell.db)
        base_url = shell.settings.base_url
        rows = shell.db.rows(newest, limit=limit)
        facts = [
            facts_of(resource, base_url, names[row.merchant_id], row) for row in rows
        ]
        if not shell.as_json:
            show(facts, columns, as_json=False)
            return
        column_names = columns.split()
        answer_json([{name: row[name] for name in column_names} for row in facts])

    @group.command(
        "show", help=f"Show a {resource.name}, with all that events have of it."
    )
    @click.argument("id", metavar="ID")
    @with_json_shell
    def show_(shell: Shell, id: str) -> None:
        row = resource.find(shell.db, id)
        base_url = shell.settings.base_url
        merchant = shell.db.get(merchants.BY_ID, id=row.merchant_id).name
        facts = facts_of(resource, base_url, merchant, row) | more(shell.db, id)
        lines = [f"{name}: {_line(value)}" for name, value in facts.items()]
        shell.answer(facts, "\n".join(lines))


def _line(value: Any) -> str:
    if isinstance(value, list):
        return " ".join(value)
    return printable(value)
