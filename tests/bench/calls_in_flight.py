"""How near a check comes to the most that its calls in flight allow."""

import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path

import requests
from builders import Clock, TickerServer, open_shop
from fake_esplora import OWN_EXPLORER, Till

from btcpay import http_client
from btcpay.explorers.pool import Explorers
from btcpay.networks import NETWORKS
from storage.queries import meta

LATENCY_MS, IN_FLIGHT = 50, 16
TIP_HEIGHT = 1000  # as slow_explorer.py answers


@dataclass(frozen=True)
class Sweep:
    """`efficiency`: calls per second against calls in flight divided by latency."""

    efficiency: float
    connections: int
    in_flight: int


@contextmanager
def slow_explorer(latency_ms: int) -> Iterator[str]:
    """The root of an explorer that far away."""
    words = [sys.executable, str(Path(__file__).with_name("slow_explorer.py")), str(latency_ms)]
    with subprocess.Popen(words, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout
        try:
            yield f"http://127.0.0.1:{process.stdout.readline().strip()}"
        finally:
            process.terminate()


def sweep(folder: Path, ticker: TickerServer, addresses: int) -> Sweep:
    """One check over so many open invoices."""
    with slow_explorer(LATENCY_MS) as root, ExitStack() as stack:
        environ = OWN_EXPLORER | {"BTCPAY_EXPLORERS": root}
        shop = stack.enter_context(open_shop(folder, ticker.url, Clock(), **environ))
        till = Till(shop, None, shop.clock)
        for _ in range(addresses):
            shop.invoice()
        # So high a tip was proven before: what is measured here is the looks.
        meta.put(shop.service.db, meta.Key.HIGH_HEIGHT, str(TIP_HEIGHT))
        explorers = Explorers(NETWORKS["regtest"], [root], http_client.new_session(IN_FLIGHT))
        checker = till.checker(explorers=explorers, in_flight=IN_FLIGHT)
        began = time.perf_counter()
        run = checker.run()
        took_s = time.perf_counter() - began
        assert run.scanned == addresses, run
        stats = requests.get(f"{root}/stats", timeout=5).json()
    best_per_s = IN_FLIGHT / (LATENCY_MS / 1000)
    return Sweep(run.calls / took_s / best_per_s, stats["connections"], stats["in_flight"])


def main() -> None:
    """Prints the figures of docs/budget.md."""
    with ExitStack() as stack:
        ticker = stack.enter_context(TickerServer())
        for round_number in range(3):
            folder = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="btcpay-bench-")))
            print(f"round {round_number + 1}: {sweep(folder, ticker, 1600)}")


if __name__ == "__main__":
    main()
