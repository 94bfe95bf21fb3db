"""`sandbox --once`: a shop for one run of somebody's tests, in a folder that is thrown away."""

import contextlib
import os
import socket
import stat
import subprocess
import sys
import tempfile
import threading
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

import click
import orjson

from btcpay.cli.context import Stop
from btcpay.cli.sandbox.children import LOOKS_EVERY_S, STOP_TIMEOUT_S, Children
from btcpay.cli.sandbox.demo import MERCHANT, Demo
from btcpay.cli.sandbox.place import Place
from btcpay.settings.settings import is_said, read


@contextlib.contextmanager
def thrown_away(
    environ: Mapping[str, str], state: Path | None, port: int | None
) -> Iterator[Place]:
    """A place in a temporary folder, on free ports, but for what the environment sets."""
    with tempfile.TemporaryDirectory(prefix="btcpay-sandbox-") as folder:
        usual = {
            "BTCPAY_DATABASE_URL": f"sqlite:///{folder}/btcpay.db",
            "BTCPAY_BASE_URL": f"http://127.0.0.1:{_free_port()}",
            "BTCPAY_METRICS_BIND": "",
        }
        unset = {name: text for name, text in usual.items() if not is_said(environ, name)}
        own = dict(environ) | unset
        yield Place(read(own), state or Path(folder, "sandbox"), port or _free_port(), own)


def run_once(place: Place, demo: Demo, children: Children, words: Sequence[str], stop: Stop) -> int:
    """The command's exit status; without one, prints the shop and waits. Raises CommandError."""
    shop = {"url": place.settings.base_url, "key": demo.secret, "sandbox_url": place.chain_url}
    environ = place.environ | {f"BTCPAY_{name.upper()}": text for name, text in shop.items()}
    if words:
        return _run(words, environ, children, stop)
    settings = {name: text for name, text in environ.items() if name.startswith("BTCPAY_")}
    click.echo(orjson.dumps({**shop, "merchant": MERCHANT, "environ": settings}).decode())
    # A shell gives /dev/null to what it starts in the background: only a pipe's end means anything.
    mode = os.fstat(sys.stdin.fileno()).st_mode if sys.stdin else 0
    if stat.S_ISFIFO(mode) or stat.S_ISSOCK(mode):
        threading.Thread(target=_stop_at_the_end_of_input, args=(stop,), daemon=True).start()
    children.watch(stop)
    return 0


def _run(words: Sequence[str], environ: Mapping[str, str], children: Children, stop: Stop) -> int:
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
    return status if status >= 0 else 128 - status  # as a shell says which signal it was


def _stop_at_the_end_of_input(stop: Stop) -> None:
    while os.read(sys.stdin.fileno(), 4096):
        pass
    stop.set()


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])
