"""The output of commands: results on standard output, messages on standard error."""

import io
import logging
import sys
from collections.abc import Iterable, Iterator
from typing import Any

import click
import orjson

from btcpay.settings.logs import is_json
from btcpay.values.times import iso_ms

# Amounts are stored as text, and are numbers in JSON. A column is an amount if it has one of these
# names, or if one of these words is in its name.
AMOUNTS = {"amount", "price", "tip"}
WORDS_OF_AMOUNTS = {"usd", "btc", "value"}
log = logging.getLogger(__name__)


def say(text: str, level: int = logging.INFO) -> None:
    """Writes a message to standard error.

    With --log-json, the message is a log line of this level.
    """
    if is_json(logging.root):
        log.log(level, text)
    else:
        click.echo(text, err=True)


def show(rows: Iterable[object], columns: str, as_json: bool) -> None:
    """Prints columns of the rows, as a JSON array or as a table.

    `columns` has the names of the columns, separated by spaces.
    """
    if as_json:
        answer_json([json_object(row, columns) for row in rows])
        return
    lines = [columns.split()]  # the first line has the names of the columns
    for row in rows:
        cells = _cells(row, columns)
        lines.append([printable(value) for value in cells.values()])
    widths = [max(map(len, column)) for column in zip(*lines, strict=True)]
    for line in lines:
        padded = map(str.ljust, line, widths)
        click.echo("  ".join(padded).rstrip())


def printable(value: Any) -> str:
    """Returns the value as one line; "" for None.

    Unprintable characters are escaped, since a text that a customer typed may contain
    control characters.
    """
    if value is None:
        return ""
    return "".join(_escape(character) for character in str(value))


def _escape(character: str) -> str:
    if character.isprintable():
        return character
    return character.encode("unicode_escape").decode()


def json_lines(values: Iterable[Any]) -> Iterator[str]:
    """Yields the text of a JSON array, one value on a line.

    Each value is yielded as soon as it is available, since there may be a million.
    """
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
    """Writes bytes to standard output unchanged, regardless of the terminal's encoding."""
    click.echo(data, nl=False)


def escape_output() -> None:
    """Makes standard output escape characters that its encoding lacks."""
    if isinstance(sys.stdout, io.TextIOWrapper):  # a closed one is None
        sys.stdout.reconfigure(errors="backslashreplace")


def _cells(row: Any, columns: str) -> dict[str, Any]:
    """Returns the columns of a row or a dict, by name.

    A stored time such as `paid_ms` has the name `paid_at` in `columns`, and is returned
    in ISO 8601.
    """
    values = row
    if not isinstance(row, dict):
        values = row._asdict()
    cells = {}
    for name in columns.split():
        stored_name = f"{name.removesuffix('_at')}_ms"
        is_stored_time = name.endswith("_at") and stored_name in values
        if is_stored_time:
            cells[name] = _iso_or_none(values[stored_name])
        else:
            cells[name] = values[name]
    return cells


def _iso_or_none(ms: int | None) -> str | None:
    if ms is None:
        return None
    return iso_ms(ms)


def json_object(row: object, columns: str) -> dict[str, Any]:
    """Returns columns of the row or dict as a JSON object, in which amounts are numbers.

    `columns` has the names of the columns, separated by spaces. A stored time such as
    `paid_ms` has the name `paid_at` here, and is returned in ISO 8601.
    """
    cells = _cells(row, columns)
    return {name: json_value(name, value) for name, value in cells.items()}


def json_value(name: str, value: Any) -> Any:
    """Returns a value for JSON: an amount, which is stored as text, becomes a number.

    The number (an orjson.Fragment) has all digits of the text. Any other value is
    returned unchanged. `name` is the name of the column; it tells whether the value is
    an amount.
    """
    is_amount = name in AMOUNTS or not WORDS_OF_AMOUNTS.isdisjoint(name.split("_"))
    if isinstance(value, str) and is_amount:
        return orjson.Fragment(value)
    return value


def number_text(value: Any) -> Any:
    """Returns the text of a JSON number (an orjson.Fragment); any other value unchanged."""
    if isinstance(value, orjson.Fragment):
        return orjson.dumps(value).decode()
    return value
