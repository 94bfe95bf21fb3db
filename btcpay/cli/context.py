"""What every command shares: settings first, then the database; answers as text or as JSON."""

import logging
import os
import select
import signal
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import cached_property, update_wrapper
from typing import Any

import click
import orjson

from btcpay.settings.logs import is_json
from btcpay.settings.settings import Settings, is_said, read_or_exit, strange_names
from btcpay.values.times import iso_ms
from storage.database import Database, Row, place_of
from storage.versions import open_ready

HAVE_DEFAULTS = ("BTCPAY_NETWORK", "BTCPAY_DATABASE_URL")  # which are rarely what is meant
A_LETTER = 0.9  # so alike are two names when a letter is wrong
log = logging.getLogger(__name__)
as_json = click.option("--json", "as_json", is_flag=True, help="Answer as JSON.")
limited = click.option("--limit", type=click.IntRange(1, 10_000), default=100, show_default=True)


@dataclass(frozen=True)
class Shell:
    """The settings of this invocation, and what they lead to."""

    settings: Settings
    as_json: bool = False

    @cached_property
    def db(self) -> Database:
        """The database, closed when the command ends. Raises DatabaseNotReady."""
        db = open_ready(self.settings.database_url, self.settings.network.name)
        click.get_current_context().call_on_close(db.close)
        return db

    def answer(self, value: Any, text: str | None) -> None:
        """Answers with a JSON value, or with this text; with nothing where there is none."""
        if self.as_json:
            answer_json(value)
        elif text is not None:
            click.echo(text)

    def show(self, rows: Sequence[Row], columns: str) -> None:
        show(rows, columns, self.as_json)


class Stop:
    """Set once one of these signals has come, or by any thread.

    A signal's handler may take no lock, as that of a threading.Event: the thread that it interrupts
    may hold it, and would wait for itself.
    """

    def __init__(self, *signals: int) -> None:
        self._is_set, self._set = os.pipe()
        os.set_blocking(self._set, False)
        for number in signals:
            signal.signal(number, lambda *_: self.set())

    def set(self) -> None:
        with suppress(BlockingIOError):  # it was set often
            os.write(self._set, b".")

    def wait(self, seconds: float = 0) -> bool:
        """Whether it is set by then."""
        return bool(select.select([self._is_set], [], [], seconds)[0])


def with_shell(function: Callable[..., Any]) -> Callable[..., Any]:
    """Reads words and settings before the command does anything; mistakes end it with status 2."""

    def command(*args: Any, as_json: bool = False, **kwargs: Any) -> Any:
        require_text(kwargs.values())
        settings = read_or_exit(os.environ)
        if function.__name__ != "sandbox":  # which works on its own whatever is set
            _warn_of_defaults(settings)
        return function(Shell(settings, as_json), *args, **kwargs)

    return update_wrapper(command, function)


def answering(function: Callable[..., Any]) -> Callable[..., Any]:
    """`with_shell`, for a command that answers: as JSON too."""
    return as_json(with_shell(function))


def _warn_of_defaults(settings: Settings) -> None:
    for name, meant in strange_names(os.environ, A_LETTER).items():
        if meant:
            say(f"nothing reads {name}: did you mean {meant}?")
    names = [name for name in HAVE_DEFAULTS if not is_said(os.environ, name)]
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
            raise click.UsageError(f"{value!a} is not UTF-8") from None


def say(text: str, level: int = logging.INFO) -> None:
    """Talk: to standard error; with --log-json a line of the log, of that level."""
    if is_json(logging.root):
        log.log(level, text)
    else:
        click.echo(text, err=True)


def show(rows: Sequence[Row], columns: str, as_json: bool) -> None:
    """Answers with rows: a JSON array, or a table of these columns."""
    if as_json:
        answer_json([plain(row, columns) for row in rows])
        return
    names = columns.split()
    cells = [names, *([printable(_timed(name, row[name])) for name in names] for row in rows)]
    widths = [max(map(len, column)) for column in zip(*cells, strict=True)]
    for line in cells:
        padded = (cell.ljust(width) for cell, width in zip(line, widths, strict=True))
        click.echo("  ".join(padded).rstrip())


def printable(value: Any) -> str:
    """The value as one line that a terminal only shows: a customer's text may hold controls."""
    text = "" if value is None else str(value)
    return "".join(c if c.isprintable() else c.encode("unicode_escape").decode() for c in text)


def json_lines(values: Iterable[Any]) -> Iterator[str]:
    """One JSON array, a value a line, each as soon as it comes: there may be a million."""
    between = "[\n"
    for value in values:
        yield between + orjson.dumps(value).decode()
        between = ",\n"
    yield "\n]\n" if between.startswith(",") else "[\n]\n"


def answer_json(value: Any) -> None:
    click.echo(orjson.dumps(value, option=orjson.OPT_INDENT_2).decode())


def _timed(name: str, value: Any) -> Any:
    return iso_ms(value) if name.endswith("_at") and isinstance(value, int) else value


def plain(row: Row, columns: str) -> Row:
    """The columns of a row as JSON has them; sums are kept as text, and leave as exact numbers."""
    return {name: number(name, _timed(name, row[name])) for name in columns.split()}


def number(name: str, value: Any) -> Any:
    """The text of a column whose name says that it is an amount as the JSON number that it is."""
    is_amount = name in ("amount", "price", "tip") or {"usd", "btc", "value"} & set(name.split("_"))
    if isinstance(value, str) and is_amount:
        return orjson.Fragment(value)
    return value
