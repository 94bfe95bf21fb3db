"""`chain`: a new beginning, after a test network was replaced."""

import click

from btcpay.check.undo import begin_anew
from btcpay.cli.context import Shell, answering, say
from btcpay.values.times import utc_now
from storage import locks
from storage.queries import blocks

GIVES_UP = """\
{payments_kept} payments are kept as they were proven, and count in the balance, even if the new
chain has none of them. {headers} headers are dropped, {unread} of them of unread blocks;
{waiting_again} outputs that are not payments yet count as unconfirmed again. Reading starts again
two hours before the first invoice."""


@click.group()
def chain() -> None:
    """The chain in which payments are looked for."""


@chain.command("begin-anew")
@click.option("--yes", is_flag=True, help="Do not ask.")
@answering
def chain_begin_anew(shell: Shell, yes: bool) -> None:
    """Forget the chain and read another, after a test network was replaced below our first block.

    Payments stay, as they were proven.
    """
    with locks.only_one(shell.db, shell.settings.database_url, "check", wait=True):
        lost = shell.db.only(blocks.GIVEN_UP)
        say(GIVES_UP.format(**lost._asdict()))
        if not yes:
            click.confirm("Begin anew?", abort=True, err=True)
        begin_anew(shell.db, shell.settings, utc_now())
    shell.answer(lost._asdict(), "forgot the chain: the next `btcpay check` starts over")
