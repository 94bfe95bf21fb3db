"""Nodes of the network as a kind of source: opened here alone, for a run or to listen."""

from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime

from btcpay.chain.kinds import Kind
from btcpay.chain.peers.book import chosen
from btcpay.chain.peers.listener import Listener
from btcpay.chain.peers.pool import Peers
from btcpay.settings.settings import Settings
from storage.database import Database


@dataclass(frozen=True)
class Nodes(Kind):
    settings: Settings
    db: Database
    now: Callable[[], datetime]

    def open(self) -> Peers:
        network, proxy = self.settings.network, self.settings.proxy
        return Peers(network, self._chosen(), self.db.close, proxy=proxy)

    def listener(self) -> Listener:
        return Listener(self.settings.network, self._chosen, self.now, self.settings.proxy)

    def _chosen(self) -> list[str]:
        return chosen(self.db, self.settings, self.now())


def source(settings: Settings, db: Database, now: Callable[[], datetime]) -> Kind | None:
    return Nodes(settings, db, now) if settings.peers else None
