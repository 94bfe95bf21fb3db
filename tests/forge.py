"""Processes of the command line that start in milliseconds.

Each is real, and forked from one that has loaded the program: a new interpreter takes half a
second to load it. What has loaded it (this file as a script) has neither threads nor connections
that a fork would break.
"""

import json
import os
import subprocess
import sys
import tempfile
import threading
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

from btcpay import command

PROJECT = Path(__file__).resolve().parent.parent


@dataclass(frozen=True)
class Ended:
    """How a process ended, -9 after SIGKILL, and what it wrote."""

    status: int
    output: str
    errors: str


class Forge:
    """Makes one process after another, with the words and the environment that it is given."""

    def __init__(self, script: str = __file__) -> None:
        self._folder = tempfile.TemporaryDirectory(prefix="btcpay-forge-")
        self._lock = threading.Lock()
        self._process = subprocess.Popen(
            [sys.executable, script],
            env={"PATH": "/usr/bin:/bin", "PYTHONPATH": str(PROJECT)},
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            cwd=PROJECT,
        )

    def run(self, environ: dict[str, str], words: list[str], **more: Any) -> Ended:
        """Waits for its end; `more` is for a script of one's own."""
        standard = [f"{self._folder.name}/{name}" for name in ("output", "errors")]
        order = {"environ": environ, "words": words, "standard": standard} | more
        with self._lock:
            self._process.stdin.write(json.dumps(order) + "\n")
            self._process.stdin.flush()
            status = int(self._process.stdout.readline())
            return Ended(status, *(Path(path).read_text(errors="replace") for path in standard))

    def close(self) -> None:
        self._process.stdin.close()
        self._process.wait(10)
        self._process.stdout.close()
        self._folder.cleanup()


@cache
def forge() -> Forge:
    """The one of this run of the tests; it ends with them, when its input does."""
    return Forge()


def fork_for_each_order(act: Callable[[dict[str, Any]], None]) -> None:
    """Lets a process of its own `act` for each line of the input, and answers how it ended."""
    for line in sys.stdin:
        pid = os.fork()
        if pid == 0:
            order = json.loads(line)
            _take_over(order)
            act(order)
            return
        _, status = os.waitpid(pid, 0)
        print(os.waitstatus_to_exitcode(status), flush=True)


def _take_over(order: dict[str, Any]) -> None:
    os.environ.clear()
    os.environ.update(order["environ"])
    os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
    for number, path in enumerate(order["standard"], start=1):
        os.dup2(os.open(path, os.O_CREAT | os.O_WRONLY | os.O_TRUNC, 0o600), number)


def command_line(order: dict[str, Any]) -> None:
    """What `btcpay` with these words would do."""
    sys.argv = ["btcpay", *order["words"]]
    command.main()


if __name__ == "__main__":
    fork_for_each_order(command_line)
