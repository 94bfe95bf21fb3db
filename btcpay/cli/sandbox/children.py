"""The processes that the sandbox starts: they end with it, and write to its log."""

import contextlib
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import requests

from btcpay.cli.context import Stop
from btcpay.values.errors import CommandError

START_TIMEOUT_S = 60
STOP_TIMEOUT_S = 10
LOOKS_EVERY_S = 0.1
# A shell that reads the children's process groups from a pipe. The pipe closes when the sandbox
# ends, by SIGKILL too; then the shell ends these groups.
KEEPER = 'while read -r pid; do kept="$kept -$pid"; done; kill -s TERM -- $kept'


class Children(contextlib.AbstractContextManager["Children"]):
    """Processes with one environment and one log; leaving the context stops all, last first.

    Each leads a session: Ctrl-C reaches the sandbox alone, and a child's children end with it.
    """

    def __init__(self, environ: dict[str, str], log: Path, stop_timeout_s: float = STOP_TIMEOUT_S):
        self._environ, self._log, self._stop_timeout_s = environ, log, stop_timeout_s
        self._running: dict[str, subprocess.Popen[bytes]] = {}
        log.unlink(missing_ok=True)  # of the run before
        log.touch(mode=0o600)
        self._keeper = subprocess.Popen(
            ["/bin/sh", "-c", KEEPER],
            bufsize=0,
            stdin=subprocess.PIPE,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            start_new_session=True,
        )

    def __exit__(self, *_: object) -> None:
        for child in reversed(self._running.values()):
            child.terminate()
            with contextlib.suppress(subprocess.TimeoutExpired):
                child.wait(self._stop_timeout_s)
            with contextlib.suppress(ProcessLookupError):  # nothing is left
                os.killpg(child.pid, signal.SIGKILL)
            child.wait()
        self._keeper.kill()
        self._keeper.communicate()

    def start(self, name: str, *words: str) -> None:
        with self._log.open("ab") as log:
            self._running[name] = subprocess.Popen(
                [sys.executable, "-P", "-m", *words],  # this folder may hold another program
                env=self._environ,
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                start_new_session=True,
            )
        if self._keeper.stdin:
            self._keeper.stdin.write(b"%d\n" % self._running[name].pid)

    def wait_for(self, url: str, stop: Stop) -> None:
        """Returns once `url` answers. Raises CommandError when a child ends, or after a minute."""
        deadline_s = time.monotonic() + START_TIMEOUT_S
        while not stop.wait():
            try:
                requests.get(url, timeout=5).raise_for_status()
                return
            except requests.RequestException as error:
                self.require_all()
                if time.monotonic() > deadline_s:
                    raise CommandError(f"{url} does not answer; see {self._log}") from error
            stop.wait(0.05)

    def watch(self, stop: Stop) -> None:
        """Returns once `stop` is set. Raises CommandError when a child has ended before."""
        while not stop.wait(LOOKS_EVERY_S):
            self.require_all()

    def require_all(self) -> None:
        """Raises CommandError when a child has ended though nobody asked for it."""
        for name, child in self._running.items():
            if (status := child.poll()) is not None:
                how = f"was killed (signal {-status})" if status < 0 else f"ended ({status})"
                last = self._log.read_text(errors="replace").splitlines()[-10:]
                raise CommandError("\n".join([f"the {name} {how}; {self._log} ends:", *last]))
