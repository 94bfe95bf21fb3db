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

from btcpay.invoices.create import Order, Price, new_invoice
from btcpay.values.ids import new_id
from btcpay.values.times import to_ms
from storage.queries import invoices

CALLS_PER_HOUR = 600
MINUTES_OF_A_BLOCK, MINUTES_BETWEEN_PAYERS = 10, 6
# After so many minutes a payer pays, one after the other; every third closes the page just then.
PATIENCES = (2, 3, 5, 8, 13, 21, 34, 55)
LAST_PAYS = 90  # minutes before the end nobody comes any more


@dataclass(frozen=True)
class Case:
    """`open`: invoices that nobody looks at; `viewers`: pages always open, for 20 minutes each.

    `bots`: pages held open from the first minute on. `payers`: whether somebody comes every six
    minutes, looks, and pays. `unseen`: how many of the open ones are paid in every block without a
    page. `before`: minutes until the first payer comes.
    """

    open: int
    viewers: int = 0
    bots: int = 0
    payers: bool = False
    unseen: int = 0
    before: int = 0
    minutes: int = 125


@dataclass
class Payer:
    """One who opens a page, and pays; times in minutes, None while it has not been."""

    invoice: Any
    came: int
    pays: int
    closes: bool
    seen: int | None = None


@dataclass
class Outcome:
    """Calls in the worst hour; minutes from a payment until it was seen, and from its block."""

    calls: int = 0
    incomplete_runs: int = 0
    seen: list[int] = field(default_factory=list)
    blocks_to_paid: list[int] = field(default_factory=list)

    def text(self) -> str:
        late = sum(minutes > 5 for minutes in self.seen)
        return (
            f"calls in the worst hour {self.calls:5}  incomplete runs {self.incomplete_runs:3}"
            f"  seen after at most {max(self.seen, default=0)} min ({late} of {len(self.seen)}"
            f" after more than five)  paid after its block: at most"
            f" {max(self.blocks_to_paid, default=0)} min ({len(self.blocks_to_paid)})"
        )


class Simulation:
    """A shop, its chain, and all who look and pay."""

    def __init__(self, till: Till, case: Case) -> None:
        self.till, self.case = till, case
        self.open = self._make(case.open)
        self.bots = self._make(case.bots)
        self.payers: list[Payer] = []
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
            self._come(minute)
            self._pay(minute)
            if minute % MINUTES_OF_A_BLOCK == MINUTES_OF_A_BLOCK - 1:
                self._mine(minute)
            self._look(minute)
            report = self.till.check()
            calls.append(report.calls)
            self.outcome.incomplete_runs += not report.complete
            self._note(minute, report.changed)
        sums = [0, *accumulate(calls[5:])]  # without the first minutes, which find the chain
        ends = range(60, len(sums))
        self.outcome.calls = max((sums[end] - sums[end - 60] for end in ends), default=sums[-1])
        return self.outcome

    def _come(self, minute: int) -> None:
        is_time = minute % MINUTES_BETWEEN_PAYERS == 0 and minute >= self.case.before
        if self.case.payers and is_time and minute < self.case.minutes - LAST_PAYS:
            (row,) = self._make(1)
            number = len(self.payers)
            patience = PATIENCES[number % len(PATIENCES)]
            self.payers.append(Payer(row, minute, minute + patience, number % 3 == 2))

    def _pay(self, minute: int) -> None:
        for payer in self.payers:
            if payer.pays == minute:
                self.till.pay(payer.invoice)

    def _mine(self, minute: int) -> None:
        for _ in range(min(self.case.unseen, len(self.open) - self.case.viewers)):
            row = self.open.pop()
            self.till.pay(row)
            self.mined[row["id"]] = minute
        self.till.mine()

    def _look(self, minute: int) -> None:
        looked = [bot["id"] for bot in self.bots]
        for number in range(self.case.viewers):
            turn = (minute + 4 * number) // 20
            looked.append(self.open[(turn * 37 + number * 101) % len(self.open)]["id"])
        for payer in self.payers:
            if payer.seen is None and not (payer.closes and minute >= payer.pays):
                looked.append(payer.invoice["id"])
        with self.till.shop.service.db.write():
            for id in looked:
                self.till.shop.service.db.run(invoices.ASKED, id=id, at=to_ms(self.till.clock()))

    def _note(self, minute: int, changed: dict[str, str]) -> None:
        for payer in self.payers:
            if payer.seen is None and minute >= payer.pays and self.till.kinds(payer.invoice):
                payer.seen = minute
                self.outcome.seen.append(minute - payer.pays)
        self.outcome.blocks_to_paid += [
            minute - at for id, at in self.mined.items() if changed.get(id) == "paid"
        ]


CASES = (
    *(Case(count, unseen=20) for count in (500, 5_000, 50_000)),
    *(Case(count, viewers=5, unseen=20) for count in (500, 5_000, 50_000)),
    Case(300, payers=True, minutes=300),
    Case(300, payers=True, bots=200, minutes=300),
    Case(300, payers=True, bots=200, before=60, minutes=360),
)


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
    for case in CASES:
        if not small or case.open <= 500:
            print(f"{case}\n  {simulate(case).text()}", flush=True)


if __name__ == "__main__":
    main()
