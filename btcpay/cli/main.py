"""The command line `btcpay`: answers on standard output, talk on standard error.

Exit status 0: done; 1: failed or refused; 2: wrong use, or mistakes in the settings.
"""

import logging
import os
import sys
from typing import Any, NoReturn

import click
from peewee import PeeweeException

from btcpay import __version__
from btcpay.cli.backup import backup
from btcpay.cli.check import check
from btcpay.cli.context import say
from btcpay.cli.doctor import doctor
from btcpay.cli.export import export
from btcpay.cli.invoice import invoice
from btcpay.cli.key import key
from btcpay.cli.link import link
from btcpay.cli.merchant import merchant
from btcpay.cli.migrate import migrate
from btcpay.cli.payment import payment
from btcpay.cli.restore import restore
from btcpay.cli.sandbox import sandbox
from btcpay.cli.serve import serve
from btcpay.cli.verify_proof import verify_proof
from btcpay.cli.wallet import wallet
from btcpay.env_file import VARIABLE
from btcpay.errors import CommandError, PriceUnavailable
from btcpay.monitoring.logs import to_json
from storage.database import in_one_line

BEFORE = {"--env-file": "--env-file FILE", "--log-json": "--log-json"}


class Commands(click.Group):
    """The commands; an option of theirs that stands behind one of them is shown its place."""

    def invoke(self, ctx: click.Context) -> Any:
        """Runs the command."""
        try:
            return super().invoke(ctx)
        except click.NoSuchOption as error:
            if shown := BEFORE.get(error.option_name):
                told = f"{error.option_name} stands before the command: btcpay {shown} COMMAND"
                raise click.NoSuchOption(error.option_name, told, ctx=error.ctx) from None
            raise


@click.group(cls=Commands, context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(__version__, prog_name="btcpay")
@click.option(
    "--env-file",
    metavar="FILE",
    help="Settings, a NAME=value a line; what the environment sets stands before them.",
)
@click.option("--log-json", is_flag=True, help="What is told on standard error as JSON lines.")
def cli(env_file: str | None, log_json: bool) -> None:
    """On-chain Bitcoin payments for small merchants."""
    if log_json:
        to_json(logging.root)
    if env_file is not None:
        os.environ[VARIABLE] = env_file


for command in (
    *(backup, check, doctor, export, invoice, key, link, merchant, migrate, payment, restore),
    *(sandbox, serve, verify_proof, wallet),
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
    except PeeweeException as error:
        _fail(f"the database cannot be used: {in_one_line(error)}")
    except (CommandError, PriceUnavailable, OSError) as error:
        _fail(str(error))


def _fail(told: str) -> NoReturn:
    say(f"btcpay: {told}", logging.ERROR)
    sys.exit(1)
