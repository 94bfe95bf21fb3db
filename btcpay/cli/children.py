"""The programs of a whole shop, as children of one process: they end with it."""

import contextlib
import os
import signal
import subprocess
import sys
import time
from collections.abc import Mapping
from pathlib import Path
from typing import IO

from btcpay.cli.stop import Stop
from btcpay.values.errors import CommandError

LOOKS_EVERY_S = 0.1
LAST_LINES = 10  # of the log, in the message about a child that has ended
OWNER_ONLY = 0o600
# A shell that reads the children's process groups from a pipe. The pipe closes when this process
# ends, by SIGKILL too; then the shell ends these groups.
KEEPER = 'while read -r pid; do kept="$kept -$pid"; done; kill -s TERM -- $kept'


class Children(contextlib.AbstractContextManager["Children"]):
    """Processes with the same environment and output. Leaving the context stops all.

    Each leads a session: Ctrl-C reaches this process alone, and a child's children end with it.
    """

    def __init__(
        self, environ: Mapping[str, str], stop_timeout_s: float, log: Path | None = None
    ):
        self._environ = environ
        self._log = log
        self._stop_timeout_s = stop_timeout_s
        self._running: dict[str, subprocess.Popen[bytes]] = {}
        if log:
            log.unlink(missing_ok=True)  # the last run's
            log.touch(mode=OWNER_ONLY)
        self._keeper = subprocess.Popen(
            ["/bin/sh", "-c", KEEPER],
            bufsize=0,
            stdin=subprocess.PIPE,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            start_new_session=True,
        )

    def __exit__(self, *_: object) -> None:
        deadline_s = time.monotonic() + self._stop_timeout_s
        for child in self._running.values():
            child.terminate()
        for child in self._running.values():
            with contextlib.suppress(subprocess.TimeoutExpired):
                child.wait(max(0, deadline_s - time.monotonic()))
            with contextlib.suppress(ProcessLookupError):  # nothing is left
                os.killpg(child.pid, signal.SIGKILL)
            child.wait()
        self._keeper.kill()
        self._keeper.communicate()

    def start(self, name: str, *words: str) -> None:
        """Starts a module of Python's, which has these words as its command line."""
        if self._log:
            with self._log.open("ab") as log:
                child = self._spawn(words, log)
        else:
            child = self._spawn(words, None)
        self._running[name] = child
        if self._keeper.stdin:
            self._keeper.stdin.write(b"%d\n" % child.pid)

    def _spawn(
        self, words: tuple[str, ...], log: IO[bytes] | None
    ) -> subprocess.Popen[bytes]:
        # -P: this folder may hold another program of the module's name.
        return subprocess.Popen(
            [sys.executable, "-P", "-m", *words],
            env=self._environ,
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=log,
            start_new_session=True,
        )

    def watch(self, stop: Stop) -> None:
        """Returns once `stop` is set. Raises CommandError, as `require_all`, if a child ends."""
        while not stop.wait(LOOKS_EVERY_S):
            self.require_all()

    def require_all(self) -> None:
        """Raises CommandError, with the child's exit status, if one has ended by itself."""
        for name, child in self._running.items():
            status = child.poll()
            if status is not None:
                message = self._obituary(name, status)
                raise CommandError(message, exit_status(status))

    def _obituary(self, name: str, status: int) -> str:
        """How the child ended, and the last lines of its log."""
        sentence = f"the {name} ended ({status})"
        if status < 0:
            sentence = f"the {name} was killed (signal {-status})"
        if self._log is None:
            return sentence
        lines = self._log.read_text("utf-8", "replace").splitlines()
        if not lines:
            return sentence
        return "\n".join([f"{sentence}; {self._log} ends:", *lines[-LAST_LINES:]])


def exit_status(code: int) -> int:
    """A return code as a shell says it: 128 and the number of the signal that ended the process."""
    if code >= 0:
        return code
    return 128 - code
