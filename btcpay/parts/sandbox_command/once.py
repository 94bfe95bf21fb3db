"""Runs `sandbox --once`: a shop in a temporary folder, for a command or for tests."""

import contextlib
import os
import random
import socket
import stat
import subprocess
import sys
import tempfile
import threading
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

import orjson

from btcpay.cli.children import LOOKS_EVERY_S, Children, exit_status
from btcpay.cli.output import write_data
from btcpay.cli.stop import Stop
from btcpay.parts.sandbox_command.config import LOCALHOST, SandboxConfig
from btcpay.parts.sandbox_command.demo import MERCHANT
from btcpay.settings.settings import is_set, read

STOP_TIMEOUT_S = 10
# The system gives higher ports to outgoing connections (Linux: from 32768). Such a port could be
# taken before the sandbox listens on it.
PORTS = range(20_000, 30_000)


@contextlib.contextmanager
def temporary_config(state: Path | None, port: int | None) -> Iterator[SandboxConfig]:
    """Yields the configuration of a sandbox in a temporary folder, on free ports.

    The folder is removed at the end. `state` is the folder in which the chain is
    stored; None means the temporary one. `port` is the chain's port; None means a free
    one. Environment variables can set the database and the port of the service.
    """
    with tempfile.TemporaryDirectory(prefix="blocktill-sandbox-") as folder:
        defaults = {
            "BLOCKTILL_DATABASE_URL": f"sqlite:///{folder}/blocktill.db",
            "BLOCKTILL_BASE_URL": f"http://{LOCALHOST}:{_free_port()}",
            "BLOCKTILL_METRICS_BIND": "",
        }
        environ = dict(os.environ)
        for name, text in defaults.items():
            if not is_set(os.environ, name):
                environ[name] = text
        yield SandboxConfig(
            settings=read(environ),
            state=state or Path(folder, "sandbox"),
            port=port or _free_port(),
            own_environ=environ,
        )


def _free_port() -> int:
    """Returns a port of this machine on which nobody listens."""
    while True:
        port = random.SystemRandom().choice(PORTS)
        try:
            probe = socket.create_server((LOCALHOST, port))
        except OSError:
            continue  # somebody listens there
        probe.close()
        return port


def run_once(
    config: SandboxConfig,
    key: str,
    children: Children,
    words: Sequence[str],
    stop: Stop,
) -> int:
    """Runs the command `words` in the sandbox's environment, and returns its exit status.

    If `words` is empty, prints the shop's URL and key as JSON instead, waits until
    `stop` is set, and returns 0. `key` is the secret of an API key. Raises CommandError
    if a child process (chain, service or check) ends.
    """
    base_url = config.settings.base_url
    environ = config.environ | {
        "BLOCKTILL_URL": base_url,
        "BLOCKTILL_KEY": key,
        "BLOCKTILL_SANDBOX_URL": config.chain_url,
    }
    if words:
        return _run_command(words, environ, children, stop)
    # The rest of the environment is the caller's own, and may hold their secrets.
    shop_environ = {
        name: text for name, text in environ.items() if name.startswith("BLOCKTILL_")
    }
    shop = {
        "url": base_url,
        "key": key,
        "sandbox_url": config.chain_url,
        "merchant": MERCHANT,
        "environ": shop_environ,
    }
    write_data(orjson.dumps(shop) + b"\n")
    _wait_for_stop(children, stop)
    return 0


def _wait_for_stop(children: Children, stop: Stop) -> None:
    """Waits until `stop` is set. Raises CommandError if a child process ends.

    If standard input is a pipe, as under a test runner, its end sets `stop` too. So the
    sandbox ends with the program that started it.
    """
    if _is_input_a_pipe():
        reader = threading.Thread(
            target=_stop_at_the_end_of_input, args=(stop,), daemon=True
        )
        reader.start()
    children.watch(stop)


def _is_input_a_pipe() -> bool:
    """True if standard input is a pipe or a socket.

    A shell gives /dev/null to background programs. That input ends at once, which must
    not end the sandbox.
    """
    if not sys.stdin:
        return False
    mode = os.fstat(sys.stdin.fileno()).st_mode
    return stat.S_ISFIFO(mode) or stat.S_ISSOCK(mode)


def _stop_at_the_end_of_input(stop: Stop) -> None:
    while os.read(sys.stdin.fileno(), 4096):
        pass
    stop.set()


def _run_command(
    words: Sequence[str],
    environ: Mapping[str, str],
    children: Children,
    stop: Stop,
) -> int:
    """Runs the command until it ends or `stop` is set, and returns its exit status.

    Raises CommandError if a child process ends. At the end, the command is stopped: it is
    killed if it does not end within STOP_TIMEOUT_S.
    """
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
