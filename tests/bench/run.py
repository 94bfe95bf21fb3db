"""Compares the service with a bare Flask route under the same gunicorn: `make bench`.

Rounds alternate between the bare route and the service, so that a noisy machine slows both; what
counts are the ratios within one round, and of those the median.
"""

import argparse
import json
import random
import tempfile
from concurrent.futures import ProcessPoolExecutor
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from statistics import median

from addresses import addresses_ms, table_ms
from fill import KEYS, fill, invoice_id, secret
from load import Load, Measured, drive
from pages import pages_ms
from server import Server, Servers

API = "/api/v1/invoices"
ORDER = json.dumps({"amount_usd": 25, "description": "Tea", "expires_in_hours": 1})
SMALL, LARGE = 1_000, 1_000_000
SEEN_IDS = 2_000  # of the stored ones, drawn anew for every round
STARTS = 5
WARM_UP_S = 0.5


@dataclass(frozen=True)
class Operation:
    """What is measured; `target` is its least share of the bare route's throughput.

    `per_key` stays below what a key may ask in a minute: 120 reads, 30 writes.
    """

    name: str
    line: str
    target: float
    scope: str = "read"
    per_key: int = 100
    status: int = 200
    body: str | None = None
    p99_target: float | None = None

    def lines(self, stored: int) -> list[str]:
        """Method and path of the requests."""
        ids = random.choices(range(stored), k=SEEN_IDS)
        return [self.line.format(id=invoice_id(number)) for number in ids]


OPERATIONS = (
    Operation("get-invoice", f"GET {API}/{{id}}", 0.70, p99_target=1.5),
    Operation("list-invoices, limit 50", f"GET {API}?limit=50", 0.50),
    Operation("create-invoice", f"POST {API}", 0.28, "write", 25, 201, ORDER),
)


class Client:
    """The process that asks, and its way through the API keys."""

    def __init__(self, pool: ProcessPoolExecutor) -> None:
        self._pool = pool
        self._keys_used = 0
        self.busiest = 0.0

    def measure(self, load: Load, seconds: float) -> Measured:
        """One load."""
        measured = self._pool.submit(drive, load, seconds).result()
        self.busiest = max(self.busiest, measured.busy)
        return measured

    def ask(self, operation: Operation, server: Server, stored: int, seconds: float) -> Measured:
        """An operation's load, with keys that nobody used in the last minute."""
        keys = [secret(operation.scope, (self._keys_used + n) % KEYS) for n in range(KEYS)]
        load = Load(
            server.port,
            operation.lines(stored),
            operation.status,
            keys,
            operation.per_key,
            operation.body,
        )
        try:
            measured = self.measure(load, seconds)
        except RuntimeError:
            print(server.last_words())
            raise
        self._keys_used += measured.answers // operation.per_key + 1
        return measured


def show(name: str, value: float, target: float | None = None, at_most: bool = False) -> None:
    """One line of the report."""
    verdict = ""
    if target is not None:
        met = value <= target if at_most else value >= target
        verdict = f"target {'<=' if at_most else '>='} {target:.2f}  {'met' if met else 'MISSED'}"
    print(f"  {name:<48}{value:6.2f}  {verdict}", flush=True)


def compare(
    client: Client,
    operation: Operation,
    bare: Server,
    services: dict[int, Server],
    rounds: int,
    seconds: float,
) -> None:
    """Throughput and p99 of one operation in every service, beside the bare route's."""
    constant = Load(bare.port, ["GET /"])
    taken: dict[int, list[Measured]] = {stored: [] for stored in (0, *services)}
    for length_s in [WARM_UP_S] + [seconds] * rounds:
        taken[0].append(client.measure(constant, length_s))
        for stored, server in services.items():
            taken[stored].append(client.ask(operation, server, stored, length_s))

    def ratio(what: str, above: int, below: int) -> float:
        pairs = list(zip(taken[above], taken[below], strict=True))[1:]
        return median(getattr(a, what) / getattr(b, what) for a, b in pairs)

    bare_rate = median(measured.per_second for measured in taken[0][1:])
    print(f"\n{operation.name} (the bare route answered {bare_rate:.0f} a second)")
    for stored in services:
        show(
            f"throughput against bare, {stored:,} stored",
            ratio("per_second", stored, 0),
            operation.target,
        )
    if LARGE in services:
        show(f"{LARGE:,} stored against {SMALL:,}", ratio("per_second", LARGE, SMALL), 0.85)
    for stored in services:
        show(
            f"p99 against bare, {stored:,} stored",
            ratio("p99_ms", stored, 0),
            operation.p99_target,
            at_most=True,
        )


def compare_starts(servers: Servers, database_url: str) -> None:
    """How much longer the service takes from its start to its first answer."""
    ratios = []
    for _ in range(STARTS):
        with servers.bare(1000) as bare:
            bare_s = bare.first_answer_s("GET /")
        with servers.service(database_url) as service:
            ratios.append(service.first_answer_s(f"GET {API}", secret("read", 0)) / bare_s)
    print("\nstart and memory")
    show("first answer after start against bare", median(ratios), 1.5, at_most=True)


def main() -> None:
    """Fills the databases, runs the rounds and prints the ratios."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--seconds", type=float, default=3, help="of each measurement")
    parser.add_argument("--small", action="store_true", help="without the million invoices")
    options = parser.parse_args()
    with ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="btcpay-bench-")))
        client = Client(stack.enter_context(ProcessPoolExecutor(1)))
        servers = Servers(folder, stack)
        urls = {
            stored: fill(folder / f"{stored}.db", stored)
            for stored in ([SMALL] if options.small else [SMALL, LARGE])
        }
        services = {stored: servers.kept(servers.service(url)) for stored, url in urls.items()}
        for operation in OPERATIONS:
            line, key = operation.lines(SMALL)[0], secret(operation.scope, KEYS - 1)
            answer = services[SMALL].ask(line, key, operation.body)
            if not answer.startswith(b"HTTP/1.1 %d " % operation.status):
                raise SystemExit(f"{answer.decode()}\n{services[SMALL].last_words()}")
            size = len(answer.partition(b"\r\n\r\n")[2])
            bare = servers.kept(servers.bare(size))
            compare(client, operation, bare, services, options.rounds, options.seconds)
        compare_starts(servers, urls[SMALL])
        print("\na new address, ms of processor time")
        show("once in a process: the curve's table", table_ms(), 30, at_most=True)
        for name, took_ms in addresses_ms().items():
            show(name, took_ms, 0.3, at_most=True)
        print("\ninvoice page, ms of processor time beside a bare template")
        for name, took_ms in pages_ms(urls[SMALL]).items():
            show(name, took_ms, 3, at_most=True)
        for stored, service in services.items():
            ratio = service.memory_mib() / bare.memory_mib()
            show(f"worker's memory (PSS) against bare, {stored:,} stored", ratio, 1.6, at_most=True)
        print(f"\nThe client was busy for at most {client.busiest:.0%} of one processor.")


if __name__ == "__main__":
    main()
