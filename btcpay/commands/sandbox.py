"""`sandbox`: a chain, the service and the check on this machine, with a demo merchant."""

import contextlib
import ctypes
import os
import signal
import socket
import subprocess
import sys
import threading
import time
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path

import click
import requests
from bit.base58 import b58encode_check

from btcpay import keys
from btcpay.addresses import parse_account
from btcpay.bitcoin.hd import HARDENED, ExtendedKey
from btcpay.bitcoin.wire import Malformed
from btcpay.clock import utc_now
from btcpay.commands.administration import add_merchant
from btcpay.commands.running import PROJECT
from btcpay.commands.shell import Shell, say, with_shell
from btcpay.errors import CommandError
from btcpay.settings import Settings
from storage import merchants, schema
from storage.database import Database

DEMO = "demo"
OWN_EXPLORER = "10000000"  # calls an hour: the sandbox is its own explorer, and is asked every 2 s
TPUB = bytes.fromhex("043587cf")  # SLIP-132: an account key of a test network
PR_SET_PDEATHSIG = 1  # linux/prctl.h
START_TIMEOUT_S = 60
STOP_TIMEOUT_S = 10


@dataclass(frozen=True)
class Demo:
    """Where everything listens, and what the demo merchant was given."""

    chain_url: str
    service_url: str
    secret: str


@click.command()
@click.option("--port", type=click.IntRange(1, 65535), default=8001, show_default=True)
@click.option(
    "--state",
    type=click.Path(file_okay=False, path_type=Path),
    default=Path("var/sandbox"),
    show_default=True,
    help="Where the chain and the demo key are kept.",
)
@with_shell
def sandbox(shell: Shell, port: int, state: Path) -> None:
    """Start a regtest playground: chain, price, service, and a check every two seconds."""
    settings = shell.settings
    if settings.network.name != "regtest":
        raise CommandError(
            f"the sandbox is for regtest only, not for {settings.network.name}:"
            " unset BTCPAY_NETWORK and the variables that go with it"
        )
    if settings.bind.startswith("unix:"):
        raise CommandError("the sandbox serves on a port; BTCPAY_BIND names a socket file")
    _refuse_taken(f"127.0.0.1:{port}", "--port")
    _refuse_taken(settings.bind, "BTCPAY_BASE_URL or BTCPAY_BIND")
    schema.migrate(settings.database_url, settings.network.name)
    state.mkdir(mode=0o700, parents=True, exist_ok=True)
    demo = Demo(f"http://127.0.0.1:{port}", _service_url(settings), _demo_key(shell, state))
    environ = os.environ | {
        "BTCPAY_NETWORK": settings.network.name,
        "BTCPAY_DATABASE_URL": settings.database_url,
        "BTCPAY_EXPLORERS": demo.chain_url,
        "BTCPAY_EXPLORER_CALLS_PER_HOUR": OWN_EXPLORER,
        "BTCPAY_PRICE_SOURCES": f"{demo.chain_url}/price#/usd",
        "BTCPAY_PRICE_QUORUM": "1",
        # The pages ask every two seconds: a line for each would bury what is printed here.
        "GUNICORN_CMD_ARGS": f"--log-level warning {os.environ.get('GUNICORN_CMD_ARGS', '')}",
    }
    stop = threading.Event()
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, lambda *_: stop.set())
    with ExitStack() as children:
        chain = _start(
            children, environ, "btcpay.sandbox", "--port", str(port), "--state", str(state)
        )
        _wait_for(f"{demo.chain_url}/blocks/tip/height", chain, stop)
        service = _start(children, environ, "btcpay", "serve")
        _wait_for(f"{demo.service_url}/api/v1/openapi.json", service, stop)
        check = _start(children, environ, "btcpay", "check", "--watch", "2")
        if not stop.is_set():
            _introduce(demo)
        _watch({"chain": chain, "service": service, "check": check}, stop)


def _service_url(settings: Settings) -> str:
    host, _, port = settings.bind.rpartition(":")
    return f"http://{'127.0.0.1' if host in ('', '0.0.0.0') else host}:{port}"


def _refuse_taken(bind: str, name: str) -> None:
    host, _, port = bind.rpartition(":")
    with socket.socket() as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind((host, int(port)))
        except OSError as error:
            raise CommandError(
                f"{bind} is taken ({error.strerror}): stop what listens there, or choose another"
                f" port with {name}"
            ) from None


