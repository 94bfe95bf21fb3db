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
import json
import os
import re
import socket
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from statistics import median
from typing import Any

from fill import fill
from peer_shops import BtPay, Ours, SatSale, body_of
from server import free_port

STORED, CLIENTS = 100, 4
ROUNDS, SECONDS = 5, 2.0
START_S = 60
AIMS = {"get": 1.7, "create": 4.0}


class Upstream(BaseHTTPRequestHandler):
    """A price, and an explorer that knows no payment."""

    protocol_version = "HTTP/1.1"

    def do_GET(self) -> None:
        """The answer of mempool.space to the two questions that peers ask."""
        nothing = {"funded_txo_sum": 0, "spent_txo_sum": 0}
        known: dict[str, Any] = {"chain_stats": nothing, "mempool_stats": nothing}
        body = body_of({"USD": 60000} if self.path == "/v1/prices" else known)
        self.send_response(200)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_: Any) -> None:
        """Says nothing."""


@contextmanager
def upstream() -> Iterator[str]:
    """Serves it; its URL."""
    with ThreadingHTTPServer(("127.0.0.1", 0), Upstream) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield f"http://127.0.0.1:{server.server_port}"
        server.shutdown()


class Refused(RuntimeError):
    """An answer of 400 or more."""


class Asker:
    """One kept-alive connection; as little as will do, so that the client is not what is slow."""

    def __init__(self, port: int) -> None:
        self._socket = socket.create_connection(("127.0.0.1", port), 30)
        self._socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)

    def __call__(self, method: str, path: str, headers: Any = (), body: Any = None) -> Any:
        """The JSON answer. Raises Refused."""
        content = body_of(body)
        said = dict(headers) | ({} if body is None else {"Content-Type": "application/json"})
        lines = [f"{method} {path} HTTP/1.1", "Host: bench", f"Content-Length: {len(content)}"]
        lines += [f"{name}: {value}" for name, value in said.items()]
        self._socket.sendall("\r\n".join([*lines, "", ""]).encode() + content)
        answer = b""
        while b"\r\n\r\n" not in answer:
            answer += self._more()
        head, _, found = answer.partition(b"\r\n\r\n")
        length = int(re.search(rb"(?i)\ncontent-length: *(\d+)", head)[1])
        while len(found) < length:
            found += self._more()
        if head[9:10] in b"45":
            raise Refused(f"{path}: {head[:40]!r} {found[:300]!r}")
        return json.loads(found)

    def _more(self) -> bytes:
        data = self._socket.recv(65_536)
        if not data:
            raise ConnectionError("the server hung up")
        return data


@contextmanager
def running(shop: Any) -> Iterator[int]:
    """Starts a service and waits until it listens; its port."""
    port = free_port()
    with tempfile.TemporaryFile() as said:
        environ = os.environ | shop.environ | shop.bind(port)
        process = subprocess.Popen(
            shop.words, cwd=shop.folder, env=environ, stdout=said, stderr=said
        )
        try:
            until_s = time.monotonic() + START_S
            while socket.socket().connect_ex(("127.0.0.1", port)):
                if process.poll() is not None or time.monotonic() > until_s:
                    said.seek(0)
                    raise RuntimeError(f"{shop.name}: {said.read().decode()[-2000:]}")
                time.sleep(0.05)
            yield port
        finally:
            process.terminate()
            process.wait(30)


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
    """This one, and those that are there."""
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
    """Prints how often each is asked in a second, and the ratios."""
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
            told = "" if shop is ours else f"{ratio:6.2f} times  aim {AIMS[name]}  {verdict}"
            refused_too = f", {refusals[shop]} refused" if refusals[shop] else ""
            print(f"  {f'{shop.name} {median(taken):.1f} a second{refused_too}':45}{told}")


def main() -> None:
    """Starts all, compares, and ends them."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("peers", type=Path, metavar="FOLDER")
    options = parser.parse_args()
    with ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="btcpay-bench-")))
        found = shops(folder, options.peers, stack.enter_context(upstream()))
        compare({shop: stack.enter_context(running(shop)) for shop in found})


if __name__ == "__main__":
    main()
