"""Bots that hold pages open while others pay: how long these wait until they are seen.

Real checks on a real database against a real HTTP server; only the time is simulated.
"""

import tempfile
from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from builders import Clock, TickerServer, open_shop
from fake_esplora import FakeEsplora, Till

from btcpay.times import to_ms
from btcpay.wallet.account import script_of
from storage.queries import invoices

MINUTES_OF_A_BLOCK, MINUTES_BETWEEN_PAYERS = 10, 6
# After so many minutes a payer pays, one after the other; every third closes the page just then.
PATIENCES = (2, 3, 5, 8, 13, 21, 34, 55)
LAST_PAYS = 90  # minutes before the end nobody comes any more


@dataclass
class Payer:
    """One who opens a page at `came`, and pays; times in minutes, None while it has not been."""

    invoice: Any
    came: int
    pays: int
    closes: bool
    looked: int | None = None
    seen: int | None = None

    def is_looking(self, minute: int) -> bool:
        """Until the payment is seen, unless the page is closed."""
        return self.seen is None and not (self.closes and minute >= self.pays)


@dataclass(frozen=True)
class Siege:
    """What the bots do: old pages held open, and new invoices that each is opened once.

    They have done so for `before` minutes when the first payer comes. Each hour they make `fresh`
    invoices that end after an hour, as through payment links. `dusted` of the old ones were sent a
    little that never confirms.
    """

    old: int = 200
    before: int = 60
    fresh: int = 0
    dusted: int = 0


@dataclass(frozen=True)
class Outcome:
    """Delays in minutes. `unseen`: payments never looked at; `unsettled`: not paid at the end.

    `incomplete_runs` are those with exit status 1.
    """

    payers: int
    longest_until_first_look: int
    longest_until_seen: int
    seen_after_more_than_five: int
    unseen: int
    unsettled: int
    expired: int
    calls_in_the_worst_hour: int
    incomplete_runs: int
    longest_gap_of_the_others: int


def besiege(
    folder: Path, ticker: TickerServer, minutes: int, siege: Siege, budget: int = 600
) -> Outcome:
    """A shop of 300 old invoices, and checks for an hour before the bots come."""
    clock = Clock()
    clock.move(days=-10)
    with FakeEsplora() as esplora:
        environ = {
            "BTCPAY_EXPLORERS": esplora.root,
            "BTCPAY_EXPLORER_CALLS_PER_HOUR": str(budget),
        }
        with open_shop(folder, ticker.url, clock, **environ) as shop:
            scene = Scene(Till(shop, None, clock), esplora, siege)
            scene.open_old(300)
            for _ in range(60):
                clock.move(minutes=1)
                scene.till.check()
            for minute in range(-siege.before, minutes):
                scene.play(minute, is_coming=0 <= minute < minutes - LAST_PAYS)
            return scene.outcome(minutes)


