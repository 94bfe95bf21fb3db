"""The pool of explorers. It counts their calls and enforces their quota."""

import time
from collections import Counter
from collections.abc import Callable, Sequence
from datetime import datetime

from btcpay.chain.explorers.esplora import Esplora
from btcpay.chain.explorers.quota import Quota
from btcpay.chain.pool import Pool
from btcpay.chain.sources import Allowance, Explorer, Mempool
from btcpay.http import http_client
from btcpay.http.clock_skew import ClockSkew
from btcpay.settings.settings import Settings
from btcpay.values.networks import Network
from storage.database import Database
from storage.queries.totals import tallies


class Explorers(Pool[Explorer]):
    """A pool of the explorers at `urls`. If there is no `quota`, calls are not limited."""

    def __init__(
        self,
        network: Network,
        urls: Sequence[str],
        session: http_client.Session,
        quota: Quota | None = None,
        pause: Callable[[float], None] = time.sleep,
    ) -> None:
        self._quota = quota
        self._noted = Counter[tuple[str, str]]()

        def open_all(skew: ClockSkew) -> list[Esplora]:
            return [
                Esplora(network, url, session, quota, skew.on_headers) for url in urls
            ]

        def close_connection() -> None:
            # The quota opens a database connection in each request's thread.
            if quota:
                quota.db.close()

        super().__init__(open_all, close_connection, pause)

    def mempool(self, address: str, script: bytes) -> Mempool:
        return self.ask(lambda explorer: explorer.mempool(address, script))

    def is_used(self, address: str) -> bool:
        return self.ask(lambda explorer: explorer.is_used(address))

    def require_chain(self, known_height: int) -> tuple[int, bytes]:
        """Returns the height and the header (80 bytes) of an explorer's tip.

        From then on, another explorer gets requests only after it has shown a tip near
        the returned one, since explorers that are behind lack the latest payments.
        Raises ExplorerError if no explorer has a chain of this network that reaches
        `known_height`.
        """

        def with_tip(explorer: Explorer) -> tuple[Explorer, tuple[int, bytes]]:
            return explorer, explorer.require_chain(known_height)

        explorer, tip = self.ask(with_tip)
        height, _ = tip
        self.expect(height, {explorer: height})
        return tip

    def store_outcomes(self, db: Database, settings: Settings, now: datetime) -> None:
        """Adds the explorers' calls and failures to the stored totals, each only once."""
        totals = self.new_totals()
        if totals:
            with db.write():
                for (name, label), total in totals.items():
                    db.run(tallies.ADD, name=name, label=label, total=total)

    def new_totals(self) -> Counter[tuple[str, str]]:
        """Returns each explorer's calls and failures since this method was last called."""
        totals = Counter[tuple[str, str]]()
        for entry in self._entries:
            host = entry.source.host
            totals["explorer_calls", host] += entry.source.calls
            totals["explorer_failures", host] += entry.failures
        new_totals = Counter[tuple[str, str]]()
        for key, total in totals.items():
            # A new total is returned even if it is 0: then its metric exists.
            if key not in self._noted or total != self._noted[key]:
                new_totals[key] = total - self._noted[key]
        self._noted = totals
        return new_totals

    def allowance(self) -> Allowance:
        if self._quota is None:
            return super().allowance()
        return self._quota.allowance([explorer.name for explorer in self.all])

    def close(self) -> None:
        """Stops the explorers from sending further requests.

        If an explorer was called and has refused no call of this pool, its earlier
        refusals are deleted, so that it has no back-off.
        """
        super().close()
        if self._quota:
            responding = [
                explorer.name
                for explorer in self.all
                if explorer.calls and not explorer.exclusion_reason
            ]
            self._quota.forget(responding)


def open_explorers(
    settings: Settings,
    quota: Quota | None,
    session: http_client.Session | None = None,
    urls: Sequence[str] | None = None,
) -> Explorers:
    """Returns a pool of the explorers at `urls`, or else of those in the settings.

    Without a `quota` the number of calls is not limited. A `session` can be passed to
    reuse its connections in several runs.
    """
    session = session or http_client.Session(proxy=settings.proxy)
    return Explorers(settings.network, urls or settings.explorers, session, quota)
