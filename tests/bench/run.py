"""Compares the service with a bare Flask route under gunicorn: `make bench`.

Rounds alternate between the servers, so that a noisy machine slows all of them; what counts are
the ratios within one round, and of those the median.
"""

import argparse
import json
import os
import random
import subprocess
import tempfile
from concurrent.futures import ProcessPoolExecutor
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from statistics import median

from compare import Client, Comparison, compare
from fill import KEYS, fill, invoice_id, secret
from load import Load
from server import ROOT, WITHOUT_EXTRAS, Server, Servers, processor_ms, python_of

API = "/api/v1/invoices"
ORDER = json.dumps({"amount_usd": 25, "description": "Tea", "expires_in_hours": 1})
SEEN_IDS = 2_000  # of the stored ones, drawn anew for every round
TRIES = 5
# The bare route as a shop's own gunicorn would serve it, and under the service's configuration.
PLAIN, BARE, SMALL, LARGE = "plain gunicorn", "bare route", "1,000 stored", "1,000,000 stored"
BEFORE = "before, 1,000"  # another checkout, beside this one
STORED = {SMALL: 1_000, LARGE: 1_000_000, BEFORE: 1_000}


@dataclass(frozen=True)
class Operation:
    """What is measured, and its aims: shares of the rate and p99 of a plain gunicorn's bare route.

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
    body: str | None = None

    def load(self, server: Server, stored: int) -> Load:
        ids = random.choices(range(stored), k=SEEN_IDS)
        return Load(
            server.port,
            [self.line.format(id=invoice_id(number)) for number in ids],
            self.status,
            [secret(self.scope, number) for number in range(KEYS)],
            self.per_key,
            self.body,
            self.connections,
        )

    def answer_bytes(self, server: Server) -> int:
        answer = server.ask(self.line.format(id=invoice_id(0)), secret(self.scope, 0), self.body)
        if not answer.startswith(b"HTTP/1.1 %d " % self.status):
            raise SystemExit(f"{answer.decode()}\n{server.last_words()}")
        return len(answer.partition(b"\r\n\r\n")[2])


GET, LIST = f"GET {API}/{{id}}", f"GET {API}?limit=50"
OPERATIONS = (
    Operation("get-invoice", GET, 1.00, 2.5),
    Operation("get-invoice, 16 connections", GET, 0.80, connections=16),
    Operation("list-invoices, limit 50", LIST, 0.75),
    Operation(
        "create-invoice", f"POST {API}", 0.25, scope="write", per_key=25, status=201, body=ORDER
    ),
)


def show(name: str, value: float, aim: float | None = None, at_most: bool = False) -> None:
    verdict = ""
    if aim is not None:
        met = value <= aim if at_most else value >= aim
        verdict = f"aim {'<=' if at_most else '>='} {aim:.2f}  {'met' if met else 'MISSED'}"
    print(f"  {name:<52}{value:8.2f}  {verdict}", flush=True)


def report(operation: Operation, took: Comparison, services: list[str]) -> None:
    print(f"\n{operation.name}")
    for name in (PLAIN, BARE, *services):
        rate, p99_ms, us = (
            took.median(name, what) for what in ("per_second", "p99_ms", "processor_us")
        )
        print(f"  {name:<20}{rate:6.0f} a second, p99 {p99_ms:6.2f} ms, processor {us:5.0f} us")
    for name in services:
        show(f"{name}: rate against bare", took.ratio("per_second", name, BARE))
        show(f"{name}: p99 against bare", took.ratio("p99_ms", name, BARE))
        rate = took.ratio("per_second", name, PLAIN)
        show(f"{name}: rate against plain gunicorn", rate, operation.rate_aim)
        p99 = took.ratio("p99_ms", name, PLAIN)
        show(f"{name}: p99 against plain gunicorn", p99, operation.p99_aim, at_most=True)
    if LARGE in services:
        show("a million against a thousand", took.ratio("per_second", LARGE, SMALL), 0.80)


def fill_for(root: Path, path: Path, invoices: int) -> str:
    """A database as that checkout's program has it."""
    if root == ROOT:
        return fill(path, invoices)
    filling = (
        f"from fill import fill; from pathlib import Path; fill(Path({str(path)!r}), {invoices})"
    )
    environ = os.environ | {"PYTHONPATH": str(root / "tests/bench")}
    subprocess.run([python_of(root), "-c", filling], cwd=root, env=environ, check=True)
    return f"sqlite:///{path}"


def measure_starts(servers: Servers, database_url: str) -> None:
    """How much longer the service takes from its start to its first answer."""
    ratios = []
    for _ in range(TRIES):
        with servers.bare([1000]) as bare:
            bare_s = bare.first_answer_s("GET /1000")
        with servers.service(database_url) as service:
            ratios.append(service.first_answer_s(f"GET {API}", secret("read", 0)) / bare_s)
    print("\nstart, memory, check")
    show("first answer after start against bare", median(ratios), 1.9, at_most=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--seconds", type=float, default=2, help="of each measurement")
    parser.add_argument("--small", action="store_true", help="without the million invoices")
    parser.add_argument("--only", default="", help="operations whose name begins so")
    parser.add_argument("--beside", type=Path, help="another checkout with a .venv of its own")
    options = parser.parse_args()
    names = [SMALL] if options.small else [SMALL, LARGE]
    roots = dict.fromkeys(names, ROOT)
    if options.beside:
        roots[BEFORE] = options.beside.resolve()
    with ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="btcpay-bench-")))
        client = Client(stack.enter_context(ProcessPoolExecutor(1)))
        servers = Servers(folder, stack)
        urls = {
            name: fill_for(root, folder / f"{len(name)}.db", STORED[name])
            for name, root in roots.items()
        }
        services = {n: servers.kept(servers.service(urls[n], roots[n])) for n in roots}
        sizes = {each: each.answer_bytes(services[SMALL]) for each in OPERATIONS}
        bare = servers.kept(servers.bare(sorted(set(sizes.values()))))
        plain = servers.kept(servers.plain(sorted(set(sizes.values()))))
        of_name = {PLAIN: plain, BARE: bare, **services}

        for operation in OPERATIONS:
            if not operation.name.startswith(options.only):
                continue

            def load_for(name: str, server: Server, operation: Operation = operation) -> Load:
                if name in STORED:
                    return operation.load(server, STORED[name])
                line = f"GET /{sizes[operation]}"
                return Load(server.port, [line], connections=operation.connections)

            took = compare(client, of_name, load_for, options.rounds, options.seconds)
            report(operation, took, list(services))
        if options.only:
            return
        measure_starts(servers, urls[SMALL])
        for name in services:
            ratio = services[name].memory_mib() / bare.memory_mib()
            aim = 2.0 if name == SMALL else 2.2
            show(f"worker's memory (PSS) against bare, {name}", ratio, aim, at_most=True)
        empty = WITHOUT_EXTRAS | {"BTCPAY_DATABASE_URL": fill(folder / "0.db", 0)}
        idle_ms = median(processor_ms("check", empty) for _ in range(TRIES))
        show("an idle check, ms of processor time", idle_ms, 150, at_most=True)
        print(f"\nThe client was busy for at most {client.busiest:.0%} of one processor.")


if __name__ == "__main__":
    main()
