"""The parts that commands share: settings first, then the database; answers as text or JSON."""

import io
import logging
import os
import re
import select
import signal
import sys
from collections.abc import Callable, Iterable, Iterator
from contextlib import suppress
from dataclasses import dataclass
from datetime import datetime
from functools import cached_property, update_wrapper
from typing import Any

import click
import orjson

from btcpay.notify.kinds import PartResource
from btcpay.settings.logs import is_json
from btcpay.settings.settings import Settings, is_said, read_or_exit
from btcpay.values.times import iso_ms, utc_now
from storage.database import Database, place_of
from storage.queries import merchants
from storage.statement import Typed
from storage.versions import open_ready

HAVE_DEFAULTS = (
    "BLOCKTILL_NETWORK",
    "BLOCKTILL_DATABASE_URL",
)  # their defaults are rarely wanted
log = logging.getLogger(__name__)
json_option = click.option("--json", "as_json", is_flag=True, help="Answer as JSON.")
limit_option = click.option(
    "--limit", type=click.IntRange(1, 10_000), default=100, show_default=True
)


@dataclass(frozen=True)
class Shell:
    """The settings of this invocation, its database and its way to answer."""

    settings: Settings
    as_json: bool = False

    @cached_property
    def db(self) -> Database:
        """The database, closed when the command ends. Raises DatabaseNotReady."""
        db = open_ready(self.settings.database_url, self.settings.network.name)
        click.get_current_context().call_on_close(db.close)
        return db

    @property
    def now(self) -> datetime:
        """The time: only entry points read the clock."""
        return utc_now()

    def answer(self, value: Any, text: str | None) -> None:
        """Answers with a JSON value, or with this text unless it is None."""
        if self.as_json:
            answer_json(value)
        elif text is not None:
            click.echo(text)

    def show(self, rows: Iterable[object], columns: str) -> None:
        show(rows, columns, self.as_json)


class Stop:
    """An event that these signals set, or any thread.

    A threading.Event has a lock. The thread that a signal interrupts may hold it, and its handler
    would wait for itself.
    """

    def __init__(self, *signals: int) -> None:
        self._is_set, self._set = os.pipe()
        os.set_blocking(self._set, False)
        for number in signals:
            signal.signal(number, lambda *_: self.set())

    def set(self) -> None:
        with suppress(BlockingIOError):  # the pipe is full: it was set before
            os.write(self._set, b".")

    def wait(self, seconds: float = 0) -> bool:
        """True once it is set; False if the time runs out first."""
        return bool(select.select([self._is_set], [], [], seconds)[0])


def with_shell(function: Callable[..., Any]) -> Callable[..., Any]:
    """Gives a command its Shell. Mistakes in words or settings end it first, with status 2."""

    def command(*args: Any, as_json: bool = False, **kwargs: Any) -> Any:
        require_text(kwargs.values())
        settings = read_or_exit(os.environ)
        if unsaid := [name for name in HAVE_DEFAULTS if not is_said(os.environ, name)]:
            place = f"{settings.network.name}, {place_of(settings.database_url)}"
            say(f"{' and '.join(unsaid)} not set: this is {place}")
        return function(Shell(settings, as_json), *args, **kwargs)

    return update_wrapper(command, function)


def with_json_shell(function: Callable[..., Any]) -> Callable[..., Any]:
    """`with_shell`, and the option --json."""
    return json_option(with_shell(function))


def require_text(values: Iterable[Any]) -> None:
    """Refuses words with lone surrogates (bytes that are no UTF-8), which no database stores."""
    for value in values:
        if isinstance(value, str) and re.search(
            "[\ud800-\udfff]", value
        ):  # a Path may have them
            raise click.UsageError(f"{value!a} is not UTF-8")


def say(text: str, level: int = logging.INFO) -> None:
    """Talks on standard error; with --log-json in a line of the log, of that level."""
    if is_json(logging.root):
        log.log(level, text)
    else:
        click.echo(text, err=True)


def show(rows: Iterable[object], columns: str, as_json: bool) -> None:
    """Answers with rows: a JSON array, or a table of these columns."""
    if as_json:
        answer_json([plain(row, columns) for row in rows])
        return
    cells = [
        columns.split(),
        *(map(printable, _cells(row, columns).values()) for row in rows),
    ]
    cells = [list(line) for line in cells]
    widths = [max(map(len, column)) for column in zip(*cells, strict=True)]
    for line in cells:
        padded = (cell.ljust(width) for cell, width in zip(line, widths, strict=True))
        click.echo("  ".join(padded).rstrip())


