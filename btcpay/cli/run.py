"""`run`: the whole shop in one command, service and check."""

import logging
import os
import signal
from contextlib import closing
from pathlib import Path

import click

from btcpay.cli.children import Children
from btcpay.cli.context import Shell, Stop, say, with_shell
from btcpay.cli.database import migrated
from btcpay.settings.logs import is_json
from btcpay.settings.settings import Settings, is_said
from storage.backup.sqlite_file import copy
from storage.database import open_database, sqlite_path
from storage.versions import STEPS, steps, version

STOP_TIMEOUT_S = 30  # as long as gunicorn gives requests under way
PAGES = "BTCPAY_MERCHANT_PAGES"


@click.command()
@click.option(
    "--every",
    type=click.IntRange(1, 86_400),
    default=15,
    metavar="SECONDS",
    help="Between checks. [15]",
)
@with_shell
def run(shell: Shell, every: int) -> None:
    """The whole shop: what `serve` and `check --watch` do, with the merchant's pages.

    Makes the database, or brings it to this version. When the service or the check ends, so does
    the other, and this command with the status of the first: whoever started it starts it anew.
    """
    if not is_said(os.environ, PAGES):
        os.environ[PAGES] = "on"
    prepare(shell.settings)
    stop = Stop(signal.SIGTERM, signal.SIGINT, signal.SIGHUP)
    with Children(os.environ, STOP_TIMEOUT_S) as children:
        as_asked = ["--log-json"] if is_json(logging.root) else []
        children.start("service", "btcpay", *as_asked, "serve")
        # The service logs JSON lines; so does the check, since their logs are one.
        children.start("check", "btcpay", "--log-json", "check", "--watch", str(every))
        children.watch(stop)


def prepare(settings: Settings, folder: Path = STEPS) -> None:
    """Makes the database, or brings it to this version, a SQLite file after a copy beside it."""
    path, wanted = sqlite_path(settings.database_url), len(steps(folder))
    if path and path.exists() and path.stat().st_size:
        with closing(open_database(settings.database_url)) as db:
            found = version(db)
        if found and found < wanted:
            copy(path, beside := path.with_name(f"{path.name}.version-{found}"))
            say(f"copied the database of version {found} to {beside}")
    done, text = migrated(settings, folder)
    if done["applied"]:
        say(text)