def _demo_key(shell: Shell, state: Path) -> str:
    """The demo merchant's write key; kept in a file, since it is worth nothing, to be reused."""
    file = state / "write_key"
    secret = file.read_text(encoding="ascii").strip() if file.exists() else ""
    if secret and keys.caller_of(shell.db, secret, utc_now()):
        return secret
    merchant_id = _demo_merchant(shell.db, shell.settings)
    network = shell.settings.network
    _, secret = keys.issue(shell.db, network, merchant_id, "write", "sandbox", utc_now())
    file.touch(mode=0o600)
    file.write_text(secret + "\n", encoding="ascii")
    return secret


def _demo_merchant(db: Database, settings: Settings) -> int:
    if db.row(merchants.BY_NAME, name=DEMO) is None:
        add_merchant(db, DEMO, parse_account(_nobodys_account(), settings.network))
    return db.only(merchants.BY_NAME, name=DEMO)["id"]


def _nobodys_account() -> str:
    """The tpub of an account m/84'/1'/0' without a private key: what it is paid is play money."""
    place = bytes([3]) + os.urandom(4) + HARDENED.to_bytes(4, "big")
    while True:
        payload = TPUB + place + os.urandom(32) + b"\x02" + os.urandom(32)
        with contextlib.suppress(Malformed):  # half of all numbers are no point's x
            ExtendedKey.parse(payload)
            return b58encode_check(payload)


def _start(children: ExitStack, environ: dict[str, str], *words: str) -> subprocess.Popen:
    """Starts `python -m words`; it is stopped when the stack unwinds, last started first."""
    path = os.pathsep.join(filter(None, [str(PROJECT), environ.get("PYTHONPATH")]))
    child = subprocess.Popen(
        [sys.executable, "-m", *words],
        env=environ | {"PYTHONPATH": path},
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        preexec_fn=_end_with_parent,
    )
    children.callback(_stop, child)
    return child


def _end_with_parent() -> None:
    """In the child: SIGTERM when the parent is gone, however it ended (Linux, prctl(2))."""
    with contextlib.suppress(AttributeError):
        ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, signal.SIGTERM)


def _stop(child: subprocess.Popen) -> None:
    child.terminate()
    try:
        child.wait(STOP_TIMEOUT_S)
    except subprocess.TimeoutExpired:
        child.kill()
        child.wait()


def _wait_for(url: str, child: subprocess.Popen, stop: threading.Event) -> None:
    """Returns once the child answers. Raises CommandError when it ends or takes too long."""
    deadline_s = time.monotonic() + START_TIMEOUT_S
    while not stop.is_set():
        try:
            requests.get(url, timeout=5).raise_for_status()
            return
        except requests.RequestException as error:
            if child.poll() is not None or time.monotonic() > deadline_s:
                raise CommandError(f"{url} does not answer; see the messages above") from error
        stop.wait(0.05)


def _introduce(demo: Demo) -> None:
    """Makes one invoice and one payment link, and says how to make more."""
    headers = {"Authorization": f"Bearer {demo.secret}"}
    api = f"{demo.service_url}/api/v1"
    invoice = requests.post(
        f"{api}/invoices",
        json={"amount_usd": 25, "description": "Demo"},
        headers=headers,
        timeout=30,
    ).json()
    link = requests.post(
        f"{api}/payment-links", json={"title": "Tip jar"}, headers=headers, timeout=30
    ).json()
    click.echo(
        f"write key      {demo.secret}\n"
        f"new invoice    curl -s {api}/invoices -H 'Authorization: Bearer {demo.secret}'"
        " -H 'Content-Type: application/json' -d '{\"amount_usd\": 25}'\n"
        f"checkout link  {invoice.get('pay_url')}\n"
        f"payment link   {link.get('link_url')}\n"
        f"sandbox        {demo.chain_url}/\n"
    )
    say("The sandbox pays, mines and misbehaves at its page; ctrl-C ends everything.")


def _watch(processes: dict[str, subprocess.Popen], stop: threading.Event) -> None:
    """Until a signal comes. Raises CommandError when a process ends by itself."""
    while not stop.wait(0.2):
        for name, child in processes.items():
            if child.poll() is not None and not stop.wait(0.5):
                raise CommandError(f"the {name} ended by itself; see the messages above")


COMMANDS = (sandbox,)
