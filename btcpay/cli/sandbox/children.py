"""The processes that the sandbox starts: they end with it, and write to its log."""

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
from btcpay.values.errors import CommandError

PR_SET_PDEATHSIG = 1  # linux/prctl.h
START_TIMEOUT_S = 60
STOP_TIMEOUT_S = 10


class Children:
    """Processes with one environment and one log; leaving the context stops all, last first.

    Each leads a session of its own, so that Ctrl-C reaches the sandbox alone. After `patience_s`
    the whole process group is killed, with what a child has started itself.
    """

    def __init__(
        self, environ: dict[str, str], log: Path, patience_s: float = STOP_TIMEOUT_S
    ) -> None:
        path = os.pathsep.join(filter(None, [str(PROJECT), environ.get("PYTHONPATH")]))
        self._environ, self.log = environ | {"PYTHONPATH": path}, log
        self._patience_s = patience_s
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
                [sys.executable, "-P", "-m", *words],  # this folder may hold another program
                env=self._environ,
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                start_new_session=True,
                preexec_fn=_end_with_parent,
            )
        self._running[name] = child
        self._stack.callback(_stop, child, self._patience_s)

    def wait_for(self, url: str, stop: threading.Event) -> None:
        """Returns once it is answered. Raises CommandError when one ends, or after a minute."""
        deadline_s = time.monotonic() + START_TIMEOUT_S
        while not stop.is_set():
            try:
                requests.get(url, timeout=5).raise_for_status()
                return
            except requests.RequestException as error:
                self.require_all()
                if time.monotonic() > deadline_s:
                    raise CommandError(f"{url} does not answer; see {self.log}") from error
            stop.wait(0.05)

    def require_all(self) -> None:
        """Raises CommandError when one has ended though nobody asked for it."""
        for name, child in self._running.items():
            if (status := child.poll()) is not None:
                raise CommandError(f"the {name} {_ending(status)}{self._last()}")

    def _last(self) -> str:
        lines = self.log.read_text(errors="replace").splitlines()[-10:]
        if not lines:
            return " and had logged nothing; `btcpay sandbox` starts again"
        return "\n".join([f"; {self.log} ends:", *lines])


def _ending(status: int) -> str:
    return f"was killed (signal {-status})" if status < 0 else f"ended by itself (status {status})"


def _end_with_parent() -> None:
    """In the child: SIGTERM when the parent is gone, however it ended (Linux, prctl(2))."""
    with contextlib.suppress(AttributeError):
        ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, signal.SIGTERM)


def _stop(child: subprocess.Popen, patience_s: float) -> None:
    """Asks the child to end; then kills what is left of its process group."""
    child.terminate()
    with contextlib.suppress(subprocess.TimeoutExpired):
        child.wait(patience_s)
    with contextlib.suppress(ProcessLookupError):  # nothing is left
        os.killpg(child.pid, signal.SIGKILL)
    child.wait()
