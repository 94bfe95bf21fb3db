"""`blocktill serve` as browsers are shown it, on the database of a shop that the test moves."""

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

from tests.support.browser import Tab
from tests.support.builders import Clock, Live, Shop, TickerServer, open_shop
from tests.support.fake_esplora import Till, open_till

Json = dict[str, Any]


class Watch(Clock):
    """Goes on like that of the service, which it cannot move; ahead or back when it was moved."""

    def __init__(self) -> None:
        self.at = datetime.now(UTC)
        self._since_s = time.monotonic()

    def __call__(self) -> datetime:
        return self.at + timedelta(seconds=time.monotonic() - self._since_s)


@dataclass
class Hosted:
    """A shop and the process that serves its pages."""

    shop: Shop
    live: Live
    clock: Watch

    @property
    def root(self) -> str:
        return self.live.url

    def page(self, thing: Json) -> str:
        """The address of an invoice's or a payment link's page."""
        return f"{self.root}/{'pay' if thing['object'] == 'invoice' else 'link'}/{thing['id']}"

    def invoice(self, left_s: float | None = None, **fields: Any) -> Json:
        """An invoice, that its payer has `left_s` more seconds for (none or fewer: it is over)."""
        if left_s is None:
            return self.shop.invoice(**fields)
        with self.earlier(3600 - left_s):
            return self.shop.invoice(expires_in_hours=1, **fields)

    @contextmanager
    def earlier(self, seconds: float) -> Iterator[None]:
        """Makes the events inside happen so long ago."""
        self.clock.move(seconds=-seconds)
        yield
        self.clock.move(seconds=seconds)


@dataclass
class Counter(Hosted):
    """One that is paid on a chain of its own, with the check between."""

    till: Till

    def pay(self, invoice: Json, sats: int | None = None) -> str:
        """The check sees a payment that waits for its block; the transaction's id."""
        txid = self.till.pay(invoice, sats)
        self.till.look_for(invoice)
        return txid

    def mine(self) -> None:
        """The check sees a new block."""
        self.till.mine_and_check()


@contextmanager
def open_hosted(folder: Path, ticker: TickerServer, **environ: Any) -> Iterator[Hosted]:
    """A new shop and its server; its payments are invented (`builders.pay`)."""
    ticker.reset()
    clock = Watch()
    with (
        open_shop(folder, ticker.url, clock, **environ) as shop,
        Live(shop, folder) as live,
    ):
        yield Hosted(shop, live, clock)


@contextmanager
def open_counter(
    folder: Path, ticker: TickerServer, **environ: Any
) -> Iterator[Counter]:
    """A new chain, shop and server."""
    clock = Watch()
    with (
        open_till(folder, ticker, clock, **environ) as till,
        Live(till.shop, folder) as live,
    ):
        yield Counter(till.shop, live, clock, till)


def show(
    open_tab: Callable[..., Tab], hosted: Hosted, thing: Json, **environment: Any
) -> Tab:
    """A tab with the page of an invoice or a payment link."""
    tab = open_tab(hosted.root, **environment)
    assert tab.go(hosted.page(thing)) == 200
    return tab
