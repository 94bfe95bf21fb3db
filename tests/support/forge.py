"""Processes of the program that start in milliseconds: of the command line, and gunicorn's.

Each is real, and forked from one that has loaded the program: a new interpreter takes most of a
second to load it. What has loaded it (this file as a script) has neither threads nor connections
that a fork would break, nor anything that depends on the environment or the folder.
"""

import atexit
import contextlib
import gc
import importlib
import json
import os
import runpy
import select
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import cache
from io import FileIO, TextIOWrapper
from pathlib import Path
from typing import IO, Any, NoReturn, cast

from peewee import Query

from btcpay import hooks
from btcpay.bitcoin import secp256k1
from btcpay.cli import main
from btcpay.cli.serve import GUNICORN
from btcpay.languages.catalogs import LANGUAGES, catalog
from storage.database import open_database
from tests.support.paths import PROJECT
from tests.support.templates import TEMPLATES, share_templates

SERVED = ("app", "gunicorn.workers.gthread", "gunicorn.arbiter")  # what a server loads
# These read the environment and the folder when they are loaded.
FRESH = ("wsgi", "gunicorn.config", "btcpay.web.gunicorn_conf")
LOADS_FRESH = "btcpay.cli.run"  # it loads gunicorn.config
LONGEST = 200_000  # bytes of an order, with its environment


@dataclass(frozen=True)
class Ended:
    """The exit status of a process, -9 after SIGKILL, and its output."""

    status: int
    output: str
    errors: str


class Process:
    """One that the forge has made: as much of subprocess.Popen as tests use.

    It leads a session of its own. When nobody holds this object any more, or the tests end however
    they may, its process group is killed.
    """

    def __init__(
        self, channel: socket.socket, stdout: IO[str] | None, stderr: IO[str] | None
    ):
        self._channel = channel
        self.stdout = stdout
        self.stderr = stderr
        self.returncode: int | None = None
        self.pid = self._told()

    def _told(self) -> int:
        told = self._channel.recv(99)
        assert told, "the forge has ended"
        return int(told)

    def wait(self, timeout: float | None = None) -> int:
        """The exit status, when it has ended."""
        if self.returncode is None:
            self._channel.settimeout(timeout)
            try:
                self.returncode = self._told()
            except (TimeoutError, BlockingIOError):
                raise subprocess.TimeoutExpired(
                    f"process {self.pid}", timeout or 0
                ) from None
            self._channel.close()
        return self.returncode

    def poll(self) -> int | None:
        with contextlib.suppress(subprocess.TimeoutExpired):
            self.wait(0)
        return self.returncode

    def communicate(self, timeout: float | None = None) -> tuple[str, str]:
        """Its output that was not read yet; a process that does not end in time is killed."""
        with ThreadPoolExecutor(2) as pool:
            output, errors = (
                pool.submit(stream.read if stream else str)
                for stream in (self.stdout, self.stderr)
            )
            try:
                self.wait(timeout)
            finally:
                self.kill()
        return output.result(), errors.result()

    def send_signal(self, number: int) -> None:
        if self.poll() is None:
            with contextlib.suppress(ProcessLookupError):
                os.kill(self.pid, number)

    def terminate(self) -> None:
        self.send_signal(signal.SIGTERM)

    def kill(self) -> None:
        self.send_signal(signal.SIGKILL)

    def __enter__(self) -> "Process":
        return self

    def __exit__(self, *_: Any) -> None:
        for stream in filter(None, (self.stdout, self.stderr)):
            stream.close()
        self.wait()


class Forge:
    """Makes processes with the words and the environment that it is given."""

    def __init__(self, script: str = __file__) -> None:
        self._orders, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        with theirs:
            self._process = subprocess.Popen(
                [sys.executable, "-P", script],
                env={
                    "PATH": "/usr/bin:/bin",
                    "PYTHONPATH": str(PROJECT),
                }
                | {n: v for n, v in os.environ.items() if n == TEMPLATES},
                stdin=theirs.fileno(),
                stdout=subprocess.PIPE,  # as theirs will be: what has it must not try to seek
                cwd=PROJECT,
                start_new_session=True,
            )

    def order(
        self,
        environ: dict[str, str],
        words: list[str],
        output: int,
        errors: int,
        *typed: int,
        **more: Any,
    ) -> socket.socket:
        """Has a process made that writes to these files; what is told of it comes from the socket.

        It reads from the file that is `typed`, or nothing.

        `more` may name a `folder` to start in, `program` "gunicorn", another `name` of the command,
        and what is for a script of one's own.
        """
        ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        text = json.dumps(
            {"environ": environ, "words": words, "folder": str(PROJECT)} | more
        )
        with theirs:
            socket.send_fds(
                self._orders, [text.encode()], [theirs.fileno(), output, errors, *typed]
            )
        return ours

    def start(
        self, environ: dict[str, str], words: list[str], typed: str = "", **more: Any
    ) -> Process:
        """Its output and errors are to be read as text; `typed` is its standard input."""
        (output, to_output) = os.pipe()
        (errors, to_errors) = os.pipe()
        with tempfile.TemporaryFile() as file:
            file.write(typed.encode())
            file.seek(0)
            try:
                channel = self.order(
                    environ, words, to_output, to_errors, file.fileno(), **more
                )
            finally:
                os.close(to_output)
                os.close(to_errors)
        return Process(
            channel, *(open(end, errors="replace") for end in (output, errors))
        )

    def launch(
        self,
        environ: dict[str, str],
        words: Sequence[str],
        folder: Path,
        output: int,
        errors: int,
    ) -> Process:
        """Starts a command in this folder; for "serve" the server which that executes."""
        more = {"folder": str(folder)}
        if tuple(words) == ("serve",):
            words = GUNICORN
            more["program"] = "gunicorn"
        return Process(
            self.order(environ, list(words), output, errors, **more), None, None
        )

    def run(
        self, environ: dict[str, str], words: list[str], typed: str = "", **more: Any
    ) -> Ended:
        """Waits for its end."""
        with self.start(environ, words, typed, **more) as process:
            output, errors = process.communicate()
            return Ended(process.wait(), output, errors)

    def close(self) -> None:
        self._orders.close()
        self._process.wait(60)
        self._process.stdout.close()


