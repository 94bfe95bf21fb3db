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
from itertools import pairwise, takewhile

import click

from btcpay import __version__, hooks
from btcpay.cli.output import escape_output
from btcpay.cli.run_to_exit import run_to_exit
from btcpay.settings.env_file import VARIABLE
from btcpay.settings.logs import to_json

# The module of each command, imported only when the command is used. `check` runs every minute, and
# importing all modules would be slow on a small board.
COMMANDS = {
    "backup": "btcpay.cli.database",
    "chain": "btcpay.cli.chain",
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
    "serve": "btcpay.cli.serve",
    "setup": "btcpay.cli.setup.setup",
    "verify-proof": "btcpay.cli.proof",
    "wallet": "btcpay.cli.merchant.wallet",
    "webhook": "btcpay.cli.webhook",
}
VERSIONS = (
    f"%(prog)s, version %(version)s\nPython {platform.python_version()},"
    f" SQLite {sqlite3.sqlite_version}"
)
OPTION = re.compile("(?P<name>--[a-z-]+)(?P<value>=.*)?", re.DOTALL)


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
        # Arguments after the first -- are another program's command line.
        own_args = takewhile(lambda word: word != "--", args)
        # With a last word, so that the last argument too is followed by one.
        for word, following in pairwise([*own_args, "--"]):
            option = OPTION.fullmatch(word)
            if option is None:
                continue
            if option["value"] == "=" or not following:
                name = option["name"]
                raise click.UsageError(f"{name} is followed by an empty value")
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


def main() -> None:
    """Runs the command line.

    An expected error is printed on one line to standard error. The exit status is then
    1 or 2, or the `exit_status` of a CommandError.
    """
    escape_output()
    logging.basicConfig(
        level=logging.INFO,
        stream=sys.stderr,
        format="%(asctime)s %(levelname)s %(message)s",
    )
    logging.getLogger("peewee").setLevel(logging.WARNING)
    run_to_exit(cli)
