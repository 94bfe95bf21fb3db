"""Rounds that alternate between servers, and the ratios within a round."""

from statistics import median

from tests.bench.aims import AIMS, BEFORE, BEFORE_SERVER, SERVER, SMALL, Aim
from tests.bench.processors import Foreign
from tests.bench.servers import Operation, Round, Server

WARM_UP_S = 0.5
# Others' share of the machine above which a round is dropped, and how often one is tried again.
MOST_FOREIGN = 0.15
MOST_TRIES = 3


class Comparison:
    """The rounds of one operation; `requests` has what each server is asked."""

    def __init__(
        self,
        operation: Operation,
        servers: dict[str, Server],
        requests: dict[str, Operation],
        roots: tuple[int, ...],
    ) -> None:
        self.operation = operation
        self.servers = servers
        self.requests = requests
        self.roots = roots
        self.rounds: list[dict[str, Round]] = []
        self.foreign: list[float] = []

    def measure(self, rounds: int, seconds: float) -> None:
        """Fills `rounds`; all of them count if the machine is never quiet."""
        self._round(WARM_UP_S)
        dropped: list[dict[str, Round]] = []
        for _ in range(rounds * MOST_TRIES):
            foreign = Foreign(*self.roots)
            one_round = self._round(seconds)
            self.foreign.append(foreign.share())
            if self.foreign[-1] <= MOST_FOREIGN:
                self.rounds.append(one_round)
            else:
                dropped.append(one_round)
            if len(self.rounds) == rounds:
                break
        self.is_quiet = bool(self.rounds)
        self.rounds = self.rounds or dropped

    def _round(self, seconds: float) -> dict[str, Round]:
        return {
            name: self.servers[name].measure(request, seconds)
            for name, request in self.requests.items()
        }

    def ratio(self, aim: Aim) -> float:
        return median(
            getattr(one_round[aim.of], aim.what)
            / getattr(one_round[aim.against], aim.what)
            for one_round in self.rounds
        )

    def print(self) -> None:
        print(f"\n{self.operation.name}")
        shares = ", ".join(f"{share:.0%}" for share in self.foreign)
        print(f"  others' processor time in each round: {shares}")
        if not self.is_quiet:
            print(f"  NO ROUND BELOW {MOST_FOREIGN:.0%}: nothing here can be relied on")
        for name in self.requests:
            per_second, p99_ms, processor_us = (
                median(getattr(one_round[name], what) for one_round in self.rounds)
                for what in ("per_second", "p99_ms", "processor_us")
            )
            print(
                f"  {name:<24}{per_second:6.0f} a second, p99 {p99_ms:6.2f} ms,"
                f" processor {processor_us:5.0f} us"
            )
        for aim in AIMS:
            is_measured = aim.of in self.requests and aim.against in self.requests
            if aim.operation == self.operation.name and is_measured:
                show(aim, self.ratio(aim))
        for name, usual in ((BEFORE, SMALL), (BEFORE_SERVER, SERVER)):
            if name in self.requests and usual in self.requests:
                beside = self.ratio(Aim("", usual, name, 0))
                print(f"  {usual + ' against ' + name:<58}{beside:8.2f}")


def show(aim: Aim, value: float) -> None:
    kind = "rate"
    bound = ">="
    is_met = value >= aim.share
    if aim.is_most:
        kind = "p99"
        bound = "<="
        is_met = value <= aim.share
    verdict = "met" if is_met else "MISSED"
    name = f"{aim.of}: {kind} against {aim.against}"
    print(f"  {name:<58}{value:8.2f}  aim {bound} {aim.share:.2f}  {verdict}")
