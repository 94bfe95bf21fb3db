"""Simulated hours of a shop with 600 calls an hour: whom the plan asks for, when payers are seen.

The plan, what lasts and the shop's state are real. A check begins each minute, reads a block in a
second, and stays for fifty seconds while somebody waits; a block comes every ten minutes.
"""

from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta

from btcpay.chain.explorers.quota import sustainable_per_minute
from btcpay.chain.progress import KEPT_PART
from btcpay.chain.sources import Allowance
from btcpay.check.due import (
    CLOSED_LATELY,
    NEVER,
    Reason,
    WatchedInvoice,
    due_look,
    is_waiting,
)
from btcpay.check.plan import plan
from btcpay.values.statuses import InvoiceStatus

START = datetime(2026, 11, 21, 12, tzinfo=UTC)
HOUR = timedelta(hours=1)
HOUR_S = 3600
FOREVER_S = 10**9
PER_HOUR = 600
BLOCK_S = 600
PASS_S = 5
STAYS_S = 50
# After so many seconds somebody pays, one after the other; every third closes the page just then.
PATIENCES_S = (70, 130, 100, 190, 300, 80, 480, 160)
SLOW_PATIENCES_S = tuple(60 * minutes for minutes in (2, 3, 5, 8, 13, 21, 34, 55))


def at(second: float) -> datetime:
    return START + timedelta(seconds=second)


@dataclass(frozen=True)
class Hours:
    """The orders of an hour, evenly spread: `unpaid` orders of one hour that nobody looks at.

    `opened` are those whose pages are shown once, `payers` look and pay.

    `bots` hold so many pages open from `bots_from_s` on; `stays`: whether a check waits for payers.
    """

    payers: int = 10
    unpaid: int = 0
    opened: int = 0
    bots: int = 0
    bots_from_s: int = 0
    patiences_s: tuple[int, ...] = PATIENCES_S
    seconds: int = 4 * HOUR_S
    stays: bool = True


@dataclass
class Order:
    """Its page is open from `since_s` on, unless that is never, and asks each minute."""

    known: WatchedInvoice
    since_s: int
    asks_until_s: int
    pays_s: int
    is_mined: bool = False

    def asked_s(self, second: int) -> int:
        """When its page has asked last; -1 for never."""
        asking_s = min(second, self.asks_until_s) - self.since_s
        return self.since_s + asking_s // 60 * 60 if asking_s >= 0 else -1

    def shown(self, second: int) -> WatchedInvoice:
        """It as the shop knows it then."""
        asked_s = self.asked_s(second)
        if asked_s >= 0 and at(asked_s) != self.known.asked_at:
            self.known = replace(self.known, asked_at=at(asked_s))
        return self.known


