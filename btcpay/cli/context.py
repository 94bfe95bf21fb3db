"""What every command shares: settings first, then the database, answers as text or JSON."""

import logging
import os
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property, update_wrapper
from typing import Any

import click
import orjson

from btcpay.settings.settings import Settings, is_said, strange_names
from btcpay.values.times import iso_ms
from btcpay.web.logs import is_json
from btcpay.web.server.startup import read_or_exit
from storage.database import Database, Row, place_of
from storage.versions import open_ready

TELLING = ("BTCPAY_NETWORK", "BTCPAY_DATABASE_URL")  # whose defaults are mostly not meant
A_LETTER = 0.9  # so alike are two names when a letter is wrong
log = logging.getLogger(__name__)
as_json = click.option("--json", "as_json", is_flag=True, help="Answer as JSON.")


@dataclass(frozen=True)
class Shell:
    """The settings of this invocation, and what they lead to."""

    settings: Settings

    @cached_property
    def db(self) -> Database:
        """The database, closed when the command ends. Raises DatabaseNotReady."""
        db = open_ready(self.settings.database_url, self.settings.network.name)
        click.get_current_context().call_on_close(db.close)
        return db


def with_shell(function: Callable[..., Any]) -> Callable[..., Any]:
    """Reads words and settings before the command does anything; mistakes end it with status 2."""

    def command(*args: Any, **kwargs: Any) -> Any:
        require_text(kwargs.values())
        settings = read_or_exit(os.environ)
        if function.__name__ != "sandbox":  # which works on its own whatever is set
            _tell_defaults(settings)
        return function(Shell(settings), *args, **kwargs)

    return update_wrapper(command, function)


def _tell_defaults(settings: Settings) -> None:
    """Whoever meant another shop, or mistyped a name, learns it, however well the command ends."""
    for name, meant in strange_names(os.environ, A_LETTER).items():
        if meant:
            say(f"nothing reads {name}: did you mean {meant}?")
    names = [name for name in TELLING if not is_said(os.environ, name)]
    if names:
        place = place_of(settings.database_url)
        say(f"{' and '.join(names)} not set: this is {settings.network.name}, {place}")


def require_text(values: Iterable[Any]) -> None:
    """Bytes that are no UTF-8 become lone surrogates in a word, which no database takes."""
    for value in values:
        if not isinstance(value, str):  # a path may be any bytes
            continue
        try:
            value.encode()
        except UnicodeEncodeError:
            raise click.UsageError(f"{value!a} is no UTF-8") from None


def say(text: str, level: int = logging.INFO) -> None:
    """Talk: to standard error; with --log-json a line of the log, of that level."""
    if is_json(logging.root):
        log.log(level, text)
    else:
        click.echo(text, err=True)


def show(rows: Sequence[Row], columns: Sequence[str], as_json: bool) -> None:
    """Answers with rows: a JSON array, or a table of these columns."""
    if as_json:
        answer_json([plain(row, columns) for row in rows])
        return
    shown = [[printable(_timed(name, row[name])) for name in columns] for row in rows]
    cells = [list(columns), *shown]
    widths = [max(map(len, column)) for column in zip(*cells, strict=True)]
    for line in cells:
        padded = (cell.ljust(width) for cell, width in zip(line, widths, strict=True))
        click.echo("  ".join(padded).rstrip())


def printable(value: Any) -> str:
    """The value as one line that a terminal only shows: a customer's text may hold controls."""
    text = "" if value is None else str(value)
    return "".join(c if c.isprintable() else c.encode("unicode_escape").decode() for c in text)


def answer_json(value: Any) -> None:
    """Answers with one JSON value."""
    click.echo(orjson.dumps(value, option=orjson.OPT_INDENT_2).decode())


def answer_lines(texts: Iterable[str], as_json: bool) -> None:
    """Answers with a text a line, or with a JSON array; each as it comes, of a million too."""
    between = "[\n  "
    for text in texts:
        click.echo(between + orjson.dumps(text).decode() if as_json else text, nl=not as_json)
        between = ",\n  "
    if as_json:
        click.echo("\n]")


def _timed(name: str, value: Any) -> Any:
    """Stored times as ISO 8601; everything else as it is."""
    return iso_ms(value) if name.endswith("_at") and isinstance(value, int) else value


def plain(row: Row, columns: Sequence[str]) -> Row:
    """The columns of a row as JSON has them; sums are kept as text, and leave as exact numbers."""
    return {name: number(name, _timed(name, row[name])) for name in columns}


def number(name: str, value: Any) -> Any:
    """The text of a column whose name has its unit, USD or BTC, as the JSON number that it is."""
    if isinstance(value, str) and {"usd", "btc"} & set(name.split("_")):
        return orjson.Fragment(value)
    return value
