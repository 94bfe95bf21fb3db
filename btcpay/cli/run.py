"""Command `run`: runs the service and the check together."""

import os
import signal
from contextlib import closing
from pathlib import Path

import click

from btcpay.cli.database import run_migrations
from btcpay.cli.merchant.access import KEY_FILE, play_money_key
from btcpay.cli.output import say
from btcpay.cli.serve import prepare_service
from btcpay.cli.shell import Shell, with_shell
from btcpay.cli.stop import Stop
from btcpay.cli.supervise import supervise
from btcpay.merchants.sessions import login_url
from btcpay.settings.settings import Settings, is_set, read_or_exit
from storage.backup.sqlite_file import copy
from storage.database import open_database, sqlite_path
from storage.queries import merchants
from storage.steps import STEPS, steps
from storage.versions import version

ORDER = "-H 'Content-Type: application/json' -d '{\"amount_usd\": 25}'"
# These settings are on unless the environment or the settings file says `off`.
ON_BY_DEFAULT = ("BLOCKTILL_MERCHANT_PAGES", "BLOCKTILL_GREENFIELD")


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
    """Run the whole shop: the service (`serve`) and the check (`check --watch`).

    The merchant's pages and the API for shops' plug-ins are on, unless the settings say `off`.
    Makes the database, or brings it to this version. If the service or the check ends, the other
    one is ended too, and this command exits with the status of the first. Then systemd, for
    example, can start it again.
    """
    for name in ON_BY_DEFAULT:
        if not is_set(os.environ, name):
            os.environ[name] = "on"
    # The settings that `shell` has were read before.
    shell = Shell(read_or_exit(os.environ))
    prepare(shell.settings)
    _show_program_key(shell)
    prepare_service(shell)
    shell.db.close()
    supervise(Stop(signal.SIGTERM, signal.SIGINT, signal.SIGHUP), every)


def _show_program_key(shell: Shell) -> None:
    """Prints a login link and an API key, if `setup --here` has created a file for the key.

    `setup --here` refuses mainnet, so the key is never that of a shop with real money.
    """
    path = sqlite_path(shell.settings.database_url)
    if path is None:
        return
    file = path.with_name(KEY_FILE)
    owners = shell.db.rows(merchants.ALL)
    if not file.exists() or not owners:
        return
    base_url = shell.settings.base_url
    owner_id = owners[0].id
    secret = play_money_key(shell.db, shell.settings.network, owner_id, file)
    say(f"The shop's pages: {login_url(shell.db, base_url, owner_id, shell.now)}")
    call = f"curl {base_url}/api/v1/invoices -H 'Authorization: Bearer {secret}'"
    say(f"An invoice:\n{call} {ORDER}")


def prepare(settings: Settings, folder: Path = STEPS) -> None:
    """Creates the database, or runs the migrations in `folder` that it lacks.

    Before a SQLite file is migrated, it is copied to a file beside it.
    """
    path = sqlite_path(settings.database_url)
    if path and path.exists() and path.stat().st_size:
        _copy_older_file(settings.database_url, path, len(steps(folder)))
    result = run_migrations(settings, folder)
    if result.facts["applied"]:
        say(result.text)


def _copy_older_file(database_url: str, path: Path, newest: int) -> None:
    """Copies the SQLite file if its version is older than `newest`."""
    with closing(open_database(database_url)) as db:
        present = version(db)
    if present and 0 < present < newest:
        target = path.with_name(f"{path.name}.version-{present}")
        copy(path, target)
        say(f"copied the database of version {present} to {target}")
