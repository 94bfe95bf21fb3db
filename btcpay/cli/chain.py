"""Command `chain begin-anew`: forgets the stored chain."""

import click

from btcpay.check.undo import begin_anew
from btcpay.cli.output import say
from btcpay.cli.shell import Shell, with_shell
from storage import locks

GIVES_UP = (
    "Payments are kept as they were proven, and count in the balance, whatever the new chain has."
    " All else that came waits again. Reading begins two hours before the first invoice."
)
chain = click.Group("chain", help="The chain in which payments are looked for.")


@chain.command("begin-anew")
@click.option("--yes", is_flag=True, help="Do not ask.")
@with_shell
def chain_begin_anew(shell: Shell, yes: bool) -> None:
    """Forget the stored chain and read it anew, for example after a test network was replaced.

    Proven payments are kept.
    """
    with locks.only_one(shell.db, shell.settings.database_url, "check", wait=True):
        say(GIVES_UP)
        if not yes:
            click.confirm("Begin anew?", abort=True, err=True)
        begin_anew(shell.db, shell.settings, shell.now)
    say("forgot the chain: the next `blocktill check` starts over")
