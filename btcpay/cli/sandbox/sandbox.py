"""`sandbox`: a chain, the service and the check on this machine, with a demo merchant."""

import os
import signal
import sys
import threading
from pathlib import Path

import click

from btcpay.cli.context import Shell, with_shell
from btcpay.cli.sandbox.demo import Demo, login_url
from btcpay.cli.sandbox.once import require_program, run_once, thrown_away
from btcpay.cli.sandbox.place import Place, command_line
from btcpay.cli.sandbox.start import started
from btcpay.cli.sandbox.status import LastCheck, StatusLine, unechoed
from btcpay.values.times import utc_now
from storage import migrate

UPDATED_EVERY_S = 0.5
PORT, STATE = 8001, Path("var/sandbox")


@click.command()
@click.option("--port", type=click.IntRange(1, 65535), help=f"The workbench's.  [default: {PORT}]")
@click.option(
    "--state",
    type=click.Path(file_okay=False, path_type=Path),
    help=f"Where the chain, the demo keys and the log are kept.  [default: {STATE}]",
)
@click.option("--once", is_flag=True, help="For tests: a new shop, gone when COMMAND has ended.")
@click.argument("words", nargs=-1, type=click.UNPROCESSED, metavar="[-- COMMAND...]")
@with_shell
def sandbox(
    shell: Shell, port: int | None, state: Path | None, once: bool, words: tuple[str, ...]
) -> None:
    """Start a regtest playground: chain, price, service, and a check every two seconds.

    With --once it lies in a temporary folder, on free ports. COMMAND finds BTCPAY_URL, BTCPAY_KEY
    and BTCPAY_SANDBOX_URL; its exit status is ours. Without a command they are printed as JSON,
    and all of it lasts until a signal, or until standard input, if it is a pipe, is closed.

    The chain alone, which `btcpay restore` asks while the service is stopped:
    `python -m btcpay.sandbox --port 8001 --state var/sandbox`.
    """
    if words and not once:
        raise click.UsageError("a command goes with --once")
    require_program(words)
    place = Place(shell.settings, state or STATE, port or PORT, os.environ)
    if once:
        place = click.get_current_context().with_resource(thrown_away(os.environ, state, port))
        shell = Shell(place.settings)
    place.require_fit()
    place.prepare_folders()
    migrate.migrate(place.settings.database_url, place.settings.network.name)
    stop = threading.Event()
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, lambda *_: stop.set())
    if once:
        with started(place, shell.db, stop) as (demo, children):
            status = 0 if stop.is_set() else run_once(place, demo, children, words, stop)
        raise SystemExit(status)
    _keep_open(shell, place, stop)


def _keep_open(shell: Shell, place: Place, stop: threading.Event) -> None:
    """Tells how to begin, then how it is, until the signal."""
    status = StatusLine(place.chain_url, LastCheck(shell.db), place.log)
    with unechoed(), status, started(place, shell.db, stop) as (demo, children):
        if not stop.is_set():
            introduction = _introduction(demo, place, login_url(shell.db, place.settings))
            status.say("")
            click.echo(introduction)
        while not stop.is_set():
            status.update(utc_now())
            stop.wait(UPDATED_EVERY_S)
            if not stop.is_set():
                children.require_all()


def _introduction(demo: Demo, place: Place, pages: str) -> str:
    other = command_line(sys.argv[0], place.environ)
    return f"""\
A shop with play money, on this machine alone. Ctrl-C ends it.

1. Open the workbench and press "Paid in time":
{place.chain_url}/
2. Or by hand: make an invoice, in another terminal,
{demo.curl_line}
   open its pay_url, or the page of this one, and pay it at the workbench:
{demo.pay_url()}

write key     {demo.secret}
payment link  {demo.link_url()}
shop's pages  {pages}
is all well?  {other} doctor
every event   the same with `listen` in place of `doctor`
log           {place.log}, {place.told.name} (emptied at each start)
begin anew    {place.afresh}, after Ctrl-C
"""
