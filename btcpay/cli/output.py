"""A command's output: answers on standard output, as text or JSON, and talk on standard error."""

import io
import logging
import sys
from collections.abc import Iterable, Iterator
from typing import Any

import click
import orjson

from btcpay.settings.logs import is_json
from btcpay.values.times import iso_ms

# Columns that are stored as text and are numbers in JSON: these, and those with such a word.
AMOUNTS = {"amount", "price", "tip"}
WORDS_OF_AMOUNTS = {"usd", "btc", "value"}
log = logging.getLogger(__name__)


def say(text: str, level: int = logging.INFO) -> None:
    """Writes to standard error; with --log-json as a line of the log, of this level."""
    if is_json(logging.root):
        log.log(level, text)
    else:
        click.echo(text, err=True)


def show(rows: Iterable[object], columns: str, as_json: bool) -> None:
    """Answers with these columns of the rows: a JSON array, or a table."""
    if as_json:
        answer_json([json_object(row, columns) for row in rows])
        return
    lines = [columns.split()]
    for row in rows:
        cells = _cells(row, columns)
        lines.append([printable(value) for value in cells.values()])
    widths = [max(map(len, column)) for column in zip(*lines, strict=True)]
    for line in lines:
        padded = (cell.ljust(width) for cell, width in zip(line, widths, strict=True))
        click.echo("  ".join(padded).rstrip())


def printable(value: Any) -> str:
    """The value in one line, without the control characters that a customer's text may hold."""
    if value is None:
        return ""
    return "".join(_escape(character) for character in str(value))


def _escape(character: str) -> str:
    if character.isprintable():
        return character
    return character.encode("unicode_escape").decode()


def json_lines(values: Iterable[Any]) -> Iterator[str]:
    """A JSON array, one value a line, each as soon as it comes: there may be a million."""
    is_empty = True
    separator = "[\n"
    for value in values:
        yield separator + orjson.dumps(value).decode()
        is_empty = False
        separator = ",\n"
    if is_empty:
        yield "[\n]\n"
    else:
        yield "\n]\n"


def answer_json(value: Any) -> None:
    write_data(orjson.dumps(value, option=orjson.OPT_INDENT_2) + b"\n")


def write_data(data: bytes) -> None:
    """Writes what programs read to standard output: in UTF-8, whatever the terminal has."""
    click.echo(data, nl=False)


def escape_output() -> None:
    """Has standard output escape what its encoding cannot write, as standard error does."""
    if isinstance(sys.stdout, io.TextIOWrapper):  # it may be closed
        sys.stdout.reconfigure(errors="backslashreplace")


def _cells(row: Any, columns: str) -> dict[str, Any]:
    """These columns of a row or a dict; `paid_at` is the stored `paid_ms` in ISO 8601."""
    values = row
    if not isinstance(row, dict):
        values = row._asdict()
    cells = {}
    for name in columns.split():
        stored = f"{name.removesuffix('_at')}_ms"
        if name.endswith("_at") and stored in values:
            stored_ms = values[stored]
            cells[name] = None if stored_ms is None else iso_ms(stored_ms)
        else:
            cells[name] = values[name]
    return cells


def json_object(row: object, columns: str) -> dict[str, Any]:
    """These columns as JSON has them. Amounts, which are stored as text, are exact numbers."""
    cells = _cells(row, columns)
    return {name: json_value(name, value) for name, value in cells.items()}


def json_value(name: str, value: Any) -> Any:
    """An amount's text as an exact JSON number; every other value as it is."""
    is_amount = name in AMOUNTS or not WORDS_OF_AMOUNTS.isdisjoint(name.split("_"))
    if isinstance(value, str) and is_amount:
        return orjson.Fragment(value)
    return value


def number_text(value: Any) -> Any:
    """The text of an exact JSON number; every other value as it is."""
    if isinstance(value, orjson.Fragment):
        return orjson.dumps(value).decode()
    return value
