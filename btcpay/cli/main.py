"""The command line `btcpay`: answers on standard output, talk on standard error.

Exit status 0: done; 1: failed or refused; 2: wrong use, or mistakes in the settings.
"""

import logging
import os
import sys
from importlib import import_module
from typing import Any

import click
from peewee import PeeweeException

from btcpay.cli.version import version_option
from btcpay.env_file import VARIABLE
from btcpay.errors import CommandError
from storage.database import in_one_line

# Each stands in the module of its name, which is read when the command is used: a check every
# minute should not import the sandbox, nor ask a small board for the time that this takes.
COMMANDS = (
    *("backup", "check", "doctor", "export", "invoice", "key", "link", "merchant", "migrate"),
    *("restore", "sandbox", "serve", "verify-proof", "wallet"),
)


class Commands(click.Group):
    """The commands; an option of theirs that stands behind one of them is shown its place."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        """Their names, for the help."""
        return sorted(COMMANDS)

    def get_command(self, ctx: click.Context, name: str) -> click.Command | None:
        """The command, out of its module; None when there is none of that name."""
        if name not in COMMANDS:
            return None
        module = name.replace("-", "_")
        command: click.Command = getattr(import_module(f"btcpay.cli.{module}"), module)
        return command

    def invoke(self, ctx: click.Context) -> Any:
        """Runs the command."""
        try:
            return super().invoke(ctx)
        except click.NoSuchOption as error:
            if error.option_name == "--env-file":
                told = "--env-file stands before the command: btcpay --env-file FILE COMMAND"
                raise click.NoSuchOption("--env-file", told, ctx=error.ctx) from None
            raise


@click.group(cls=Commands, context_settings={"help_option_names": ["-h", "--help"]})
@version_option
@click.option(
    "--env-file",
    metavar="FILE",
    help="Settings, a NAME=value a line; what the environment sets stands before them.",
)
def cli(env_file: str | None) -> None:
    """On-chain Bitcoin payments for small merchants."""
    if env_file is not None:
        os.environ[VARIABLE] = env_file


def main() -> None:
    """Runs the command line; a refusal is one line on standard error and status 1."""
    logging.basicConfig(
        level=logging.INFO, stream=sys.stderr, format="%(asctime)s %(levelname)s %(message)s"
    )
    logging.getLogger("peewee").setLevel(logging.WARNING)
    try:
        cli()
    except CommandError as error:
        click.echo(f"btcpay: {error}", err=True)
        sys.exit(1)
    except PeeweeException as error:
        click.echo(f"btcpay: the database cannot be used: {in_one_line(error)}", err=True)
        sys.exit(1)
    except OSError as error:
        click.echo(f"btcpay: {error}", err=True)
        sys.exit(1)
