"""Alternating rounds of one load on several servers; what counts are ratios within a round."""

from collections.abc import Callable, Mapping
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass, replace
from statistics import median

from load import Load, drive
from server import Server

WARM_UP_S = 0.5


@dataclass(frozen=True)
class Round:
    """What one server did in one round; processor time in microseconds a request."""

    per_second: float
    p99_ms: float
    processor_us: float


class Client:
    """The process that asks, and its way through the API keys.

    `busiest`: the largest share of a processor that it took.
    """

    def __init__(self, pool: ProcessPoolExecutor) -> None:
        self._pool = pool
        self._keys_used = 0
        self.busiest = 0.0

    def measure(self, server: Server, load: Load, seconds: float) -> Round:
        """One load on one server, with keys that nobody used in the last minute."""
        load = replace(load, first_key=self._keys_used)
        before_s = server.processor_s()
        try:
            measured = self._pool.submit(drive, load, seconds).result()
        except RuntimeError:
            print(server.last_words())
            raise
        processor_us = (server.processor_s() - before_s) / measured.answers * 1e6
        self._keys_used += measured.answers // load.per_key + load.connections
        self.busiest = max(self.busiest, measured.busy)
        return Round(measured.per_second, measured.p99_ms, processor_us)


class Comparison:
    """The rounds of each server; the first, which warms up, does not count."""

    def __init__(self, rounds: Mapping[str, list[Round]]) -> None:
        self._rounds = rounds

    def median(self, name: str, what: str) -> float:
        return median(getattr(took, what) for took in self._rounds[name][1:])

    def ratio(self, what: str, above: str, below: str) -> float:
        pairs = zip(self._rounds[above][1:], self._rounds[below][1:], strict=True)
        return median(getattr(a, what) / getattr(b, what) for a, b in pairs)


def compare(
    client: Client,
    servers: Mapping[str, Server],
    load_for: Callable[[str, Server], Load],
    rounds: int,
    seconds: float,
) -> Comparison:
    taken: dict[str, list[Round]] = {name: [] for name in servers}
    for length_s in [WARM_UP_S] + [seconds] * rounds:
        for name, server in servers.items():
            taken[name].append(client.measure(server, load_for(name, server), length_s))
    return Comparison(taken)
