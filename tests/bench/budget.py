"""What a check asks of an explorer in an hour, and how soon it sees and settles what is paid.

Real checks every minute, on a real database, against a real chain over real HTTP; only the time is
simulated. A block comes every ten minutes.
"""

import sys
import tempfile
from contextlib import ExitStack
from dataclasses import dataclass, field
from itertools import accumulate
from pathlib import Path
from typing import Any

from builders import Clock, TickerServer
from fake_esplora import Till, open_till
from hours import SLOW_PATIENCES_S, Hours
from hours import simulate as simulate_hours

from btcpay.invoices.create import Order, Price, new_invoice
from btcpay.values.ids import new_id

CALLS_PER_HOUR = 600
MINUTES_OF_A_BLOCK = 10


@dataclass(frozen=True)
class Case:
    """`open`: invoices that nobody looks at; `unseen`: how many are paid in every block."""

    open: int
    unseen: int = 20
    minutes: int = 125


@dataclass
class Outcome:
    """Calls in the worst hour; minutes from a block until what it pays is paid."""

    calls: int = 0
    incomplete_runs: int = 0
    blocks_to_paid: list[int] = field(default_factory=list)

    def text(self) -> str:
        return (
            f"calls in the worst hour {self.calls:5}  incomplete runs {self.incomplete_runs:3}"
            f"  paid after its block: at most"
            f" {max(self.blocks_to_paid, default=0)} min ({len(self.blocks_to_paid)})"
        )


class Simulation:
    """A shop, its chain, and all who pay."""

    def __init__(self, till: Till, case: Case) -> None:
        self.till, self.case = till, case
        self.open = self._make(case.open)
        self.mined: dict[str, int] = {}
        self.outcome = Outcome()

    def _make(self, count: int) -> list[Any]:
        service, shop = self.till.shop.service, self.till.shop
        price = Price(service.prices.usd.current())
        made = []
        with service.db.write():
            for _ in range(count):
                order = Order(shop.merchant_id, price.usd / 1000, None, {}, id=new_id("inv"))
                row = new_invoice(
                    service.db, service.settings.network, self.till.clock(), order, price
                )
                made.append(row)
        return made

    def run(self) -> Outcome:
        calls = []
        for minute in range(self.case.minutes):
            self.till.clock.move(minutes=1)
            if minute % MINUTES_OF_A_BLOCK == MINUTES_OF_A_BLOCK - 1:
                self._mine(minute)
            report = self.till.check()
            calls.append(report.calls)
            self.outcome.incomplete_runs += not report.complete
            self._note(minute, report.changed)
        sums = [0, *accumulate(calls[5:])]  # without the first minutes, which find the chain
        ends = range(60, len(sums))
        self.outcome.calls = max((sums[end] - sums[end - 60] for end in ends), default=sums[-1])
        return self.outcome

    def _mine(self, minute: int) -> None:
        for _ in range(min(self.case.unseen, len(self.open))):
            row = self.open.pop()
            self.till.pay(row)
            self.mined[row["id"]] = minute
        self.till.mine()

    def _note(self, minute: int, changed: dict[str, str]) -> None:
        self.outcome.blocks_to_paid += [
            minute - at for id, at in self.mined.items() if changed.get(id) == "paid"
        ]


CASES = [Case(count) for count in (500, 5_000, 50_000)]
SLOW = SLOW_PATIENCES_S
HOURS = {
    "10 payers": Hours(),
    "10 slow payers": Hours(patiences_s=SLOW),
    "10 payers, a check that does not stay": Hours(stays=False),
    "20 payers": Hours(payers=20),
    "20 slow payers": Hours(payers=20, patiences_s=SLOW),
    "50 payers": Hours(payers=50),
    "300 payers": Hours(payers=300),
    "600 payers": Hours(payers=600),
    "10 payers beside 50 unpaid orders": Hours(unpaid=50),
    "beside 300": Hours(unpaid=300),
    "beside 600": Hours(unpaid=600),
    "beside 300 opened ones": Hours(opened=300),
    "beside 600 opened ones": Hours(opened=600),
    "beside 20 pages that are always open": Hours(bots=20),
    "10 slow payers, 200 pages open from the second hour on": Hours(
        bots=200, bots_from_s=3600, patiences_s=SLOW
    ),
    "10 slow payers, 200 pages open from the first minute on": Hours(bots=200, patiences_s=SLOW),
    "10 payers after a week without a check": Hours(away=1_008),
    "10 payers after a month": Hours(away=4_320, seconds=14 * 3600),
}


def simulate(case: Case) -> Outcome:
    """In a shop in a folder of its own, where whoever pays has coins."""
    with ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="btcpay-bench-")))
        ticker, clock = stack.enter_context(TickerServer()), Clock()
        environ = {"BTCPAY_EXPLORER_CALLS_PER_HOUR": str(CALLS_PER_HOUR)}
        till = stack.enter_context(open_till(folder, ticker, clock, **environ))
        till.mine(130)
        clock.move(hours=3)
        return Simulation(till, case).run()


def main() -> None:
    small = "--small" in sys.argv
    for name, hours in HOURS.items():
        print(f"| {name} | {simulate_hours(hours).row()}", flush=True)
    for case in CASES:
        if not small or case.open <= 500:
            print(f"{case}\n  {simulate(case).text()}", flush=True)


if __name__ == "__main__":
    main()
