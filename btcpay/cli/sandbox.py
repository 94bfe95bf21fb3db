"""`sandbox`: a chain, the service and the check on this machine, with a demo merchant."""

import contextlib
import os
import shlex
import signal
import socket
import sys
import threading
from collections.abc import Mapping
from pathlib import Path

import click
import requests

from btcpay.cli.context import Shell, with_shell
from btcpay.cli.sandbox_children import Children
from btcpay.cli.sandbox_demo import MERCHANT, PAGES, Demo, login_url, write_key
from btcpay.cli.sandbox_receiver import PrintingReceiver
from btcpay.cli.sandbox_status import LastCheck, StatusLine, unechoed
from btcpay.doctor.settings import masked
from btcpay.errors import CommandError
from btcpay.settings import Settings, read
from btcpay.times import utc_now
from storage import migrate
from storage.database import Database, place_of, sqlite_path
from storage.queries import blocks

UPDATED_EVERY_S = 0.5


@click.command()
@click.option("--port", type=click.IntRange(1, 65535), default=8001, show_default=True)
@click.option(
    "--state",
    type=click.Path(file_okay=False, path_type=Path),
    default=Path("var/sandbox"),
    show_default=True,
    help="Where the chain, the demo key and the log are kept.",
)
@with_shell
def sandbox(shell: Shell, port: int, state: Path) -> None:
    """Start a regtest playground: chain, price, service, and a check every two seconds.

    The chain alone, which `btcpay restore` asks while the service is stopped:
    `python -m btcpay.sandbox --port 8001 --state var/sandbox`.
    """
    settings = shell.settings
    _refuse_unfit(settings)
    _refuse_taken(f"127.0.0.1:{port}", "--port")
    _refuse_taken(settings.bind, "BTCPAY_BASE_URL or BTCPAY_BIND")
    _prepare_folders(settings, state)
    migrate.migrate(settings.database_url, settings.network.name)
    chain_url, service_url = f"http://127.0.0.1:{port}", _service_url(settings)
    demo = Demo(f"{service_url}/api/v1", write_key(shell.db, settings, state))
    environ = _environ(settings, chain_url)
    stop = threading.Event()
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, lambda *_: stop.set())
    log = state / "sandbox.log"
    status = StatusLine(chain_url, LastCheck(shell.db), log)
    told = state / "webhooks.log"
    receiver = PrintingReceiver(shell.db, MERCHANT, told)
    with unechoed(), receiver, Children(environ | PAGES, log) as children, status:
        children.start("chain", "btcpay.sandbox", "--port", str(port), "--state", str(state))
        children.wait_for(f"{chain_url}/sandbox/state", stop)
        if not stop.is_set():
            _refuse_older_chain(shell.db, settings, chain_url, state)
        children.start("service", "btcpay", "serve")
        children.wait_for(f"{service_url}/healthz", stop)
        children.start("check", "btcpay", "check", "--watch", "2")
        if not stop.is_set():
            other = command_line(sys.argv[0], environ)
            introduction = _introduction(
                demo, chain_url, other, log, told, _afresh(settings, state)
            )
            status.say("")
            click.echo(f"{introduction}its pages     {login_url(shell.db, settings)}")
        while not stop.is_set():
            status.update(utc_now())
            stop.wait(UPDATED_EVERY_S)
            if not stop.is_set():
                children.require_all()


def _refuse_unfit(settings: Settings) -> None:
    if settings.network.name != "regtest":
        raise CommandError(
            f"the sandbox is for regtest only, not for {settings.network.name}:"
            " unset BTCPAY_NETWORK and the variables that go with it"
        )
    if settings.bind.startswith("unix:"):
        raise CommandError("the sandbox serves on a port; BTCPAY_BIND names a socket file")


def _refuse_taken(bind: str, name: str) -> None:
    host, _, port = bind.rpartition(":")
    with socket.socket() as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind((host, int(port)))
        except OSError as error:
            raise CommandError(
                f"{bind} is taken ({error.strerror}): is another sandbox open? Else stop what"
                f" listens there, or choose another port with {name}"
            ) from None


