"""The settings: read once from the environment, every mistake reported together."""

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from decimal import Decimal
from typing import TypeVar
from urllib.parse import urlsplit

from btcpay.errors import SettingsError
from btcpay.networks import NETWORKS, Network

T = TypeVar("T")
_NO_SOURCES: tuple["PriceSource", ...] = ()


@dataclass(frozen=True)
class PriceSource:
    """One ticker: where to ask, and the RFC 6901 pointer to the BTC/USD number in its answer."""

    url: str
    pointer: str


@dataclass(frozen=True)
class Confirmations:
    """How deep a payment must be, by the invoice's amount: ascending (from_usd, blocks)."""

    steps: tuple[tuple[Decimal, int], ...]

    def for_usd(self, amount_usd: Decimal) -> int:
        """Blocks asked of an invoice of that amount: the last step that it reaches."""
        return [blocks for from_usd, blocks in self.steps if amount_usd >= from_usd][-1]


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


def _whole(low: int, high: int) -> Callable[[str], int]:
    def parse(text: str) -> int:
        if not re.fullmatch(r"[0-9]{1,12}", text) or not low <= int(text) <= high:
            raise ValueError(f"a whole number from {low} to {high}")
        return int(text)

    return parse


def _percent(text: str) -> Decimal:
    if not re.fullmatch(r"[0-9](\.[0-9]{1,9})?", text) or Decimal(text) > 5:
        raise ValueError("a number from 0 to 5")
    return Decimal(text)


def _is_port(text: str) -> bool:
    return re.fullmatch("[0-9]{1,5}", text) is not None and int(text) <= 65535


def _network(text: str) -> Network:
    if text not in NETWORKS:
        raise ValueError("one of " + ", ".join(NETWORKS))
    return NETWORKS[text]


def is_http_url(text: str) -> bool:
    """Whether the text is an absolute http(s) URL with a host and a valid port, without blanks.

    Nor with lone surrogates, which is what Python makes of bytes that are no UTF-8.
    """
    try:
        parts = urlsplit(text)
        return (
            parts.scheme in ("http", "https")
            and bool(parts.hostname)
            and parts.port != 0
            and not re.search(r"[\s\x00-\x1f\ud800-\udfff]", text)
        )
    except ValueError:
        return False


def _base_url(text: str) -> str:
    parts = urlsplit(text)
    if not is_http_url(text) or parts.query or parts.fragment or parts.username:
        raise ValueError("an http:// or https:// root such as https://pay.example.com")
    return text.rstrip("/")


def _origins(text: str) -> tuple[str, ...]:
    for origin in text.split():
        if not is_http_url(origin) or not re.fullmatch(r"https?://[A-Za-z0-9.:\[\]-]+", origin):
            raise ValueError("origins such as https://shop.example.com, separated by spaces")
    return tuple(text.split())


def _explorers(text: str) -> tuple[str, ...]:
    roots = tuple(root.rstrip("/") for root in text.split())
    if not roots or not all(is_http_url(root) for root in roots):
        raise ValueError("one or more Esplora roots (http:// or https://), separated by spaces")
    return roots


def _price_sources(text: str) -> tuple[PriceSource, ...]:
    sources = []
    for item in text.split():
        url, hash_sign, pointer = item.partition("#")
        if not is_http_url(url) or not hash_sign or not re.fullmatch(r"(/[^/]*)*", pointer):
            raise ValueError("one or more URL#/json/pointer, separated by spaces")
        sources.append(PriceSource(url, pointer))
    if not sources:
        raise ValueError("one or more URL#/json/pointer, separated by spaces")
    return tuple(sources)


def _confirmations(text: str) -> Confirmations:
    accepts = "a number of blocks from 1 to 100, or ascending steps by USD such as 1 3@1000 6@10000"
    steps: list[tuple[Decimal, int]] = []
    for position, item in enumerate(text.split()):
        match = re.fullmatch(r"([0-9]{1,3})(?:@([0-9]{1,12}(?:\.[0-9]{1,2})?))?", item)
        if not match or (match[2] is None) != (position == 0):
            raise ValueError(accepts)
        steps.append((Decimal(match[2] or 0), int(match[1])))
    amounts = [from_usd for from_usd, _ in steps]
    if not steps or amounts != sorted(set(amounts)):
        raise ValueError(accepts)
    if any(not 1 <= blocks <= 100 for _, blocks in steps):
        raise ValueError(accepts)
    return Confirmations(tuple(steps))


# libpq's message about a password with one of these would quote it.
_NOT_IN_A_SERVER_URL = re.compile(r"%(?![0-9A-Fa-f]{2})|%00|[\ud800-\udfff]")


def _database_url(text: str) -> str:
    place = r"(?:[^/@\s]*@)?[^/@:\s]+(?::([^/\s]*))?/[^/?\s]+"
    server = re.fullmatch(rf"postgresql://{place}(?:\?\S*)?", text)
    if server and _NOT_IN_A_SERVER_URL.search(text):
        raise ValueError("a sign such as % in a password only as %25, and nothing but UTF-8")
    if not (re.fullmatch("sqlite:///.+", text) or (server and _is_port(server[1] or "5432"))):
        raise ValueError("sqlite:///path or postgresql://user:password@host:port/name")
    return text


