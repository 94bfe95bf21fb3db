"""`sandbox`: a chain, the service and the check on this machine, with a demo merchant."""

import contextlib
import os
import shutil
import signal
import socket
import stat
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

import click
import orjson
import requests

from btcpay import hooks
from btcpay.check.beginning import begin_chain
from btcpay.cli.children import LOOKS_EVERY_S, Children, exit_status
from btcpay.cli.merchant.access import play_money_key
from btcpay.cli.output import write_data
from btcpay.cli.shell import Shell
from btcpay.cli.stop import Stop
from btcpay.merchants.sessions import login_url
from btcpay.parts.sandbox_command.demo import MERCHANT, add_webhook, merchant_id, pages
from btcpay.parts.sandbox_command.place import Place, command_line
from btcpay.settings.settings import is_said, read, read_or_exit
from btcpay.values.errors import CommandError, DatabaseNotReady
from btcpay.values.times import utc_now
from storage.database import Database, place_of
from storage.versions import migrate

PORT = 8001
STATE = Path("var/sandbox")
START_TIMEOUT_S = 60
STOP_TIMEOUT_S = 10


@click.command()
@click.option(
    "--port", type=click.IntRange(1, 65535), help=f"The workbench's.  [default: {PORT}]"
)
@click.option(
    "--state",
    type=click.Path(file_okay=False, path_type=Path),
    help=f"Where the chain, the demo keys and the log are kept.  [default: {STATE}]",
)
@click.option(
    "--once", is_flag=True, help="For tests: a new shop, gone when COMMAND has ended."
)
@click.argument("words", nargs=-1, type=click.UNPROCESSED, metavar="[-- COMMAND...]")
def sandbox(
    port: int | None, state: Path | None, once: bool, words: tuple[str, ...]
) -> None:
    """Start a regtest playground: chain, price, service, and a check every two seconds.

    With --once it uses a temporary folder and free ports, and ends with COMMAND's exit status.
    COMMAND has BLOCKTILL_URL, BLOCKTILL_KEY and BLOCKTILL_SANDBOX_URL in its environment. Without
    a command these are printed as JSON; it runs until a signal, or until standard input, if a
    pipe, closes.

    `python -m btcpay.sandbox --port 8001 --state var/sandbox` starts only the chain, for
    `blocktill restore` while the service is stopped.
    """
    if words and not once:
        raise click.UsageError("a command needs --once")
    if words and shutil.which(words[0]) is None:
        raise CommandError(f"{words[0]} cannot be run: there is no such program")
    settings = read_or_exit(os.environ)
    place = Place(settings, state or STATE, port or PORT, os.environ)
    if once:
        place = click.get_current_context().with_resource(_thrown_away(state, port))
    shell = Shell(place.settings)
    place.require_fit()
    place.prepare_folders()
    _make_database(place)
    stop = Stop(signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
    with _started(place, shell.db, stop) as (key, children):
        if stop.wait():
            return
        if once:
            raise SystemExit(_run_once(place, key, children, words, stop))
        owner_id = merchant_id(shell.db, place.settings)
        login = login_url(shell.db, place.settings.base_url, owner_id, utc_now())
        click.echo(_introduction(place, key, login))
        children.watch(stop)


def _make_database(place: Place) -> None:
    """Raises DatabaseNotReady, which says how to start over: all in a sandbox is play."""
    url = place.settings.database_url
    try:
        migrate(url, place.settings.network.name)
    except DatabaseNotReady as error:
        raise DatabaseNotReady(
            f"{error}. If it holds the sandbox's play money alone, start over: remove"
            f" {place.state} and {place_of(url)}"
        ) from None


@contextlib.contextmanager
def _started(place: Place, db: Database, stop: Stop) -> Iterator[tuple[str, Children]]:
    """A write key, and chain, service and check once they answer or `stop` is set.

    Raises CommandError.
    """
    network = place.settings.network
    owner_id = merchant_id(db, place.settings)
    key = play_money_key(db, network, owner_id, place.state / "write_key")
    # The workbench has a key of its own, since limits count by key.
    play_money_key(db, network, owner_id, place.state / "workbench_key")
    add_webhook(db, owner_id, place.chain_url, place.state / "webhook_secret")
    with Children(place.programs_environ, STOP_TIMEOUT_S, place.log) as children:
        where = ("--port", str(place.port), "--state", str(place.state))
        children.start("chain", "btcpay.sandbox", *where, "--shop", place.service_url)
        _wait_for(f"{place.chain_url}/sandbox/state", children, stop)
        begin_chain(db, place.settings, utc_now)
        children.start("service", "btcpay", "serve")
        _wait_for(f"{place.service_url}/healthz", children, stop)
        children.start("check", "btcpay", "check", "--watch", "2")
        yield key, children


def _wait_for(url: str, children: Children, stop: Stop) -> None:
    """Returns once `url` answers, or `stop` is set. Raises CommandError when a child ends, or after
    a minute.
    """
    deadline_s = time.monotonic() + START_TIMEOUT_S
    while not stop.wait():
        try:
            requests.get(url, timeout=5).raise_for_status()
            return
        except requests.RequestException as error:
            children.require_all()
            if time.monotonic() > deadline_s:
                raise CommandError(f"{url} does not answer") from error
        stop.wait(0.05)


def _introduction(place: Place, key: str, login: str) -> str:
    api = f"{place.service_url}/api/v1"
    pay_url, link_url = pages(api, key)
    database = place_of(place.settings.database_url)
    other = command_line(sys.argv[0], place.environ)
    as_json = "-H 'Content-Type: application/json' -d '{\"amount_usd\": 25}'"
    return f"""\
A shop with play money, on this machine alone. Ctrl-C ends it.

1. Open the workbench and press "Paid in time":
{place.chain_url}/
2. Or by hand: make an invoice, in another terminal,
curl {api}/invoices -H 'Authorization: Bearer {key}' {as_json}
   open its pay_url, or the page of this one, and pay it at the workbench:
{pay_url}

write key     {key}
payment link  {link_url}
shop's pages  {login}
is all well?  {other} doctor
every event   the same with `listen` in place of `doctor`
log           {place.log}, webhooks.log (emptied at each start)
start over    remove {place.state} and {database}, after Ctrl-C
"""


@contextlib.contextmanager
def _thrown_away(state: Path | None, port: int | None) -> Iterator[Place]:
    """A place in a temporary folder, on free ports, but for what the environment sets."""
    with tempfile.TemporaryDirectory(prefix="blocktill-sandbox-") as folder:
        usual = {
            "BLOCKTILL_DATABASE_URL": f"sqlite:///{folder}/blocktill.db",
            "BLOCKTILL_BASE_URL": f"http://127.0.0.1:{_free_port()}",
            "BLOCKTILL_METRICS_BIND": "",
        }
        unset = {
            name: text for name, text in usual.items() if not is_said(os.environ, name)
        }
        own = os.environ | unset
        yield Place(
            read(own), state or Path(folder, "sandbox"), port or _free_port(), own
        )


def _run_once(
    place: Place, key: str, children: Children, words: Sequence[str], stop: Stop
) -> int:
    """The command's exit status; without one, prints the shop and waits. Raises CommandError."""
    shop = {"url": place.settings.base_url, "key": key, "sandbox_url": place.chain_url}
    environ = place.environ | {
        f"BLOCKTILL_{name.upper()}": text for name, text in shop.items()
    }
    if words:
        return _run(words, environ, children, stop)
    settings = {
        name: text for name, text in environ.items() if name.startswith("BLOCKTILL_")
    }
    write_data(
        orjson.dumps({**shop, "merchant": MERCHANT, "environ": settings}) + b"\n"
    )
    # A shell gives /dev/null to what it starts in the background: only a pipe's end means anything.
    mode = os.fstat(sys.stdin.fileno()).st_mode if sys.stdin else 0
    if stat.S_ISFIFO(mode) or stat.S_ISSOCK(mode):
        threading.Thread(
            target=_stop_at_the_end_of_input, args=(stop,), daemon=True
        ).start()
    children.watch(stop)
    return 0


def _run(
    words: Sequence[str], environ: Mapping[str, str], children: Children, stop: Stop
) -> int:
    command = subprocess.Popen(words, env=environ)
    try:
        while command.poll() is None and not stop.wait(LOOKS_EVERY_S):
            children.require_all()
    finally:
        command.terminate()
        with contextlib.suppress(subprocess.TimeoutExpired):
            command.wait(STOP_TIMEOUT_S)
        command.kill()
        status = command.wait()
    return exit_status(status)


def _stop_at_the_end_of_input(stop: Stop) -> None:
    while os.read(sys.stdin.fileno(), 4096):
        pass
    stop.set()


def _free_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as probe:
        return int(probe.getsockname()[1])


HOOK = hooks.Commands(commands={"sandbox": sandbox})