@dataclass
class Scene:
    """The shop, its explorer, and everybody who looks at its pages."""

    till: Till
    esplora: FakeEsplora
    siege: Siege
    old: list[Any] = field(default_factory=list)
    held: list[str] = field(default_factory=list)
    payers: list[Payer] = field(default_factory=list)
    calls: list[int] = field(default_factory=list)
    incomplete: int = 0
    gaps: dict[str, int] = field(default_factory=dict)
    worst_gap: int = 0

    def open_old(self, count: int) -> None:
        """One after the other, over ten days; the bots know the first of them."""
        for _ in range(count):
            self.till.clock.move(days=10 / count)
            self.old.append(self._open())
        self.held = [invoice["id"] for invoice in self.old[: self.siege.old]]
        for invoice in self.old[: self.siege.dusted]:
            self._pay(invoice, 600)
        self.esplora.waiting.clear()  # never to be confirmed
        self.gaps = {invoice["deposit_address"]: 0 for invoice in self.old[self.siege.old :]}

    def play(self, minute: int, is_coming: bool) -> None:
        """One minute: who comes, who pays, a block, then the check."""
        self.till.clock.move(minutes=1)
        if is_coming and minute % MINUTES_BETWEEN_PAYERS == 0:
            number = len(self.payers)
            after = PATIENCES[number % len(PATIENCES)]
            invoice = self._open(**({"expires_in_hours": 1} if number % 2 else {}))
            self.payers.append(Payer(invoice, minute, minute + after, number % 3 == 2))
        for _ in range(self.siege.fresh * (minute + 1) // 60 - self.siege.fresh * minute // 60):
            self.held.append(self._open(expires_in_hours=1)["id"])
        for payer in self.payers:
            if payer.pays == minute:
                self._pay(payer.invoice, payer.invoice["amount_sats"])
        if minute % MINUTES_OF_A_BLOCK == 0:
            self.esplora.block_time = int(self.till.clock().timestamp())
            self.esplora.confirm()
        self._ask(payer.invoice["id"] for payer in self.payers if payer.is_looking(minute))
        self._ask(self.held)
        self._check(minute)

    def _check(self, minute: int) -> None:
        self.esplora.asked.clear()
        run = self.till.check()
        self.calls.append(len(self.esplora.asked))
        self.incomplete += not run.complete
        asked = {path.split("/")[2] for path in self.esplora.asked if "/address/" in path}
        for payer in self.payers:
            if payer.invoice["deposit_address"] in asked:
                payer.looked = minute if payer.looked is None else payer.looked
                if payer.pays <= minute and payer.seen is None:
                    payer.seen = minute
        self.gaps = {one: 0 if one in asked else gap + 1 for one, gap in self.gaps.items()}
        self.worst_gap = max(self.worst_gap, *self.gaps.values())

    def _open(self, **fields: Any) -> Any:
        invoice = self.till.shop.invoice(**fields)
        self.esplora.histories[invoice["deposit_address"]] = []
        return invoice

    def _pay(self, invoice: Any, sats: int) -> None:
        script = script_of(invoice["deposit_address"], "p2wpkh")
        self.esplora.pay(invoice["deposit_address"], script, sats)

    def _ask(self, ids: Iterable[str]) -> None:
        db = self.till.shop.service.db
        with db.write():
            for invoice_id in ids:
                db.run(invoices.ASKED, id=invoice_id, at=to_ms(self.till.clock()))

    def outcome(self, minutes: int) -> Outcome:
        """The figures."""
        delays = [(minutes if p.seen is None else p.seen) - p.pays for p in self.payers]
        firsts = [(minutes if p.looked is None else p.looked) - p.came for p in self.payers]
        rows = [self._row(payer.invoice) for payer in self.payers]
        sums = [sum(self.calls[start : start + 60]) for start in range(len(self.calls))]
        return Outcome(
            payers=len(self.payers),
            longest_until_first_look=max(firsts),
            longest_until_seen=max(delays),
            seen_after_more_than_five=sum(delay > 5 for delay in delays),
            unseen=sum(payer.seen is None for payer in self.payers),
            unsettled=sum(row["status"] != "paid" for row in rows),
            expired=sum(row["status"] == "expired" for row in rows),
            calls_in_the_worst_hour=max(sums),
            incomplete_runs=self.incomplete,
            longest_gap_of_the_others=self.worst_gap,
        )

    def _row(self, invoice: Any) -> Any:
        return self.till.shop.service.db.only(invoices.WHOLE, id=invoice["id"])


def main() -> None:
    """Prints the figures of docs/budget.md."""
    for siege in (Siege(), Siege(before=0), Siege(dusted=100), Siege(fresh=50), Siege(old=0)):
        with TickerServer() as ticker, tempfile.TemporaryDirectory(prefix="btcpay-bench-") as made:
            print(siege)
            for name, value in vars(besiege(Path(made), ticker, 5 * 60, siege)).items():
                print(f"  {name.replace('_', ' '):<32}{value:6}")


if __name__ == "__main__":
    main()
