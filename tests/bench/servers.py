"""Servers under load: gunicorn with one worker, and what it answered in so many seconds."""

import itertools
import os
import random
import selectors
import socket
import subprocess
import tempfile
import time
from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path

import requests

from tests.bench.fill import KEYS, invoice_id, secret
from tests.support.builders import clean_environ, until
from tests.support.ports import free_port


@dataclass(frozen=True)
class Operation:
    """A measured operation.

    `per_key` stays below what a key may ask in a minute: 120 reads, 30 writes.
    """

    name: str
    line: str
    connections: int = 4
    scope: str = "read"
    per_key: int = 100
    status: int = 200
    body: str = ""


@dataclass(frozen=True)
class Round:
    """One server's result in one round; processor time in microseconds a request."""

    per_second: float
    p99_ms: float
    processor_us: float


class Server:
    """gunicorn with one worker: of a checkout's service with so many invoices, or a bare route."""

    def __init__(
        self, words: tuple[str, ...], folder: Path, root: Path, **environ: str
    ) -> None:
        self.port = free_port()
        self.stored = 0
        self._turns: dict[str, Iterator[int]] = {}
        self._log = tempfile.TemporaryFile("w+")  # noqa: SIM115
        self._process = subprocess.Popen(
            [
                root / ".venv/bin/python",
                "-m",
                "gunicorn",
                *words,
                "-b",
                f"127.0.0.1:{self.port}",
            ],
            cwd=folder,
            env=clean_environ(**environ),
            stdout=subprocess.DEVNULL,
            stderr=self._log,
        )

    @property
    def pid(self) -> int:
        return self._process.pid

    def asked(self, operation: Operation) -> Iterator[bytes]:
        """Requests without end; no key that was used in the last minute."""
        turns = self._turns.setdefault(operation.scope, itertools.cycle(range(KEYS)))
        for key in (secret(operation.scope, turn) for turn in turns):
            for _ in range(operation.per_key):
                line = operation.line.format(
                    id=invoice_id(random.randrange(self.stored or 1))
                )
                yield (
                    f"{line} HTTP/1.1\r\nHost: 127.0.0.1\r\nAuthorization: Bearer {key}\r\n"
                    f"Content-Type: application/json\r\nContent-Length: {len(operation.body)}\r\n"
                    f"\r\n{operation.body}"
                ).encode()

    def answers(self, path: str = "/") -> int:
        """The status of its answer, 0 for none. Raises RuntimeError when it has ended."""
        if self._process.poll() is not None:
            self._log.seek(0)
            raise RuntimeError(self._log.read())
        try:
            return requests.get(
                f"http://127.0.0.1:{self.port}{path}", timeout=30
            ).status_code
        except requests.ConnectionError:
            return 0

    def processor_s(self) -> float:
        """Processor time that the worker has taken so far, its own and the kernel's (proc(5))."""
        (worker,) = (
            Path(f"/proc/{self.pid}/task/{self.pid}/children").read_text().split()
        )
        fields = Path(f"/proc/{worker}/stat").read_text().rpartition(")")[2].split()
        return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")

    def measure(self, operation: Operation, seconds: float) -> Round:
        before_s = self.processor_s()
        began_s = time.perf_counter()
        took_s = sorted(drive(self.port, self.asked(operation), operation, seconds))
        per_second = len(took_s) / (time.perf_counter() - began_s)
        processor_us = (self.processor_s() - before_s) / len(took_s) * 1e6
        return Round(per_second, 1000 * took_s[len(took_s) * 99 // 100], processor_us)

    def __enter__(self) -> "Server":
        until(self.answers, "the first answer")
        return self

    def __exit__(self, *_: object) -> None:
        self._process.terminate()
        self._process.wait(30)
        self._log.close()


def drive(
    port: int, asked: Iterator[bytes], operation: Operation, seconds: float
) -> Iterator[float]:
    """Keeps every connection busy for that long, in one epoll loop: each answer's seconds.

    It waits for one answer, however long that takes.
    """
    with ExitStack() as stack:
        selector = stack.enter_context(selectors.DefaultSelector())
        sent_s: dict[socket.socket, float] = {}
        for _ in range(operation.connections):
            line = stack.enter_context(socket.create_connection(("127.0.0.1", port)))
            line.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            selector.register(line, selectors.EVENT_READ)
            sent_s[line] = time.perf_counter()
            line.sendall(next(asked))
        came: dict[socket.socket, bytes] = dict.fromkeys(sent_s, b"")
        has_answered = False
        end_s = time.perf_counter() + seconds
        while not has_answered or time.perf_counter() < end_s:
            for ready, _ in selector.select(10):
                line = ready.fileobj
                came[line] += line.recv(262_144)
                if is_whole(came[line], operation.status):
                    has_answered = True
                    yield time.perf_counter() - sent_s[line]
                    came[line], sent_s[line] = b"", time.perf_counter()
                    line.sendall(next(asked))


def is_whole(answer: bytes, status: int) -> bool:
    """Raises RuntimeError for any answer but one of this status."""
    first_line = b"HTTP/1.1 %d " % status
    if not answer or not answer.startswith(first_line[: len(answer)]):
        raise RuntimeError(f"unexpected answer: {answer[:600]!r}")
    head, blank_line, body = answer.partition(b"\r\n\r\n")
    if not blank_line:
        return False
    return len(body) >= int(
        head.partition(b"Content-Length: ")[2].partition(b"\r\n")[0]
    )
