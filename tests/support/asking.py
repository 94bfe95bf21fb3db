"""Whom a check asks: other explorers than a till's settings name, and what they were asked."""

from typing import Any

from builders import Clock
from fake_esplora import LiedTo, Till

from btcpay.chain.explorers.pool import Explorers
from btcpay.chain.explorers.quota import Quota
from btcpay.check.report import Report
from btcpay.http import http_client


def explorers(till: Till, *roots: str, kind: type[Explorers] = Explorers) -> Explorers:
    """These, in this order, within the quota of the settings."""
    settings = till.settings
    quota = Quota(till.shop.service.db, settings.explorer_calls_per_hour, till.clock)
    session = http_client.Session(4)
    return kind(settings.network, roots or settings.explorers, session, quota, lambda _: None)


def check_with(till: Till, *roots: str, clock: Clock | None = None, **changes: Any) -> Report:
    """A whole run that asks these explorers; `changes` are fields of the settings."""
    checker = till.checker(explorers=explorers(till, *roots), clock=clock, **changes)
    run = checker.run()
    checker.finish(run)
    return run


def raws(till: LiedTo) -> list[int]:
    heights = till.sandbox.chain.ledger.heights
    return [heights[path.split("/")[2]] for path in till.liar.asked if path.endswith("/raw")]
