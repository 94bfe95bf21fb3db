"""`run`: the whole shop in one command, service and check."""

import logging
import os
import signal
from contextlib import closing
from pathlib import Path

import click

from btcpay.cli.children import Children
from btcpay.cli.context import Shell, Stop, say, with_shell
from btcpay.cli.database import run_migrations
from btcpay.cli.merchant.access import KEY_FILE, kept_key
from btcpay.merchants.sessions import login_url
from btcpay.settings.logs import is_json
from btcpay.settings.settings import Settings, is_said
from storage.backup.sqlite_file import copy
from storage.database import open_database, sqlite_path
from storage.queries import merchants
from storage.versions import STEPS, steps, version

STOP_TIMEOUT_S = 30  # as long as gunicorn gives requests under way
ORDER = "-H 'Content-Type: application/json' -d '{\"amount_usd\": 25}'"
PAGES = "BLOCKTILL_MERCHANT_PAGES"


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
    _show_program_key(shell)
    stop = Stop(signal.SIGTERM, signal.SIGINT, signal.SIGHUP)
    with Children(os.environ, STOP_TIMEOUT_S) as children:
        as_asked = ["--log-json"] if is_json(logging.root) else []
        children.start("service", "btcpay", *as_asked, "serve")
        # The service logs JSON lines; so does the check, since their logs are one.
        children.start("check", "btcpay", "--log-json", "check", "--watch", str(every))
        children.watch(stop)


def _show_program_key(shell: Shell) -> None:
    """Shows a way in and a key where `setup --here` left a file for it: never on mainnet."""
    path = sqlite_path(shell.settings.database_url)
    now = shell.now
    file = path and path.with_name(KEY_FILE)
    owners = shell.db.rows(merchants.ALL)
    if file and file.exists() and owners:
        base_url = shell.settings.base_url
        owner_id = owners[0].id
        secret = kept_key(shell.db, shell.settings.network, owner_id, file)
        say(f"The shop's pages: {login_url(shell.db, base_url, owner_id, now)}")
        call = f"curl {base_url}/api/v1/invoices -H 'Authorization: Bearer {secret}'"
        say(f"An invoice:\n{call} {ORDER}")


def prepare(settings: Settings, folder: Path = STEPS) -> None:
    """Makes the database, or brings it to this version, a SQLite file after a copy beside it."""
    path = sqlite_path(settings.database_url)
    wanted = len(steps(folder))
    if path and path.exists() and path.stat().st_size:
        with closing(open_database(settings.database_url)) as db:
            found = version(db)
        if found and 0 < found < wanted:
            copy(path, beside := path.with_name(f"{path.name}.version-{found}"))
            say(f"copied the database of version {found} to {beside}")
    done, text = run_migrations(settings, folder)
    if done["applied"]:
        say(text)
