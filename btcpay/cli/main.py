"""The command line `btcpay`: answers on standard output, talk on standard error.

Exit status 0: done; 1: failed or refused; 2: wrong use, or mistakes in the settings.
"""

import logging
import os
import sys
from typing import Any

import click
from peewee import PeeweeException

from btcpay import __version__
from btcpay.cli.backup import backup
from btcpay.cli.check import check
from btcpay.cli.doctor import doctor
from btcpay.cli.export import export
from btcpay.cli.invoice import invoice
from btcpay.cli.key import key
from btcpay.cli.link import link
from btcpay.cli.listen import listen
from btcpay.cli.merchant import merchant
from btcpay.cli.migrate import migrate
from btcpay.cli.restore import restore
from btcpay.cli.sandbox import sandbox
from btcpay.cli.serve import serve
from btcpay.cli.verify_proof import verify_proof
from btcpay.cli.wallet import wallet
from btcpay.cli.webhook import webhook
from btcpay.env_file import VARIABLE
from btcpay.errors import CommandError
from storage.database import in_one_line


class Commands(click.Group):
    """The commands; an option of theirs that stands behind one of them is shown its place."""

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
@click.version_option(__version__, prog_name="btcpay")
@click.option(
    "--env-file",
    metavar="FILE",
    help="Settings, a NAME=value a line; what the environment sets stands before them.",
)
def cli(env_file: str | None) -> None:
    """On-chain Bitcoin payments for small merchants."""
    if env_file is not None:
        os.environ[VARIABLE] = env_file


for command in (
    *(backup, check, doctor, export, invoice, key, link, merchant, migrate, restore, sandbox),
    *(listen, serve, verify_proof, wallet, webhook),
):
    cli.add_command(command)


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
