"""What a running service consists of: settings, database, prices, limits, counters, clock."""

import os
from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime

from btcpay.health.counters import Counters
from btcpay.health.scrape import FOLDER
from btcpay.prices.price import Prices
from btcpay.settings.settings import Settings
from btcpay.web.rate_limits import Limiter
from schemas.resources import Resources
from storage.database import Database
from storage.versions import open_ready
from storage.write_behind import Notes


@dataclass(frozen=True)
class Service:
    """Everything that a request may use; `now` reads the wall clock."""

    settings: Settings
    db: Database
    prices: Prices
    limiter: Limiter
    notes: Notes
    counters: Counters
    resources: Resources
    now: Callable[[], datetime]

    def close(self) -> None:
        """Ends the threads; no request may be under way any more."""
        self.notes.close()


def open_service(settings: Settings, now: Callable[[], datetime]) -> Service:
    """Opens the database and whatever else a process needs. Raises DatabaseNotReady."""
    db = open_ready(settings.database_url, settings.network.name)
    # gunicorn may fork now (--preload), and two workers on one connection would mix their rows.
    db.close()
    counters = Counters(os.environ.get(FOLDER), lambda: now().timestamp())
    return Service(
        settings=settings,
        db=db,
        prices=Prices(settings, counters.count_price_refresh),
        limiter=Limiter(settings.rate_limit_store, lambda: now().timestamp()),
        notes=Notes(db),
        counters=counters,
        resources=Resources(settings.base_url),
        now=now,
    )