class Simulation:
    """Its outcome: seconds from paying to seen, and from a block to counted.

    `calls`: in the worst hour.
    """

    def __init__(self, case: Hours) -> None:
        self.case = case
        self.second = 0
        self.seen_s: list[int] = []
        self.counted_s: list[int] = []
        self.calls = self.runs_unreached = 0
        self.orders: dict[str, Order] = {}
        self.spent = [0] * (
            HOUR_S + case.seconds
        )  # calls in each second, an hour before too
        self.made = 0
        self.put_off = False
        self.unread: list[tuple[int, list[str]]] = []
        self.headers = 0
        stays_until = plan_s = -1
        for second in range(case.seconds):
            self.second = second
            self._come()
            if second % BLOCK_S == BLOCK_S - 60 + second // BLOCK_S * 17 % 60:
                self._mine()
            if second % 60 == 1:
                plan_s = second + self._follow()
                stays_until = second + STAYS_S if case.stays else -1
            if second == plan_s:
                self._plan(whole=True)
            is_pass = plan_s < second < stays_until and second % PASS_S == 1
            if is_pass and not self._plan(whole=False):
                stays_until = -1

    def _follow(self) -> int:
        """Asks for the tip and new headers, and reads blocks; how many, a second each."""
        self._spend(1 + self.headers)
        self.headers = done = 0
        if self.unread:
            self._count(*self.unread.pop())
            done = 1
        while self.unread and self._allowance().minutely > PER_HOUR / 60 / KEPT_PART:
            self._count(*self.unread.pop(0))
            done += 1
        return done

    def _count(self, mined_s: int, ids: list[str]) -> None:
        self._spend(1)
        for order in map(self.orders.pop, ids):
            self.counted_s.append(self.second - mined_s)
            if not order.known.is_covered:
                self.seen_s.append(self.second - order.pays_s)

    def _new(
        self, asks_until_s: int = -1, pays_s: int = FOREVER_S, ends: bool = True
    ) -> None:
        self.made += 1
        now = at(self.second)
        known = WatchedInvoice(
            f"o{self.made}", InvoiceStatus.OPEN, expires_at=now + HOUR if ends else None
        )
        if asks_until_s >= self.second:
            known = replace(known, asked_at=now, opened_at=now)
        self.orders[known.id] = Order(known, self.second, asks_until_s, pays_s)

    def _come(self) -> None:
        case = self.case
        second = self.second
        for _ in range(case.bots if second == case.bots_from_s else 0):
            self._new(FOREVER_S, ends=False)
        for kind, per_hour in enumerate((case.unpaid, case.opened, case.payers)):
            number = second * per_hour // HOUR_S
            if number == (second - 1) * per_hour // HOUR_S:
                continue
            if kind == 0:
                self._new()
            elif kind == 1:
                self._new(second)
            elif second < case.seconds - HOUR_S:
                pays_s = (
                    second
                    + case.patiences_s[number % len(case.patiences_s)]
                    + number * 17 % 60
                )
                self._new(pays_s if number % 3 == 2 else FOREVER_S, pays_s)

    def _mine(self) -> None:
        ids = [id for id, order in self.orders.items() if self._waits(order)]
        for id in ids:
            self.orders[id].is_mined = True
        self.unread.append((self.second, ids))
        self.headers += 1

    def _waits(self, order: Order) -> bool:
        """True if its payment waits for a block."""
        return order.pays_s <= self.second and not order.is_mined

    def _spend(self, calls: int) -> None:
        now = HOUR_S + self.second
        self.spent[now] += calls
        self.calls = max(self.calls, sum(self.spent[now - HOUR_S + 1 : now + 1]))

    def _allowance(self) -> Allowance:
        ends = [HOUR_S + self.second - 60 * minute + 1 for minute in range(60)]
        used = {
            minute: sum(self.spent[end - 60 : end]) for minute, end in enumerate(ends)
        }
        left = PER_HOUR - sum(used.values())
        return Allowance(PER_HOUR, left, sustainable_per_minute(left, used))

    def _plan(self, whole: bool) -> bool:
        """A run's looks, or those of a pass after it; whether anybody waits at a page."""
        now = at(self.second)
        allowance = self._allowance()
        oldest_s = -1 if whole else max(0, self.second - CLOSED_LATELY.seconds)
        orders = [o for o in self.orders.values() if o.asked_s(self.second) >= oldest_s]
        known = [order.shown(self.second) for order in orders]
        times = (now, now if whole else NEVER, None if whole else self.put_off)
        planned = plan(known, HOUR, allowance, *times)
        if whole:
            self.put_off = planned.put_off > 0
        for id in planned.ids:
            self._look(self.orders[id], allowance)
        self.runs_unreached += bool(planned.unreached)
        self._spend(len(planned.ids))
        return any(is_waiting(one, now) for one in known)

    def _look(self, order: Order, allowance: Allowance) -> None:
        known = order.known
        now = at(self.second)
        why = due_look(known, HOUR, allowance.per_hour, now)
        if why and why.reason is Reason.ENDED and not known.is_covered:
            del self.orders[known.id]
            return
        order.known = known = replace(known, checked_at=now)
        if self._waits(order) and not known.is_covered:
            self.seen_s.append(self.second - order.pays_s)
            order.known = replace(known, is_covered=True, came_at=now)