def _rate_limit_store(text: str) -> str:
    host = r"(?:\[[0-9A-Fa-f:.]+\]|[^/@:?\s]+)"
    server = re.fullmatch(rf"rediss?://(?:[^/@\s]*@)?{host}(?::([^/?\s]*))?(?:[/?]\S*)?", text)
    if text != "memory://" and not (server and _is_port(server[1] or "6379")):
        raise ValueError("memory:// or redis://host:port/n")
    return text


def _bind(text: str) -> str:
    host, _, port = text.rpartition(":")
    if not re.fullmatch(r"unix:\S+", text) and not (re.fullmatch(r"\S+", host) and _is_port(port)):
        raise ValueError("host:port or unix:/path")
    return text


def _metrics_bind(text: str) -> str:
    host, _, port = text.rpartition(":")
    if text and not (re.fullmatch(r"\[[0-9A-Fa-f:.]+\]|[^\s:]+", host) and _is_port(port)):
        raise ValueError("host:port, or nothing at all for no metrics")
    return text


def _default_bind(base_url: str) -> str:
    return f"127.0.0.1:{urlsplit(base_url).port or 8000}"


def read(environ: Mapping[str, str]) -> Settings:
    """Settings from the environment (README says what each variable means).

    An empty variable counts as absent, but for BTCPAY_METRICS_BIND. Raises SettingsError with every
    mistake found.
    """
    mistakes: list[str] = []

    def get(name: str, default: str, parse: Callable[[str], T], fallback: T) -> T:
        text = environ.get(name, "").strip() or default
        try:
            return parse(text)
        except ValueError as error:
            mistakes.append(f"{name} accepts {error}")
            return fallback

    whole = _whole
    # The one that says something when it is empty: no metrics.
    metrics_bind = "" if "BTCPAY_METRICS_BIND" in environ else "127.0.0.1:9464"
    network = get("BTCPAY_NETWORK", "regtest", _network, NETWORKS["regtest"])
    base_url = get("BTCPAY_BASE_URL", "http://127.0.0.1:8000", _base_url, "http://127.0.0.1:8000")
    sources = get(
        "BTCPAY_PRICE_SOURCES", " ".join(network.price_sources), _price_sources, _NO_SOURCES
    )
    quorum = str(min(2, max(1, len(sources))))
    settings = Settings(
        network=network,
        database_url=get("BTCPAY_DATABASE_URL", "sqlite:///var/btcpay.db", _database_url, ""),
        base_url=base_url,
        explorers=get("BTCPAY_EXPLORERS", " ".join(network.explorers), _explorers, ()),
        price_sources=sources,
        price_quorum=get("BTCPAY_PRICE_QUORUM", quorum, whole(1, max(1, len(sources))), 1),
        price_max_age_s=get("BTCPAY_PRICE_MAX_AGE_S", "120", whole(1, 3600), 1),
        confirmations=get("BTCPAY_CONFIRMATIONS", "1", _confirmations, Confirmations(())),
        watch_after_expiry_h=get("BTCPAY_WATCH_AFTER_EXPIRY_H", "168", whole(0, 87600), 0),
        explorer_calls_per_hour=get(
            "BTCPAY_EXPLORER_CALLS_PER_HOUR", "600", whole(1, 10_000_000), 1
        ),
        check_max_age_min=get("BTCPAY_CHECK_MAX_AGE_MIN", "15", whole(1, 10_080), 1),
        underpayment_tolerance_percent=get(
            "BTCPAY_UNDERPAYMENT_TOLERANCE_PERCENT", "0", _percent, Decimal(0)
        ),
        rate_limit_store=get("BTCPAY_RATE_LIMIT_STORE", "memory://", _rate_limit_store, ""),
        trusted_proxies=get("BTCPAY_TRUSTED_PROXIES", "0", whole(0, 10), 0),
        max_body_bytes=get("BTCPAY_MAX_BODY_BYTES", "65536", whole(1024, 16_777_216), 1024),
        idempotency_ttl_h=get("BTCPAY_IDEMPOTENCY_TTL_H", "24", whole(1, 8760), 1),
        email_retention_days=get("BTCPAY_EMAIL_RETENTION_DAYS", "0", whole(0, 36_500), 0),
        link_invoice_expiry_min=get("BTCPAY_LINK_INVOICE_EXPIRY_MIN", "60", whole(1, 525_600), 1),
        link_invoices_per_visitor=get(
            "BTCPAY_LINK_INVOICES_PER_VISITOR", "10", whole(1, 100_000), 1
        ),
        link_open_invoices=get("BTCPAY_LINK_OPEN_INVOICES", "50", whole(1, 1_000_000), 1),
        frame_ancestors=get("BTCPAY_FRAME_ANCESTORS", "", _origins, ()),
        bind=get("BTCPAY_BIND", _default_bind(base_url), _bind, ""),
        metrics_bind=get("BTCPAY_METRICS_BIND", metrics_bind, _metrics_bind, ""),
    )
    if mistakes:
        raise SettingsError(mistakes)
    return settings
