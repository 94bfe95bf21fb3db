"""Compares the service with a bare Flask route under gunicorn: `make bench`.

Rounds alternate between the servers, so that a noisy machine slows all of them; what counts are
the ratios within one round, and of those the median.
"""

import argparse
import itertools
import json
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
from statistics import median
from typing import Any

import requests

from tests.bench.fill import KEYS, invoice_id, secret
from tests.support.builders import TickerServer, clean_environ, until
from tests.support.ports import free_port

ROOT = Path(__file__).parents[2]
API = "/api/v1/invoices"
ORDER = json.dumps({"amount_usd": 25, "description": "Tea", "expires_in_hours": 1})
WARM_UP_S = 0.5
# As a shop's own program would be served; connections are kept as long as the load's.
PLAIN = ("--threads", "8", "--keep-alive", "65", "--no-control-socket")
BARE = "bare"
SERVICE = ("-c", "python:btcpay.web.gunicorn_conf", "wsgi:app")
SMALL = "1,000 stored"
LARGE = "1,000,000 stored"
BEFORE = "before, 1,000"


@dataclass(frozen=True)
class Operation:
    """A measured operation with its aims: shares of the bare route's rate and p99.

    `per_key` stays below what a key may ask in a minute: 120 reads, 30 writes.
    """

    name: str
    line: str
    rate_aim: float
    p99_aim: float | None = None
    connections: int = 4
    scope: str = "read"
    per_key: int = 100
    status: int = 200
    body: str = ""


GET = f"GET {API}/{{id}}"
LIST = f"GET {API}?limit=50"
CREATE = f"POST {API}"
OPERATIONS = (
    Operation("get-invoice", GET, 0.80, 3),
    Operation("get-invoice, 16 connections", GET, 0.80, connections=16),
    Operation("list-invoices, limit 50", LIST, 0.68),
    Operation(
        "create-invoice",
        CREATE,
        0.22,
        scope="write",
        per_key=25,
        status=201,
        body=ORDER,
    ),
)


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
        pid = self._process.pid
        (worker,) = Path(f"/proc/{pid}/task/{pid}/children").read_text().split()
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
    """Keeps every connection busy for that long, in one epoll loop: each answer's seconds."""
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
        end_s = time.perf_counter() + seconds
        while time.perf_counter() < end_s:
            for ready, _ in selector.select(10):
                line = ready.fileobj
                came[line] += line.recv(262_144)
                if is_whole(came[line], operation.status):
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


def show(
    name: str, value: float, aim: float | None = None, at_most: bool = False
) -> None:
    verdict = ""
    if aim is not None:
        met = value <= aim if at_most else value >= aim
        verdict = (
            f"aim {'<=' if at_most else '>='} {aim:.2f}  {'met' if met else 'MISSED'}"
        )
    print(f"  {name:<40}{value:8.2f}  {verdict}", flush=True)


def answered_bytes(server: Server, operation: Operation) -> int:
    key = {"Authorization": f"Bearer {secret(operation.scope, 0)}"}
    method, path = operation.line.format(id=invoice_id(0)).split()
    url = f"http://127.0.0.1:{server.port}{path}"
    return len(
        requests.request(method, url, headers=key, json=json.loads(ORDER)).content
    )


def compare(
    operation: Operation, of_bare: Operation, servers: dict[str, Server], options: Any
) -> None:
    """Prints what the rounds gave; the first one warms up and does not count."""
    taken: dict[str, list[Round]] = {}
    for length_s in [WARM_UP_S] + [options.seconds] * options.rounds:
        for name, server in servers.items():
            wanted = of_bare if name == BARE else operation
            taken.setdefault(name, []).append(server.measure(wanted, length_s))

    def ratio(what: str, above: str, below: str = BARE) -> float:
        pairs = zip(taken[above][1:], taken[below][1:], strict=True)
        return median(getattr(a, what) / getattr(b, what) for a, b in pairs)

    print(f"\n{operation.name}")
    for name, all_rounds in taken.items():
        rate, p99_ms, us = (
            median(getattr(one, what) for one in all_rounds[1:])
            for what in ("per_second", "p99_ms", "processor_us")
        )
        print(
            f"  {name:<20}{rate:6.0f} a second, p99 {p99_ms:6.2f} ms, processor {us:5.0f} us"
        )
    for name in list(taken)[1:]:
        show(
            f"{name}: rate against bare", ratio("per_second", name), operation.rate_aim
        )
        show(
            f"{name}: p99 against bare",
            ratio("p99_ms", name),
            operation.p99_aim,
            at_most=True,
        )
    if LARGE in taken:
        show("a million against a thousand", ratio("per_second", LARGE, SMALL), 0.80)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--seconds", type=float, default=2, help="of each measurement")
    parser.add_argument(
        "--small", action="store_true", help="without the million invoices"
    )
    parser.add_argument("--only", default="", help="operations whose name begins so")
    parser.add_argument(
        "--beside", type=Path, help="another checkout with a .venv of its own"
    )
    options = parser.parse_args()
    wanted = {SMALL: (ROOT, 1_000)} | (
        {} if options.small else {LARGE: (ROOT, 1_000_000)}
    )
    if options.beside:
        wanted[BEFORE] = options.beside.resolve(), 1_000
    with ExitStack() as stack:
        folder = Path(
            stack.enter_context(tempfile.TemporaryDirectory(prefix="blocktill-bench-"))
        )
        price = f"{stack.enter_context(TickerServer()).url}#/usd"
        services = {}
        for name, (root, stored) in wanted.items():
            file = folder / f"{len(services)}.db"
            filling = [
                root / ".venv/bin/python",
                ROOT / "tests/bench/fill.py",
                file,
                str(stored),
            ]
            subprocess.run(
                filling,
                env=os.environ | {"PYTHONPATH": str(root), "PYTHONSAFEPATH": "1"},
                check=True,
            )
            environ = {
                "BLOCKTILL_DATABASE_URL": f"sqlite:///{file}",
                "BLOCKTILL_PRICE_SOURCES": price,
            }
            server = Server(SERVICE, root, root, BLOCKTILL_METRICS_BIND="", **environ)
            server.stored = stored
            services[name] = stack.enter_context(server)
        sizes = {each: answered_bytes(services[SMALL], each) for each in OPERATIONS}
        environ = {"BARE_BYTES": " ".join(map(str, sizes.values()))}
        bare = Server((*PLAIN, "bare:app"), ROOT / "tests/bench", ROOT, **environ)
        servers = {BARE: stack.enter_context(bare), **services}
        for operation, size in sizes.items():
            if operation.name.startswith(options.only):
                of_bare = Operation(
                    BARE, f"GET /{size}", 1, connections=operation.connections
                )
                compare(operation, of_bare, servers, options)


if __name__ == "__main__":
    main()