@cache
def forge() -> Forge:
    """The one of this run of the tests; it ends with them, when its orders do."""
    return Forge()


def fork_for_each_order(act: Callable[[dict[str, Any]], None]) -> None:
    """Lets a process of its own `act` for each order that comes by standard input."""
    assert threading.active_count() == 1 and not sys.modules.keys() & set(FRESH)
    secp256k1.G.add(1)  # makes the table of the curve, else each does in 40 ms
    gc.freeze()  # what is loaded is looked through by none of them, and so stays shared
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)  # nobody waits for a keeper
    orders = socket.socket(fileno=0)
    while True:
        text, files, _, _ = socket.recv_fds(orders, LONGEST, 4)
        if not text:
            return
        if os.fork() == 0:
            break
        for file in files:
            os.close(file)
    signal.signal(signal.SIGCHLD, signal.SIG_DFL)
    orders.close()
    if len(files) < 4:
        files.append(os.open(os.devnull, os.O_RDONLY))
    os.dup2(files[3], 0)
    os.close(files.pop())
    channel = socket.socket(fileno=files[0])
    order = json.loads(text)
    pid = os.fork()
    if pid:
        _keep(pid, channel, files[1:])
    _take_over(order, channel, files[1:])
    _leave(_status(act, order))


def _keep(pid: int, channel: socket.socket, files: list[int]) -> None:
    """The parent: tells how the process ended, and kills it when there is nobody to tell."""
    try:
        for file in files:
            os.close(file)
        end = os.pidfd_open(pid)
        if end not in select.select([end, channel.fileno()], [], [])[0]:
            os.killpg(pid, signal.SIGKILL)
        _, status = os.waitpid(pid, 0)
        channel.send(str(os.waitstatus_to_exitcode(status)).encode())
    finally:
        os._exit(0)


def _take_over(order: dict[str, Any], channel: socket.socket, files: list[int]) -> None:
    os.setsid()
    channel.send(str(os.getpid()).encode())
    channel.close()
    for number, file in enumerate(files, start=1):
        os.dup2(file, number)
        os.close(file)
    os.chdir(order["folder"])
    os.environ.clear()
    os.environ.update(order["environ"])
    time.tzset()
    if encoding := os.environ.get(
        "PYTHONIOENCODING"
    ):  # an interpreter reads it at its start
        cast(TextIOWrapper, sys.stdout).reconfigure(encoding=encoding)
        errors = FileIO(2, "w", closefd=False)
        sys.stderr = TextIOWrapper(
            errors, encoding, "backslashreplace", write_through=True
        )


def _status(act: Callable[[dict[str, Any]], None], order: dict[str, Any]) -> int:
    try:
        act(order)
    except SystemExit as end:
        if isinstance(end.code, str):
            raise
        return end.code or 0
    return 0


def _leave(status: int) -> NoReturn:
    """As multiprocessing's forks end: taking all modules apart costs twice what a command does."""
    try:
        sys.stdout.flush()
    except (OSError, ValueError):
        sys.exit(status)  # the interpreter has something to say of that
    threading._shutdown()  # type: ignore[attr-defined]
    atexit._run_exitfuncs()
    sys.stdout.flush()
    os._exit(status)


def program(order: dict[str, Any]) -> None:
    """The command line, or what it executes to serve: `python -m gunicorn` with these words."""
    sys.argv = [order.get("name", "blocktill"), *order["words"]]
    if order.get("program") == "gunicorn":
        runpy.run_module("gunicorn", run_name="__main__", alter_sys=True)
    else:
        main.main()


def load_what_is_loaded_late() -> None:
    """The parts, catalogs, and templates as the tests' own services have compiled them.

    A server would take two tenths of a second of the processor for them at each start.
    """
    for file in hooks.PARTS_FOLDER.glob("*/*.py"):
        importlib.import_module(f"btcpay.parts.{file.parent.name}.{file.stem}")
    for language in LANGUAGES:
        catalog(language)
    if folder := os.environ.get(TEMPLATES):
        share_templates(Path(folder))


def load_commands() -> None:
    """The modules of each command, which it would load when it is used."""
    for name in set(main.COMMANDS.values()) - {LOADS_FRESH}:
        importlib.import_module(name)
    load_what_is_loaded_late()
    compile_statements()


def compile_statements() -> None:
    """Those of SQLite, which every process would compile before it runs them."""
    db = open_database("sqlite:////dev/null")  # opened by its first query: here by none
    for name, module in list(sys.modules.items()):
        if "queries" in name:
            for value in list(vars(module).values()):
                if isinstance(value, Query):
                    db._compiled(value)


if __name__ == "__main__":
    for name in SERVED:
        importlib.import_module(name)
    load_commands()
    fork_for_each_order(program)
