"""Simulated hours of a shop with 600 calls an hour: whom the plan asks for, when payers are seen.

The plan, what lasts and the shop's state are real. A check begins each minute, reads a block in a
second, and stays for fifty seconds while somebody waits; a block comes every ten minutes.
"""

from collections import Counter, deque
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta
from types import SimpleNamespace
from typing import Any

from btcpay.chain.explorers.quota import lasting
from btcpay.chain.progress import KEPT_PART
from btcpay.chain.sources import Allowance
from btcpay.check.plan import CLOSED_LATELY, NEVER, Reason, Watched, due, is_waiting, plan
from btcpay.check.read import MOST_S
from btcpay.health.state import state_of
from btcpay.values.finding import RED
from btcpay.values.networks import NETWORKS

START = datetime(2026, 11, 21, 12, tzinfo=UTC)
HOUR = timedelta(hours=1)
PER_HOUR, BLOCK_S = 600, 600
PASS_S, STAYS_S = 5, 50
SETTINGS: Any = SimpleNamespace(check_max_age_min=15, network=NETWORKS["mainnet"])
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
    `away`: so many blocks came before the first minute, and no check.
    """

    payers: int = 10
    unpaid: int = 0
    opened: int = 0
    bots: int = 0
    bots_from_s: int = 0
    patiences_s: tuple[int, ...] = PATIENCES_S
    seconds: int = 4 * 3600
    stays: bool = True
    away: int = 0


@dataclass
class Order:
    known: Watched
    since_s: int
    asks_until_s: int = -1
    pays_s: int | None = None
    is_mined: bool = False


@dataclass
class Outcome:
    """Seconds from paying to seen, and from a block to counted.

    `unready`: in how many minutes `/readyz` says no. `calls`: in the worst hour.
    """

    seen_s: list[int] = field(default_factory=list)
    counted_s: list[int] = field(default_factory=list)
    unready: int = 0
    calls: int = 0
    runs_unreached: int = 0

    @property
    def mean_s(self) -> float:
        return sum(self.seen_s) / len(self.seen_s)

    @property
    def late(self) -> int:
        return sum(1 for seconds in self.seen_s if seconds > 300)


class Simulation:
    def __init__(self, case: Hours) -> None:
        self.case, self.outcome = case, Outcome()
        self.orders: dict[str, Order] = {}
        self.spent: deque[tuple[int, int]] = deque()
        self.used = 0
        self.made = 0
        self.put_off = False
        self.asked: dict[str, Order] = {}
        self.history = case.away
        self.unread: list[tuple[int, list[str]]] = []
        self.headers = -(-case.away // 10)
        self.found_at = at(-7 * 86_400) if case.away else None

    def run(self) -> Outcome:
        stays_until = plan_s = -1
        for second in range(self.case.seconds):
            self._come(second)
            self._ask(second)
            if second % BLOCK_S == BLOCK_S - 60 + second // BLOCK_S * 17 % 60:
                self._mine(second)
            if second % 60 == 1:
                plan_s = second + self._follow(second)
                stays_until = second + STAYS_S if self.case.stays else -1
                state = state_of(self.found_at, 0, None, None, SETTINGS, at(second))
                self.outcome.unready += state.found is RED
            if second == plan_s:
                self._plan(second, whole=True)
            is_pass = plan_s < second < stays_until and second % PASS_S == 1
            if is_pass and not self._plan(second, whole=False):
                stays_until = -1
        return self.outcome

    def _follow(self, second: int) -> int:
        """Asks for the tip and new headers, and reads blocks; how many, a second each."""
        self._spend(second, 1 + self.headers)
        self.headers = done = 0
        if self.unread:
            self._count(second, self.unread.pop())
            done = 1
        part = PER_HOUR / 60 / KEPT_PART
        while (self.unread or self.history) and done < MOST_S:
            if self._allowance(second).minutely <= part:
                return done
            if self.history:
                self.history -= 1
                self._spend(second, 1)
            else:
                self._count(second, self.unread.pop(0))
            done += 1
        if not (self.unread or self.history):
            self.found_at = at(second)
        return done

    def _count(self, second: int, block: tuple[int, list[str]]) -> None:
        self._spend(second, 1)
        mined_s, ids = block
        for id in ids:
            order = self.orders.pop(id)
            self.asked.pop(id, None)
            self.outcome.counted_s.append(second - mined_s)
            if order.pays_s is not None and not order.known.is_covered:
                self.outcome.seen_s.append(second - order.pays_s)

    def _new(self, second: int, asks_until_s: int = -1, pays_s: int | None = None) -> None:
        self.made += 1
        known = Watched(f"o{self.made}", "open", expires_at=at(second) + HOUR)
        if asks_until_s >= second:
            known = replace(known, asked_at=at(second), opened_at=at(second))
        self.orders[known.id] = order = Order(known, second, asks_until_s, pays_s)
        if asks_until_s >= second:
            self.asked[known.id] = order

    def _come(self, second: int) -> None:
        case = self.case
        if second == case.bots_from_s:
            for _ in range(case.bots):
                self._new(second, asks_until_s=10**9)
                (order,) = deque(self.orders.values(), 1)
                order.known = replace(order.known, expires_at=None)
        for per_hour, kind in ((case.unpaid, 0), (case.opened, 1), (case.payers, 2)):
            if not per_hour or (second * per_hour) // 3600 == ((second - 1) * per_hour) // 3600:
                continue
            if kind < 2:
                self._new(second, second if kind else -1)
            elif second < case.seconds - 3600:
                number = (second * per_hour) // 3600
                pays = second + case.patiences_s[number % len(case.patiences_s)] + number * 17 % 60
                self._new(second, pays if number % 3 == 2 else 10**9, pays)

    def _ask(self, second: int) -> None:
        for order in self.asked.values():
            known = order.known
            if order.asks_until_s >= second and (second - order.since_s) % 60 == 0:
                order.known = replace(known, asked_at=at(second))

    def _mine(self, second: int) -> None:
        ids = []
        for id, order in self.orders.items():
            if order.pays_s is not None and order.pays_s <= second and not order.is_mined:
                order.is_mined = True
                ids.append(id)
        self.unread.append((second, ids))
        self.headers += 1

    def _spend(self, second: int, calls: int) -> None:
        self.spent.append((second, calls))
        self.used += calls
        self._forget(second)
        self.outcome.calls = max(self.outcome.calls, self.used)

    def _forget(self, second: int) -> None:
        while self.spent and self.spent[0][0] <= second - 3600:
            self.used -= self.spent.popleft()[1]

    def _allowance(self, second: int) -> Allowance:
        self._forget(second)
        used = Counter[int]()
        for spent, calls in self.spent:
            used[(second - spent) // 60] += calls
        left = PER_HOUR - self.used
        return Allowance(PER_HOUR, left, lasting(left, used))

    def _plan(self, second: int, whole: bool) -> bool:
        now = at(second)
        if whole:
            oldest = now - CLOSED_LATELY
            self.asked = {
                id: order for id, order in self.orders.items() if order.known.asked_at >= oldest
            }
        orders = self.orders if whole else self.asked
        known = [order.known for order in orders.values()]
        allowance = self._allowance(second)
        planned = plan(
            known, HOUR, allowance, now, now if whole else NEVER, None if whole else self.put_off
        )
        if whole:
            self.put_off = planned.put_off > 0
        for id in planned.ids:
            self._look(self.orders[id], second, allowance)
        self.outcome.runs_unreached += bool(planned.unreached)
        self._spend(second, len(planned.ids))
        return any(is_waiting(one, now) for one in known)

    def _look(self, order: Order, second: int, allowance: Allowance) -> None:
        known = order.known
        why = due(known, HOUR, allowance.per_hour, at(second))
        if why and why.reason is Reason.ENDED and not known.is_covered:
            del self.orders[known.id]
            self.asked.pop(known.id, None)
            return
        order.known = known = replace(known, checked_at=at(second))
        has_paid = order.pays_s is not None and order.pays_s <= second and not order.is_mined
        if has_paid and not known.is_covered:
            self.outcome.seen_s.append(second - order.pays_s)
            order.known = replace(known, is_covered=True, came_at=at(second))


def simulate(case: Hours) -> Outcome:
    return Simulation(case).run()
