"""The programs of a whole shop, as children of one process: they end with it."""

import contextlib
import os
import signal
import subprocess
import sys
import time
from collections.abc import Mapping
from pathlib import Path

from btcpay.cli.context import Stop
from btcpay.values.errors import CommandError

LOOKS_EVERY_S = 0.1
# A shell that reads the children's process groups from a pipe. The pipe closes when this process
# ends, by SIGKILL too; then the shell ends these groups.
KEEPER = 'while read -r pid; do kept="$kept -$pid"; done; kill -s TERM -- $kept'


class Children(contextlib.AbstractContextManager["Children"]):
    """Processes with one environment, and one log or our own output; leaving the context stops all.

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
        with self._log.open("ab") if self._log else contextlib.nullcontext() as log:
            self._running[name] = subprocess.Popen(
                [
                    sys.executable,
                    "-P",
                    "-m",
                    *words,
                ],  # this folder may hold another program
                env=self._environ,
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                start_new_session=True,
            )
        if self._keeper.stdin:
            self._keeper.stdin.write(b"%d\n" % self._running[name].pid)

    def watch(self, stop: Stop) -> None:
        """Returns once `stop` is set. Raises as `require_all` when a child has ended before."""
        while not stop.wait(LOOKS_EVERY_S):
            self.require_all()

    def require_all(self) -> None:
        """Raises CommandError, with the child's exit status, when one has ended by itself."""
        for name, child in self._running.items():
            if (status := child.poll()) is not None:
                how = (
                    f"was killed (signal {-status})"
                    if status < 0
                    else f"ended ({status})"
                )
                lines = (
                    self._log.read_text("utf-8", "replace").splitlines()
                    if self._log
                    else []
                )
                said = [f"the {name} {how}" + (f"; {self._log} ends:" if lines else "")]
                raise CommandError("\n".join(said + lines[-10:]), exit_status(status))


def exit_status(code: int) -> int:
    """A process's return code as a shell says it: which signal ended it."""
    if code >= 0:
        return code
    return 128 - code