def _prepare_folders(settings: Settings, state: Path) -> None:
    """Makes the folders for their owner alone; 0.1.0 left the database's folder open."""
    missing = [folder for folder in (state, *state.parents) if not folder.exists()]
    for folder in reversed(missing):  # `parents=True` would give its mode to the last one only
        folder.mkdir(mode=0o700)
    database = sqlite_path(settings.database_url)
    if database is None or not database.exists():
        return
    beside = {path.name for path in database.parent.iterdir()} - {state.name}
    if all(name.startswith(database.name) for name in beside):  # else it may be others' too
        with contextlib.suppress(PermissionError):
            database.parent.chmod(0o700)


def _refuse_older_chain(db: Database, settings: Settings, chain_url: str, state: Path) -> None:
    """After one of the two was removed alone: the check would wait for blocks that are gone."""
    height = requests.get(f"{chain_url}/sandbox/state", timeout=5).json()["height"]
    if height < (blocks.tip_height(db) or 0):
        raise CommandError(
            f"the chain in {state} is older than {place_of(settings.database_url)}:"
            f" {_afresh(settings, state)} begins anew"
        )


def _afresh(settings: Settings, state: Path) -> str:
    """What removes the whole playground."""
    database = sqlite_path(settings.database_url)
    if database is None:
        return f"another database and `rm -r {shlex.quote(str(state))}`"
    if database.parent == state.parent == Path("var"):
        return "`rm -r var`"
    # With the files that SQLite keeps beside it.
    return f"`rm -r {shlex.quote(str(state))} {shlex.quote(str(database))}*`"


def _service_url(settings: Settings) -> str:
    host, _, port = settings.bind.rpartition(":")
    return f"http://{'127.0.0.1' if host in ('', '0.0.0.0') else host}:{port}"


def _environ(settings: Settings, chain_url: str) -> dict[str, str]:
    """The children's: this process's own, with the sandbox as explorer and price source."""
    return os.environ | {
        "BTCPAY_NETWORK": settings.network.name,
        "BTCPAY_DATABASE_URL": settings.database_url,
        "BTCPAY_EXPLORERS": chain_url,
        "BTCPAY_PRICE_SOURCES": f"{chain_url}/price#/usd",
        "BTCPAY_PRICE_QUORUM": "1",
        # The pages ask every two seconds: a line for each would bury what matters in the log.
        "GUNICORN_CMD_ARGS": f"--log-level warning {os.environ.get('GUNICORN_CMD_ARGS', '')}",
    }


def command_line(program: str, environ: Mapping[str, str]) -> str:
    """How another terminal in this folder calls `btcpay` beside the sandbox.

    It sets the variables that the command needs to find this shop, without their secrets.
    """
    settings = read(environ)
    needed = {
        name: masked(value)
        for name, value in sorted(environ.items())
        if name.startswith("BTCPAY_")
        if read({n: v for n, v in environ.items() if n != name}) != settings
    }
    assigned = [f"{name}={shlex.quote(value)}" for name, value in needed.items()]
    own = [program] if Path(program).name == "btcpay" else [sys.executable, "-m", "btcpay"]
    return " ".join([*assigned, *own])


def _introduction(
    demo: Demo, chain_url: str, command_line: str, log: Path, told: Path, afresh: str
) -> str:
    return f"""\
A shop with play money, on this machine alone. Ctrl-C ends it.

1. Make an invoice, in another terminal:
{demo.curl_line}
2. See what a customer sees: open its pay_url, or the page of this invoice:
{demo.pay_url()}
3. Press "Copy payment link" there, paste it here, pay, mine a block, look at the page again:
{chain_url}/

write key     {demo.secret}
payment link  {demo.link_url()}
is all well?  {command_line} doctor
every event   {command_line} listen
log           {log}, {told.name} (emptied at each start)
begin anew    {afresh}, after Ctrl-C
"""
