"""Compares the service with bare Flask routes under gunicorn: `make bench`.

Rounds alternate between the servers, so that a noisy machine slows all of them; what counts are
the ratios within one round, and of those the median. Orders are compared with two kinds of routes:
one that only answers, and one that first makes a commit as durable as an order's.
"""

import argparse
import json
import os
import subprocess
import tempfile
from contextlib import ExitStack
from dataclasses import replace
from pathlib import Path

import requests

from tests.bench.aims import (
    BARE,
    BEFORE,
    BEFORE_SERVER,
    CREATE,
    LARGE,
    OF_ORDERS,
    OPERATIONS,
    ORDER,
    POSTGRESQL,
    ROUTES,
    SERVER,
    SMALL,
    SQLITE,
)
from tests.bench.comparison import Comparison
from tests.bench.fill import invoice_id, secret
from tests.bench.servers import Operation, Server
from tests.support import postgres
from tests.support.builders import TickerServer

ROOT = Path(__file__).parents[2]
# As a shop's own program would be served; connections are kept as long as the load's.
PLAIN = ("--threads", "8", "--keep-alive", "65", "--no-control-socket")
SERVICE = ("-c", "python:btcpay.web.gunicorn_conf", "wsgi:app")


def answered_bytes(server: Server, operation: Operation) -> int:
    key = {"Authorization": f"Bearer {secret(operation.scope, 0)}"}
    method, path = operation.line.format(id=invoice_id(0)).split()
    url = f"http://127.0.0.1:{server.port}{path}"
    return len(
        requests.request(method, url, headers=key, json=json.loads(ORDER)).content
    )


def requests_of(
    operation: Operation, size: int, servers: dict[str, Server]
) -> dict[str, Operation]:
    """What each server is asked, in the order of a round."""
    bare = Operation(BARE, f"GET /{size}", connections=operation.connections)
    requests_by_name: dict[str, Operation] = {}
    for name in servers:
        if name in OF_ORDERS and operation is not CREATE:
            continue
        requests_by_name[name] = operation
        if name in ROUTES:
            requests_by_name[name] = replace(bare, line=bare.line + ROUTES[name])
    return requests_by_name


class Bench:
    """The servers, which end with `stack`."""

    def __init__(self, stack: ExitStack, with_server: bool) -> None:
        folder = tempfile.TemporaryDirectory(prefix="blocktill-bench-")
        self.folder = Path(stack.enter_context(folder))
        self.price = f"{stack.enter_context(TickerServer()).url}#/usd"
        self.stack = stack
        self.servers: dict[str, Server] = {}
        self.server: postgres.Server | None = None
        if with_server:
            self.server = postgres.Server(durable=True)

    def new_url(self) -> str:
        """The URL of a new database of the PostgreSQL server."""
        assert self.server
        return self.server.create("template1")

    def add_service(
        self, name: str, on_server: str | None, root: Path, stored: int
    ) -> None:
        """Starts a checkout's service, and where there is PostgreSQL one more on that."""
        file = self.folder / f"{len(self.servers)}.db"
        urls = [self.new_url()] if self.server and on_server else []
        python = str(root / ".venv/bin/python")
        filling = [python, str(ROOT / "tests/bench/fill.py"), str(file), str(stored)]
        environ = os.environ | {"PYTHONPATH": str(root), "PYTHONSAFEPATH": "1"}
        subprocess.run(filling + urls, env=environ, check=True)
        self._serve(name, root, f"sqlite:///{file}", stored)
        for url in urls:
            self._serve(str(on_server), root, url, stored)

    def _serve(self, name: str, root: Path, url: str, stored: int) -> None:
        server = Server(
            SERVICE,
            root,
            root,
            BLOCKTILL_METRICS_BIND="",
            BLOCKTILL_DATABASE_URL=url,
            BLOCKTILL_PRICE_SOURCES=self.price,
        )
        server.stored = stored
        self.servers[name] = self.stack.enter_context(server)

    def add_bare(self, sizes: list[int]) -> None:
        environ = {
            "BARE_BYTES": " ".join(map(str, sizes)),
            "BARE_SQLITE": str(self.folder / "bare.db"),
        }
        if self.server:
            environ["BARE_POSTGRESQL"] = self.new_url()
        words = (*PLAIN, "bare:app")
        bare = Server(words, ROOT / "tests/bench", ROOT, **environ)
        self.stack.enter_context(bare)
        self.servers = {BARE: bare, SQLITE: bare} | self.servers
        if self.server:
            self.servers[POSTGRESQL] = bare

    @property
    def roots(self) -> tuple[int, ...]:
        """The pids of all processes that belong to it."""
        if self.server:
            return os.getpid(), self.server.pid
        return (os.getpid(),)


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
    with ExitStack() as stack:
        bench = Bench(stack, with_server=(postgres.PROGRAMS / "initdb").exists())
        bench.add_service(SMALL, SERVER, ROOT, 1_000)
        if not options.small:
            bench.add_service(LARGE, None, ROOT, 1_000_000)
        if options.beside:
            bench.add_service(BEFORE, BEFORE_SERVER, options.beside.resolve(), 1_000)
        small = bench.servers[SMALL]
        sizes = {each: answered_bytes(small, each) for each in OPERATIONS}
        bench.add_bare(list(sizes.values()))
        for operation, size in sizes.items():
            if operation.name.startswith(options.only):
                asked = requests_of(operation, size, bench.servers)
                comparison = Comparison(operation, bench.servers, asked, bench.roots)
                comparison.measure(options.rounds, options.seconds)
                comparison.print()


if __name__ == "__main__":
    main()
