"""Commands that every resource of a part has."""

from collections.abc import Callable
from typing import Any

import click
import orjson

from btcpay.cli.context import Shell, answering, limited, printable
from btcpay.notify.kinds import Resource
from storage.database import Database
from storage.statement import Typed


def add_list_and_show(
    group: click.Group,
    of: Resource[Any],
    newest: Typed[Any],
    columns: str,
    more: Callable[[Database, str], dict[str, Any]] = lambda _db, _id: {},
) -> None:
    """`list` the rows of `newest`, and `show` one, with `more` than events have of it."""

    @group.command("list", help=f"The newest {of.name}s of all merchants.")
    @limited
    @answering
    def list_(shell: Shell, limit: int) -> None:
        shell.show(shell.db.rows(newest, limit=limit), columns)

    @group.command("show", help=f"Show a {of.name}, with all that events have of it.")
    @click.argument("id", metavar="ID")
    @answering
    def show(shell: Shell, id: str) -> None:
        facts = of.shown(shell.settings.base_url, of.find(shell.db, id)) | more(shell.db, id)
        shell.answer(facts, "\n".join(f"{name}: {_text(value)}" for name, value in facts.items()))


def _text(value: Any) -> str:
    if isinstance(value, list):
        return " ".join(value)
    return printable(orjson.dumps(value).decode() if isinstance(value, orjson.Fragment) else value)
