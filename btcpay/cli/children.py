"""Runs the processes of a shop, such as service and check, as children of this one."""

import contextlib
import multiprocessing
import os
import select
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Mapping
from multiprocessing.process import BaseProcess
from pathlib import Path
from typing import IO

from btcpay.cli.stop import Stop
from btcpay.values.errors import CommandError

LOOKS_EVERY_S = 0.1
LAST_LINES = 10  # how many lines of the log the error message has if a child ends
OWNER_ONLY = 0o600
AGAIN_S = 0.02  # between two looks whether a forked child has ended
SIGNALS = {signal.SIGTERM, signal.SIGINT, signal.SIGHUP, signal.SIGQUIT}
FORK = multiprocessing.get_context("fork")
# The name of a process in `ps` and `top`, on Linux.
NAME_FILE = Path("/proc/self/comm")
# The script of a shell that reads the children's process group ids from a pipe. The pipe closes
# when this process ends, even by SIGKILL. Then the shell terminates these groups.
WATCHDOG = 'while read -r pid; do groups="$groups -$pid"; done; kill -s TERM -- $groups'


class Children(contextlib.AbstractContextManager["Children"]):
    """A context manager that starts child processes, and stops all of them on exit.

    - `environ`: the environment variables of all children.
    - `log`: the file for the children's output. If it is None, they write to the output
      of this process.
    - `stop_timeout_s`: on exit, all children get SIGTERM. After this number of seconds,
      those still running are killed.

    Each child runs in its own session. So Ctrl-C reaches only this process, and the
    processes that a child has started are killed together with the child.
    """

    def __init__(
        self,
        environ: Mapping[str, str],
        stop_timeout_s: float,
        log: Path | None = None,
    ):
        self._environ = environ
        self._log = log
        self._stop_timeout_s = stop_timeout_s
        self._running: dict[str, subprocess.Popen[bytes] | Forked] = {}
        if log:
            log.unlink(missing_ok=True)  # left by the previous run
            log.touch(mode=OWNER_ONLY)
        # If this process is killed, the watchdog's standard input closes, and it ends all
        # children. It has its own session, so that Ctrl-C does not end it first.
        self._watchdog = subprocess.Popen(
            ["/bin/sh", "-c", WATCHDOG],
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
            _wait_or_kill(child, deadline_s)
        self._watchdog.kill()
        self._watchdog.communicate()

    def start(self, name: str, *words: str) -> None:
        """Starts a Python module as a child process.

        `words` are the module and its arguments, as after `python -m`. `name` is the
        child's name in messages.
        """
        if self._log:
            with self._log.open("ab") as log:
                child = self._spawn(words, log)
        else:
            child = self._spawn(words, None)
        self._running[name] = child
        if self._watchdog.stdin:
            self._watchdog.stdin.write(b"%d\n" % child.pid)

    def fork(self, name: str, run: Callable[[], None]) -> None:
        """Forks this process. The child calls `run`, and ends when `run` returns.

        `name` is the child's name in messages, `ps` and `top`. The child writes to the
        output of this process.
        """
        # A signal between the fork and the child's first line must not call the handlers
        # of this process, which set its events.
        signal.pthread_sigmask(signal.SIG_BLOCK, SIGNALS)
        try:
            child = Forked(name, run, self._watchdog.stdin)
        finally:
            signal.pthread_sigmask(signal.SIG_UNBLOCK, SIGNALS)
        self._running[name] = child

    def _spawn(
        self,
        words: tuple[str, ...],
        log: IO[bytes] | None,
    ) -> subprocess.Popen[bytes]:
        # -P keeps this folder off sys.path: it may hold another module of the same name.
        return subprocess.Popen(
            [sys.executable, "-P", "-m", *words],
            env=self._environ,
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=log,
            start_new_session=True,
        )

    def watch(self, stop: Stop) -> None:
        """Blocks until `stop` is set. Raises CommandError if a child ends first.

        Only the main thread may call it, since it sets the handler of SIGCHLD.
        """
        child_ended = Stop(signal.SIGCHLD)
        self.require_all()  # one may have ended before the handler was set
        while not stop.wait():
            select.select([stop, child_ended], [], [])
            if child_ended.wait():
                child_ended.clear()
                self.require_all()

    def require_all(self) -> None:
        """Raises CommandError, with the child's exit status, if any child has ended."""
        for name, child in self._running.items():
            status = child.poll()
            if status is not None:
                message = self._end_message(name, status)
                raise CommandError(message, exit_status(status))

    def _end_message(self, name: str, status: int) -> str:
        """Returns the error message about a child that ended, with the last lines of the log."""
        sentence = f"the {name} ended ({status})"
        if status < 0:
            sentence = f"the {name} was killed (signal {-status})"
        if self._log is None:
            return sentence
        lines = self._log.read_text("utf-8", "replace").splitlines()
        if not lines:
            return sentence
        return "\n".join([f"{sentence}; {self._log} ends:", *lines[-LAST_LINES:]])


def _wait_or_kill(child: "subprocess.Popen[bytes] | Forked", deadline_s: float) -> None:
    """Waits for the child's end, then kills all processes that it has started.

    If the child still runs at `deadline_s` of the monotonic clock, kills it too.
    """
    with contextlib.suppress(subprocess.TimeoutExpired):
        child.wait(max(0, deadline_s - time.monotonic()))
    with contextlib.suppress(ProcessLookupError):  # all processes have ended
        os.killpg(child.pid, signal.SIGKILL)
    child.wait()


class Forked:
    """A forked child process, with those methods of subprocess.Popen that Children needs.

    The child runs in its own session, with the signal handlers of a new process.

    `lifeline` is the pipe by which the watchdog learns that the parent has ended. The
    child itself writes its process group id there, then closes its end of the pipe. So
    the watchdog gets the id even if the parent is killed right after the fork.
    """

    def __init__(
        self,
        name: str,
        run: Callable[[], None],
        lifeline: IO[bytes] | None,
    ) -> None:
        def begin() -> None:
            """Prepares the forked process, then calls `run`.

            Tells the watchdog the process group, and restores the signal handlers.
            """
            os.setsid()
            if lifeline:
                lifeline.write(b"%d\n" % os.getpid())
                lifeline.close()
            for number in (*SIGNALS, signal.SIGCHLD):
                signal.signal(number, signal.SIG_DFL)
            signal.pthread_sigmask(signal.SIG_UNBLOCK, SIGNALS)
            with contextlib.suppress(OSError):
                NAME_FILE.write_text(f"till-{name}", encoding="ascii")
            run()

        self._process: BaseProcess = FORK.Process(target=begin)
        self._process.start()

    @property
    def pid(self) -> int:
        return self._process.pid or 0

    def poll(self) -> int | None:
        return self._process.exitcode

    def terminate(self) -> None:
        self._process.terminate()

    def wait(self, timeout_s: float | None = None) -> None:
        """Waits until the child ends.

        Raises subprocess.TimeoutExpired if that takes longer than `timeout_s` seconds;
        None means no limit.
        """
        if timeout_s is None:
            self._process.join()
            return
        end_s = time.monotonic() + timeout_s
        while self.poll() is None:
            if time.monotonic() > end_s:
                raise subprocess.TimeoutExpired(self._process.name, timeout_s)
            time.sleep(AGAIN_S)


def exit_status(code: int) -> int:
    """Converts a return code of `subprocess` to the exit status that a shell returns.

    A code -N means that signal N ended the process; it becomes 128 + N. Other codes
    stay as they are.
    """
    if code >= 0:
        return code
    return 128 - code
