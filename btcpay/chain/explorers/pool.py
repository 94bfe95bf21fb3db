"""Opens the explorers: asked as one, within their quota, and with their costs counted."""

import time
from collections import Counter
from collections.abc import Callable, Sequence
from datetime import datetime

from btcpay.chain.explorers.esplora import Esplora
from btcpay.chain.explorers.quota import Quota
from btcpay.chain.pool import Pool
from btcpay.chain.sources import Allowance, Explorer, Mempool
from btcpay.http import http_client
from btcpay.settings.settings import Settings
from btcpay.values.networks import Network
from storage.database import Database
from storage.queries.totals import tallies


class Explorers(Pool[Explorer]):
    def __init__(
        self,
        network: Network,
        urls: Sequence[str],
        session: http_client.Session,
        quota: Quota | None = None,
        pause: Callable[[float], None] = time.sleep,
    ) -> None:
        self._quota = quota
        self._told = Counter[tuple[str, str]]()
        super().__init__(
            lambda skew: [
                Esplora(network, url, session, quota, skew.on_headers) for url in urls
            ],
            quota.db.close
            if quota
            else lambda: None,  # the thread's, which counts calls
            pause,
        )

    def mempool(self, address: str, script: bytes) -> Mempool:
        return self.ask(lambda one: one.mempool(address, script))

    def is_used(self, address: str) -> bool:
        return self.ask(lambda one: one.is_used(address))

    def require_chain(self, known_height: int) -> tuple[int, bytes]:
        """From now on asks no explorer that is behind, as it would not show the latest payments."""
        found, tip = self.ask(lambda one: (one, one.require_chain(known_height)))
        self.expect(tip[0], {found: tip[0]})
        return tip

    def note(self, db: Database, settings: Settings, now: datetime) -> None:
        """Counts the questions and failures since the last time that this was called."""
        totals = Counter[tuple[str, str]]()
        for place in self._places():
            totals["explorer_calls", place.one.host] += place.one.calls
            totals["explorer_failures", place.one.host] += place.failed
        with db.write():
            for (name, host), total in totals.items():
                db.run(
                    tallies.ADD,
                    name=name,
                    label=host,
                    total=total - self._told[name, host],
                )
        self._told = totals

    def allowance(self) -> Allowance:
        if self._quota is None:
            return super().allowance()
        return self._quota.allowance([explorer.name for explorer in self.all])

    def close(self) -> None:
        """Ends a run, and forgets earlier refusals of explorers that refused nothing in it."""
        super().close()
        if self._quota:
            self._quota.forget(
                one.name for one in self.all if one.calls and not one.exclusion_reason
            )


def open_explorers(
    settings: Settings,
    quota: Quota | None,
    session: http_client.Session | None = None,
    urls: Sequence[str] | None = None,
) -> Explorers:
    """All explorers of the settings, or those of `urls`; `session` keeps connections over runs."""
    session = session or http_client.Session(proxy=settings.proxy)
    return Explorers(settings.network, urls or settings.explorers, session, quota)
