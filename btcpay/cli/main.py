"""Entry point of the command line `blocktill`.

Results go to standard output, messages to standard error. Exit status 0: done; 1:
failed or refused; 2: wrong usage, or invalid settings.
"""

import logging
import os
import platform
import re
import sqlite3
import sys
from importlib import import_module
from itertools import pairwise
from pathlib import Path

import click

from btcpay import __version__, hooks
from btcpay.cli.output import escape_output, say
from btcpay.cli.shell import Shell, with_shell
from btcpay.merchants.first_run import start_url
from btcpay.merchants.owner_password import owner_password
from btcpay.merchants.sessions import end_sessions_of_other_passwords
from btcpay.settings.env_file import VARIABLE
from btcpay.settings.logs import to_json
from btcpay.settings.secrets import HIDDEN
from btcpay.values.errors import (
    CommandError,
    InvalidRequest,
    PriceUnavailable,
    SettingsError,
)
from storage.database import in_one_line
from storage.faults import PeeweeException

# The module of each command, imported only when the command is used. `check` runs every minute, and
# importing all modules would be slow on a small board.
COMMANDS = {
    "backup": "btcpay.cli.database",
    "chain": "btcpay.cli.database",
    "check": "btcpay.cli.check.check",
    "doctor": "btcpay.cli.doctor",
    "export": "btcpay.cli.export",
    "invoice": "btcpay.cli.invoice",
    "key": "btcpay.cli.merchant.access",
    "link": "btcpay.cli.link",
    "listen": "btcpay.cli.listen",
    "merchant": "btcpay.cli.merchant.merchant",
    "migrate": "btcpay.cli.database",
    "restore": "btcpay.cli.database",
    "run": "btcpay.cli.run",
    "serve": "btcpay.cli.main",
    "setup": "btcpay.cli.setup.setup",
    "verify-proof": "btcpay.cli.proof",
    "wallet": "btcpay.cli.merchant.wallet",
    "webhook": "btcpay.cli.webhook",
}
# The root of the checkout, or site-packages if a wheel is installed.
PROJECT = Path(__file__).resolve().parents[2]
GUNICORN = ["-c", "python:btcpay.web.gunicorn_conf", "wsgi:app"]
VERSIONS = (
    f"%(prog)s, version %(version)s\nPython {platform.python_version()},"
    f" SQLite {sqlite3.sqlite_version}"
)
OPTION = re.compile("(--[a-z-]+)(=.*)?", re.DOTALL)


class Commands(click.Group):
    """The group of all commands. Parts (optional plug-ins) add their own commands."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        return sorted([*COMMANDS, *_commands_of_parts()])

    def get_command(self, ctx: click.Context, name: str) -> click.Command | None:
        if name not in COMMANDS:
            return _commands_of_parts().get(name)
        module = import_module(COMMANDS[name])
        command: click.Command = getattr(module, name.replace("-", "_"))
        return command

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """Parses the arguments. Raises UsageError for an option with an empty value.

        An empty value usually comes from a shell variable that is not set.
        """
        own = [*args, "--"]
        # Arguments after the first -- are another program's command line.
        own = own[: own.index("--") + 1]
        for word, following in pairwise(own):
            option = OPTION.fullmatch(word)
            if option and (option[2] == "=" or not following):
                raise click.UsageError(f"{option[1]} is followed by an empty value")
        return super().parse_args(ctx, args)


def _commands_of_parts() -> dict[str, click.Command]:
    commands: dict[str, click.Command] = {}
    for part in hooks.of(hooks.Commands):
        commands |= part.commands
    return commands


@click.group(cls=Commands, context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(__version__, prog_name="blocktill", message=VERSIONS)
@click.option(
    "--env-file",
    metavar="FILE",
    help="A file of settings, one NAME=value per line; environment variables override it.",
)
@click.option("--log-json", is_flag=True, help="Write JSON lines to standard error.")
def cli(env_file: str | None, log_json: bool) -> None:
    """On-chain Bitcoin payments for small merchants."""
    if log_json:
        to_json(logging.root)
    if env_file is not None:
        os.environ[VARIABLE] = env_file


@click.command()
@with_shell
def serve(shell: Shell) -> None:
    """Serve the interface and the pages; GUNICORN_CMD_ARGS is honoured too.

    While there is no merchant, and the merchant's pages are on, it says which page makes one.
    """
    password = owner_password(shell.settings.owner_password, shell.db)
    end_sessions_of_other_passwords(shell.db, password.scrypt)
    if shell.settings.merchant_pages:
        _show_start(shell)
    # gunicorn would put the current folder first, which may hold another `app.py`: it comes last.
    path = [str(PROJECT), os.environ.get("PYTHONPATH"), os.getcwd()]
    os.environ["PYTHONPATH"] = os.pathsep.join(filter(None, path))
    os.execv(sys.executable, [sys.executable, "-P", "-m", "gunicorn", *GUNICORN])


def _show_start(shell: Shell) -> None:
    """Prints the URL of the page that creates the first merchant, if there is none yet.

    If the owner's password is set, that page asks for it, and all earlier links end.
    """
    base_url = shell.settings.base_url
    has_password = bool(shell.settings.owner_password)
    token = ""
    if not has_password:
        token = shell.settings.setup_token
    url = start_url(shell.db, base_url, token)
    if not url:
        return
    if has_password:
        say(f"To begin, open {base_url}/merchant, with BLOCKTILL_OWNER_PASSWORD")
        return
    if token:  # hides the token, since the output may go to a log
        url = f"{url.removesuffix(token)}{HIDDEN} ({HIDDEN}: BLOCKTILL_SETUP_TOKEN)"
    say(f"To begin, open {url}")


def main() -> None:
    """Runs the command line.

    An expected error is printed on one line to standard error. The exit status is then
    1 or 2, or the status that the CommandError has.
    """
    escape_output()
    logging.basicConfig(
        level=logging.INFO,
        stream=sys.stderr,
        format="%(asctime)s %(levelname)s %(message)s",
    )
    logging.getLogger("peewee").setLevel(logging.WARNING)
    try:
        cli()  # click exits by itself after a success
    except SettingsError as error:  # from `setup`, which reads the file that it changes
        messages = error.mistakes
        status = 2
    except PeeweeException as error:
        messages = [f"the database cannot be used: {in_one_line(error)}"]
        status = 1
    except CommandError as error:
        messages = [str(error)]
        status = error.exit_status
    except (InvalidRequest, PriceUnavailable, OSError) as error:
        messages = [str(error)]
        status = 1
    for message in messages:
        say(f"blocktill: {message}", logging.ERROR)
    sys.exit(status)
