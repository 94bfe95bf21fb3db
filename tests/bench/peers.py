"""Get and create beside two public self-hosted services: `make bench-peers PEERS=FOLDER`.

FOLDER has checkouts of them, each with what it needs in a virtual environment of its own:

    git clone https://github.com/nickfarrow/SatSale FOLDER/SatSale
    git clone https://github.com/btpay-org/btpay FOLDER/btpay
    (cd FOLDER/NAME; python3 -m venv .venv; .venv/bin/pip install -r THEIR-REQUIREMENTS)

One that is not there is left out. All are on loopback with one process of eight threads, a price
and an explorer of the bench's own, and hold a hundred invoices. Rounds alternate; the medians of
the ratios count.
"""

import argparse
import http.client
import json
import socket
import sys
import tempfile
import threading
import time
from collections.abc import Callable
from contextlib import ExitStack
from http.server import BaseHTTPRequestHandler
from pathlib import Path
from statistics import median
from typing import Any

from fill import fill
from peer_shops import BtPay, Environ, Ours, SatSale
from server import Server, free_port
from serving import Reply, Serving, say

STORED, CLIENTS = 100, 4
ROUNDS, SECONDS = 5, 2.0
AIMS = {"get": 1.7, "create": 4.0}


class Upstream(Serving):
    """A price, and an explorer that knows no payment: mempool.space's answers to the peers."""

    def answer(self, request: BaseHTTPRequestHandler) -> Reply:
        nothing = {"funded_txo_sum": 0, "spent_txo_sum": 0}
        known = {"chain_stats": nothing, "mempool_stats": nothing}
        return say({"USD": 60000} if request.path == "/v1/prices" else known)


class Refused(RuntimeError):
    """An answer of 400 or more."""


class Asker:
    """One kept-alive connection; as little as will do, so that the client is not what is slow."""

    def __init__(self, port: int) -> None:
        self._socket = socket.create_connection(("127.0.0.1", port), 30)
        self._socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)

    def __call__(self, method: str, path: str, headers: Environ | None = None, body: Any = None):
        """The JSON answer. Raises Refused."""
        content = b"" if body is None else json.dumps(body).encode()
        named = (headers or {}) | {"Host": "bench", "Content-Length": str(len(content))}
        named |= {"Content-Type": "application/json"} if content else {}
        lines = [f"{method} {path} HTTP/1.1", *(f"{name}: {named[name]}" for name in named)]
        self._socket.sendall("\r\n".join([*lines, "", ""]).encode() + content)
        answer = http.client.HTTPResponse(self._socket)
        answer.begin()
        found = answer.read()
        if answer.status >= 400:
            raise Refused(f"{path}: {answer.status} {found[:300]!r}")
        return json.loads(found)


def start(shop: Any, stack: ExitStack) -> int:
    """Starts a service until the stack ends, and waits until it listens; its port."""
    port = free_port()
    environ = shop.environ | shop.bind(port)
    server = Server(port, shop.module, shop.folder, environ, shop.python)
    stack.enter_context(server).until_it_listens()
    return port


def per_second(port: int, deed: Callable[[Asker, int], None], seconds: float) -> tuple[float, int]:
    """How often some clients at once get it done, and how often they are refused."""
    done, refused = [0] * CLIENTS, [0] * CLIENTS
    until_s = time.perf_counter() + seconds

    def drive(client: int) -> None:
        ask = Asker(port)
        while time.perf_counter() < until_s:
            try:
                deed(ask, client + CLIENTS * done[client])
                done[client] += 1
            except Refused:
                refused[client] += 1

    threads = [threading.Thread(target=drive, args=[client]) for client in range(CLIENTS)]
    began_s = time.perf_counter()
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return sum(done) / (time.perf_counter() - began_s), sum(refused)


def shops(folder: Path, peers: Path, price: str) -> list[Any]:
    database_url = fill(folder / "ours.db", 1)
    found: list[Any] = [Ours(sys.executable, database_url, price)]
    for kind in (SatSale, BtPay):
        checkout = peers / kind.name
        if (checkout / ".venv/bin/python").exists():
            found.append(kind(checkout.absolute(), folder, price))
        else:
            print(f"{kind.name}: not in {peers}, or without its .venv")
    return found


def compare(ports: dict[Any, int]) -> None:
    ids = {
        shop: [shop.create(ask) for _ in range(STORED)]
        for shop, port in ports.items()
        for ask in [Asker(port)]
    }
    time.sleep(1.1)  # see SatSale
    deeds = {
        "get": lambda shop: lambda ask, n: shop.get(ask, ids[shop][n % STORED]),
        "create": lambda shop: lambda ask, _: shop.create(ask),
    }
    for name, deed_of in deeds.items():
        rates: dict[Any, list[float]] = {shop: [] for shop in ports}
        refusals = dict.fromkeys(ports, 0)
        for number in range(ROUNDS + 1):
            for shop, port in ports.items():
                rate, refused = per_second(port, deed_of(shop), SECONDS if number else 0.5)
                rates[shop] += [rate] if number else []
                refusals[shop] += refused
        ours = next(iter(rates))
        print(f"\n{name}")
        for shop, taken in rates.items():
            ratio = median(a / b for a, b in zip(rates[ours], taken, strict=True))
            verdict = "met" if ratio >= AIMS[name] else "MISSED"
            result = "" if shop is ours else f"{ratio:6.2f} times  aim {AIMS[name]}  {verdict}"
            refused_too = f", {refusals[shop]} refused" if refusals[shop] else ""
            print(f"  {f'{shop.name} {median(taken):.1f} a second{refused_too}':45}{result}")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("peers", type=Path, metavar="FOLDER")
    options = parser.parse_args()
    with ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="btcpay-bench-")))
        found = shops(folder, options.peers, stack.enter_context(Upstream()).root)
        compare({shop: start(shop, stack) for shop in found})


if __name__ == "__main__":
    main()