def printable(value: Any) -> str:
    """The value in one line, without the control characters that a customer's text may hold."""
    text = "" if value is None else str(value)
    return "".join(
        c if c.isprintable() else c.encode("unicode_escape").decode() for c in text
    )


def json_lines(values: Iterable[Any]) -> Iterator[str]:
    """A JSON array, a value a line, each at once: there may be a million."""
    between = "[\n"
    for value in values:
        yield between + orjson.dumps(value).decode()
        between = ",\n"
    yield "\n]\n" if between.startswith(",") else "[\n]\n"


def answer_json(value: Any) -> None:
    write_data(orjson.dumps(value, option=orjson.OPT_INDENT_2) + b"\n")


def write_data(data: bytes) -> None:
    """Writes what programs read on standard output: in UTF-8, whatever the terminal has."""
    click.echo(data, nl=False)


def escape_output() -> None:
    """Has standard output escape what its encoding cannot write, as standard error does."""
    if isinstance(sys.stdout, io.TextIOWrapper):  # it may be closed
        sys.stdout.reconfigure(errors="backslashreplace")


def _cells(row: Any, columns: str) -> dict[str, Any]:
    """These columns of a row or a dict, times in ISO 8601."""
    values = row if isinstance(row, dict) else row._asdict()
    cells = {name: values[name] for name in columns.split()}
    times = {
        name for name in cells if name.endswith("_at") and isinstance(cells[name], int)
    }
    return cells | {name: iso_ms(cells[name]) for name in times}


def plain(row: object, columns: str) -> dict[str, Any]:
    """These columns as JSON has them: amounts, which are stored as text, are exact numbers."""
    return {name: number(name, value) for name, value in _cells(row, columns).items()}


def number(name: str, value: Any) -> Any:
    """An amount's text as an exact JSON number; every other value as it is."""
    is_amount = name in ("amount", "price", "tip") or {"usd", "btc", "value"} & set(
        name.split("_")
    )
    if isinstance(value, str) and is_amount:
        return orjson.Fragment(value)
    return value


def merchant_names(db: Database) -> dict[int, str]:
    """The names of all merchants by their ids."""
    return {row.id: row.name for row in db.rows(merchants.ALL)}


def facts_of(
    of: PartResource[Any], base_url: str, merchant: str, row: Any
) -> dict[str, Any]:
    """All that events have of a part's resource, and whose it is; an amount is its text.

    An event's amount is a JSON number, of which many programs drop the last zeros.
    """
    shown = of.serialize(base_url, row).items()
    facts = {name: json_text(value) for name, value in shown}
    return {"object": of.name, "id": row.id, "merchant": merchant} | facts


def json_text(value: Any) -> Any:
    """An exact JSON number as its text, any other value as it is."""
    if isinstance(value, orjson.Fragment):
        return orjson.dumps(value).decode()
    return value


def add_list_and_show(
    group: click.Group,
    of: PartResource[Any],
    newest: Typed[Any],
    columns: str,
    more: Callable[[Database, str], dict[str, Any]] = lambda _db, _id: {},
) -> None:
    """Gives a part's resource the commands `list`, the rows of `newest`, and `show`.

    Both have the same values, of which `list` shows some. `more`: what `show` adds to all that
    events have of it.
    """

    @group.command("list", help=f"The newest {of.name}s of all merchants.")
    @limit_option
    @with_json_shell
    def list_(shell: Shell, limit: int) -> None:
        names = merchant_names(shell.db)
        base_url = shell.settings.base_url
        rows = shell.db.rows(newest, limit=limit)
        facts = [facts_of(of, base_url, names[row.merchant_id], row) for row in rows]
        if shell.as_json:
            answer_json(
                [{name: fact[name] for name in columns.split()} for fact in facts]
            )
        else:
            show(facts, columns, as_json=False)

    @group.command("show", help=f"Show a {of.name}, with all that events have of it.")
    @click.argument("id", metavar="ID")
    @with_json_shell
    def show_(shell: Shell, id: str) -> None:
        row = of.find(shell.db, id)
        base_url = shell.settings.base_url
        merchant = shell.db.only(merchants.BY_ID, id=row.merchant_id).name
        facts = facts_of(of, base_url, merchant, row) | more(shell.db, id)
        shell.answer(
            facts, "\n".join(f"{name}: {_text(value)}" for name, value in facts.items())
        )


def _text(value: Any) -> str:
    if isinstance(value, list):
        return " ".join(value)
    return printable(value)
