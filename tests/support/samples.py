"""What the metrics of a shop in this process say."""

from builders import Shop
from prometheus_client.registry import CollectorRegistry

from btcpay.monitoring.database_metrics import Figures

Samples = dict[str, float]


def figures(shop: Shop) -> Samples:
    """What the database says."""
    registry = CollectorRegistry()
    registry.register(Figures(shop.service.db, shop.service.limiter, "all", shop.clock))
    registry.register(shop.service.counters)
    found: Samples = {}
    for family in registry.collect():
        for sample in family.samples:
            labels = "".join(f"{{{k}={v}}}" for k, v in sorted(sample.labels.items()))
            found[sample.name + labels] = sample.value
    return found
