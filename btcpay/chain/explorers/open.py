"""The one place where explorers are opened: from settings, with a session and a quota."""

from collections.abc import Callable, Sequence
from datetime import datetime

from btcpay.chain.explorers.esplora import Esplora
from btcpay.chain.explorers.pool import Explorers
from btcpay.chain.explorers.quota import Quota
from btcpay.http import http_client
from btcpay.settings.settings import Settings
from storage.database import Database


def open_quota(
    settings: Settings, db: Database, now: Callable[[], datetime], per_hour: int | None = None
) -> Quota:
    """The calls of the hour as the database counts them; `per_hour` in place of the setting's."""
    return Quota(db, per_hour or settings.explorer_calls_per_hour, now)


def open_explorers(
    settings: Settings,
    quota: Quota | None,
    session: http_client.Session | None = None,
    urls: Sequence[str] | None = None,
) -> Explorers:
    """All explorers of the settings, or those of `urls`; `session` keeps connections over runs."""
    session = session or http_client.Session(proxy=settings.proxy)
    return Explorers(settings.network, urls or settings.explorers, session, quota)


def open_one(
    settings: Settings, url: str, quota: Quota | None, on_headers: http_client.OnHeaders
) -> Esplora:
    """One explorer alone; `on_headers` gets the headers of every answer."""
    session = http_client.Session(proxy=settings.proxy)
    return Esplora(settings.network, url, session, quota, on_headers)
