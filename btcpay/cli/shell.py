"""The context that a command receives: its settings, database and output."""

import os
import re
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from datetime import datetime
from functools import cached_property, update_wrapper
from typing import Any

import click

from btcpay.cli.output import answer_json, say, show
from btcpay.settings.settings import Settings, is_set, read_or_exit
from btcpay.values.times import utc_now
from storage.database import Database, place_of
from storage.versions import open_ready

# Settings whose defaults are rarely wanted. Each command prints which of them it uses.
NOTABLE_DEFAULTS = ("BLOCKTILL_NETWORK", "BLOCKTILL_DATABASE_URL")
LONE_SURROGATE = re.compile("[\ud800-\udfff]")
json_option = click.option("--json", "as_json", is_flag=True, help="Answer as JSON.")
limit_option = click.option(
    "--limit",
    type=click.IntRange(1, 10_000),
    default=100,
    show_default=True,
)


@dataclass(frozen=True)
class Shell:
    """The settings, the database and the output format of one command."""

    settings: Settings
    as_json: bool = False

    @cached_property
    def db(self) -> Database:
        """The opened database, which is closed when the command ends.

        Raises DatabaseNotReady if the database is missing, or does not fit this version
        of the program or the network of the settings.
        """
        db = open_ready(self.settings.database_url, self.settings.network.name)
        click.get_current_context().call_on_close(db.close)
        return db

    @property
    def now(self) -> datetime:
        """The current time in UTC. Only entry points read the clock."""
        return utc_now()

    def answer(self, value: Any, text: str | None) -> None:
        """Prints `value` as JSON with --json. Otherwise prints `text`, unless it is None."""
        if self.as_json:
            answer_json(value)
        elif text is not None:
            click.echo(text)

    def show(self, rows: Iterable[object], columns: str) -> None:
        """Prints columns of the rows as a table, or as JSON with --json."""
        show(rows, columns, self.as_json)


def with_shell(function: Callable[..., Any]) -> Callable[..., Any]:
    """Decorates a command, so that it gets a Shell as its first argument.

    If an argument is not UTF-8 or a setting is invalid, the program exits with status 2
    before the command begins.
    """

    def command(*args: Any, as_json: bool = False, **kwargs: Any) -> Any:
        require_text(kwargs.values())
        settings = read_or_exit(os.environ)
        _say_defaults(settings)
        return function(Shell(settings, as_json), *args, **kwargs)

    return update_wrapper(command, function)


def _say_defaults(settings: Settings) -> None:
    """Prints which network and database are used, if the settings do not name both."""
    defaults = [name for name in NOTABLE_DEFAULTS if not is_set(os.environ, name)]
    if defaults:
        place = f"{settings.network.name}, {place_of(settings.database_url)}"
        say(f"{' and '.join(defaults)} not set: this is {place}")


def with_json_shell(function: Callable[..., Any]) -> Callable[..., Any]:
    """Decorates a command as `with_shell` does, and adds the option --json to it."""
    return json_option(with_shell(function))


def require_text(values: Iterable[Any]) -> None:
    """Raises UsageError if a string contains lone surrogates, which no database stores.

    Python puts a lone surrogate in place of each byte of an argument that is not UTF-8.
    Other values are not checked: a Path may contain such bytes.
    """
    for value in values:
        if isinstance(value, str) and LONE_SURROGATE.search(value):
            raise click.UsageError(f"{value!a} is not UTF-8")
