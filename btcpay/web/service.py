"""The objects that all requests share, such as settings, database and rate limits."""

import os
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import datetime

from btcpay import hooks
from btcpay.health.counters import Counters
from btcpay.health.scrape import FOLDER
from btcpay.merchants.owner_password import OwnerPassword, owner_password
from btcpay.notify.mail.server import has_mail
from btcpay.prices.price import Prices
from btcpay.settings.settings import Settings
from btcpay.web.rate_limits import Limiter
from schemas.resources import Resources
from storage.database import Database
from storage.versions import open_ready
from storage.write_behind import Notes


@dataclass(frozen=True)
class Service:
    """The objects that a view may use.

    - `prices`: the exchange rates.
    - `limiter`: counts requests against the rate limits.
    - `notes`: stores minor facts in a background thread, such as that an API key was
      used.
    - `counters`: the metrics of requests and of exchange rates.
    - `resources`: converts rows to JSON.
    - `owner_password`: the password that opens the merchant's pages, if one is set.
    - `request_logs`: the logs of requests that parts (optional plug-ins) keep.
    - `now`: returns the current wall-clock time.
    """

    settings: Settings
    db: Database
    prices: Prices
    limiter: Limiter
    notes: Notes
    counters: Counters
    resources: Resources
    owner_password: OwnerPassword
    request_logs: Sequence[hooks.RequestLog]
    now: Callable[[], datetime]

    def has_mail(self) -> bool:
        """True if a mail server is set up. The owner can change this at any time."""
        return has_mail(self.settings, self.db)

    def close(self) -> None:
        """Stops the background threads. Call this method after the last request."""
        self.notes.close()
        for request_log in self.request_logs:
            request_log.close()


def open_service(settings: Settings, now: Callable[[], datetime]) -> Service:
    """Opens the database, and returns the Service of this process.

    Raises DatabaseNotReady if the database is missing, or does not fit this version of
    the program or the network of the settings.
    """
    db = open_ready(settings.database_url, settings.network.name)
    password = owner_password(settings.owner_password, db)
    # gunicorn may fork now (--preload). Two workers with one connection would mix up
    # their rows.
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
        owner_password=password,
        request_logs=_open_logs(settings, db, now),
        now=now,
    )


def _open_logs(
    settings: Settings,
    db: Database,
    now: Callable[[], datetime],
) -> list[hooks.RequestLog]:
    """Returns the logs of API requests that parts (optional plug-ins) keep."""
    logs = [part.open_log(settings, db, now) for part in hooks.of(hooks.RequestLogs)]
    return [log for log in logs if log]
