"""The processes that the sandbox starts: they end with it, and talk into its log."""

import contextlib
import ctypes
import os
import signal
import subprocess
import sys
import threading
import time
from contextlib import ExitStack
from pathlib import Path

import requests

from btcpay.cli.serve import PROJECT
from btcpay.errors import CommandError

PR_SET_PDEATHSIG = 1  # linux/prctl.h
START_TIMEOUT_S = 60
STOP_TIMEOUT_S = 10


class Children:
    """Processes with one environment and one log; leaving the context stops all, last first."""

    def __init__(self, environ: dict[str, str], log: Path) -> None:
        path = os.pathsep.join(filter(None, [str(PROJECT), environ.get("PYTHONPATH")]))
        self._environ, self.log = environ | {"PYTHONPATH": path}, log
        self._running: dict[str, subprocess.Popen] = {}
        self._stack = ExitStack()
        log.unlink(missing_ok=True)  # of the run before
        log.touch(mode=0o600)

    def __enter__(self) -> "Children":
        return self

    def __exit__(self, *_: object) -> None:
        self._stack.close()

    def start(self, name: str, *words: str) -> None:
        """Starts `python -m words`."""
        with self.log.open("ab") as log:
            child = subprocess.Popen(
                [sys.executable, "-m", *words],
                env=self._environ,
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                preexec_fn=_end_with_parent,
            )
        self._running[name] = child
        self._stack.callback(_stop, child)

    def wait_for(self, url: str, stop: threading.Event) -> None:
        """Returns once it is answered. Raises CommandError when one ends, or after a minute."""
        deadline_s = time.monotonic() + START_TIMEOUT_S
        while not stop.is_set():
            try:
                requests.get(url, timeout=5).raise_for_status()
                return
            except requests.RequestException as error:
                self.require_all(stop)
                if time.monotonic() > deadline_s:
                    raise CommandError(f"{url} does not answer; see {self.log}") from error
            stop.wait(0.05)

    def require_all(self, stop: threading.Event) -> None:
        """Raises CommandError when one has ended though nobody asked for it."""
        for name, child in self._running.items():
            # Ctrl-C reaches the children first, and this process at once after.
            if child.poll() is not None and not stop.wait(0.5):
                raise CommandError(f"the {name} ended by itself; {self.log} ends:\n{self._last()}")

    def _last(self) -> str:
        return "\n".join(self.log.read_text(errors="replace").splitlines()[-10:])


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
