"""The settings: read once from the environment, every mistake reported together."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from decimal import Decimal
from typing import TypeVar
from urllib.parse import urlsplit

from btcpay import setting_parsers
from btcpay.errors import SettingsError
from btcpay.networks import Network
from btcpay.setting_parsers import Confirmations, PriceSource, whole

T = TypeVar("T")


@dataclass(frozen=True)
class Settings:
    """One value for every variable of README's table; units are in the names."""

    network: Network
    database_url: str
    base_url: str
    explorers: tuple[str, ...]
    price_sources: tuple[PriceSource, ...]
    price_quorum: int
    price_max_age_s: int
    confirmations: Confirmations
    watch_after_expiry_h: int
    explorer_calls_per_hour: int
    check_max_age_min: int
    underpayment_tolerance_percent: Decimal
    rate_limit_store: str
    trusted_proxies: int
    max_body_bytes: int
    idempotency_ttl_h: int
    email_retention_days: int
    link_invoice_expiry_min: int
    link_invoices_per_visitor: int
    link_open_invoices: int
    frame_ancestors: tuple[str, ...]
    bind: str
    metrics_bind: str


def read(environ: Mapping[str, str]) -> Settings:
    """Settings from the environment (README says what each variable means).

    An empty variable counts as absent, but for BTCPAY_METRICS_BIND. Raises SettingsError with every
    mistake found.
    """
    mistakes: list[str] = []

    def get(name: str, default: str, parse: Callable[[str], T]) -> T:
        """The variable's value; after a mistake the default's, so that the next ones are found."""
        try:
            return parse(environ.get(name, "").strip() or default)
        except ValueError as error:
            mistakes.append(f"{name} accepts {error}")
            return parse(default)

    # The one that says something when it is empty: no metrics.
    metrics_bind = "" if "BTCPAY_METRICS_BIND" in environ else "127.0.0.1:9464"
    network = get("BTCPAY_NETWORK", "regtest", setting_parsers.network)
    base_url = get("BTCPAY_BASE_URL", "http://127.0.0.1:8000", setting_parsers.base_url)
    bind = f"127.0.0.1:{urlsplit(base_url).port or 8000}"
    sources = get(
        "BTCPAY_PRICE_SOURCES", " ".join(network.price_sources), setting_parsers.price_sources
    )
    quorum = str(len(sources) // 2 + 1)  # a minority of liars never sets the price by itself
    settings = Settings(
        network=network,
        database_url=get(
            "BTCPAY_DATABASE_URL", "sqlite:///var/btcpay.db", setting_parsers.database_url
        ),
        base_url=base_url,
        explorers=get("BTCPAY_EXPLORERS", " ".join(network.explorers), setting_parsers.explorers),
        price_sources=sources,
        price_quorum=get("BTCPAY_PRICE_QUORUM", quorum, whole(1, len(sources))),
        price_max_age_s=get("BTCPAY_PRICE_MAX_AGE_S", "120", whole(1, 3600)),
        confirmations=get("BTCPAY_CONFIRMATIONS", "1", setting_parsers.confirmations),
        watch_after_expiry_h=get("BTCPAY_WATCH_AFTER_EXPIRY_H", "168", whole(0, 87600)),
        explorer_calls_per_hour=get(
            "BTCPAY_EXPLORER_CALLS_PER_HOUR", str(network.calls_per_hour), whole(1, 10_000_000)
        ),
        check_max_age_min=get("BTCPAY_CHECK_MAX_AGE_MIN", "15", whole(1, 10_080)),
        underpayment_tolerance_percent=get(
            "BTCPAY_UNDERPAYMENT_TOLERANCE_PERCENT", "0", setting_parsers.percent
        ),
        rate_limit_store=get(
            "BTCPAY_RATE_LIMIT_STORE", "memory://", setting_parsers.rate_limit_store
        ),
        trusted_proxies=get("BTCPAY_TRUSTED_PROXIES", "0", whole(0, 10)),
        max_body_bytes=get("BTCPAY_MAX_BODY_BYTES", "65536", whole(1024, 16_777_216)),
        idempotency_ttl_h=get("BTCPAY_IDEMPOTENCY_TTL_H", "24", whole(1, 8760)),
        email_retention_days=get("BTCPAY_EMAIL_RETENTION_DAYS", "0", whole(0, 36_500)),
        link_invoice_expiry_min=get("BTCPAY_LINK_INVOICE_EXPIRY_MIN", "60", whole(1, 525_600)),
        link_invoices_per_visitor=get("BTCPAY_LINK_INVOICES_PER_VISITOR", "10", whole(1, 100_000)),
        link_open_invoices=get("BTCPAY_LINK_OPEN_INVOICES", "50", whole(1, 1_000_000)),
        frame_ancestors=get("BTCPAY_FRAME_ANCESTORS", "", setting_parsers.origins),
        bind=get("BTCPAY_BIND", bind, setting_parsers.bind),
        metrics_bind=get("BTCPAY_METRICS_BIND", metrics_bind, setting_parsers.metrics_bind),
    )
    if mistakes:
        raise SettingsError(mistakes)
    return settings
