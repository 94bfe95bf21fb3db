"""The metrics of a shop in this process."""

from collections.abc import Iterable

from prometheus_client import Metric
from prometheus_client.registry import CollectorRegistry

from btcpay.health.figures import Figures
from storage.database import sqlite_path
from tests.support.builders import Shop

Samples = dict[str, float]


def figures(shop: Shop) -> Samples:
    registry = CollectorRegistry()
    file = sqlite_path(shop.service.settings.database_url)
    service = shop.service
    folder = file and file.parent
    registry.register(
        Figures(service.db, service.limiter.is_complete, shop.clock, folder)
    )
    registry.register(shop.service.counters)
    return by_name(registry.collect())


def by_name(families: Iterable[Metric]) -> Samples:
    """`name{label=value}` and its value."""
    found: Samples = {}
    for family in families:
        for sample in family.samples:
            labels = "".join(f"{{{k}={v}}}" for k, v in sorted(sample.labels.items()))
            found[sample.name + labels] = sample.value
    return found
