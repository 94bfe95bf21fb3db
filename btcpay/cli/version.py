"""`--version`: of the program, and of what it runs on, as a report of a fault should say."""

import platform
import sqlite3
from importlib import metadata

import click

from btcpay import __version__


def _show(context: click.Context, _: click.Parameter, wanted: bool) -> None:
    if wanted and not context.resilient_parsing:
        click.echo(f"btcpay, version {__version__}\n{', '.join(_surroundings())}")
        context.exit()


def _surroundings() -> tuple[str, ...]:
    """Python, both databases and the system. The driver is not loaded: it takes 0.1 s."""
    try:
        driver = f"psycopg {metadata.version('psycopg')}"
    except metadata.PackageNotFoundError:
        driver = "no PostgreSQL driver"
    python = f"Python {platform.python_version()}"
    return python, f"SQLite {sqlite3.sqlite_version}", driver, platform.platform()


version_option = click.option(
    "--version",
    is_flag=True,
    is_eager=True,
    expose_value=False,
    callback=_show,
    help="Show the versions of the program and of what it runs on.",
)
