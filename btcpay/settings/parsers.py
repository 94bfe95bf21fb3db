"""What each variable accepts: from its text to its value.

Each function raises ValueError with what it accepts, to follow "BTCPAY_... accepts".
"""

import re
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from decimal import Decimal
from importlib.util import find_spec
from urllib.parse import urlsplit

from btcpay.values.networks import NETWORKS, Network


@dataclass(frozen=True)
class PriceSource:
    """One ticker: where to ask, and the RFC 6901 pointer to the BTC/USD number in its answer."""

    url: str
    pointer: str

    def of(self, currency: str) -> "PriceSource":
        """The source for that currency, whose code goes where `{currency}` stands."""
        names = {"{CURRENCY}": currency.upper(), "{currency}": currency.lower()}
        url, pointer = self.url, self.pointer
        for place, code in names.items():
            url, pointer = url.replace(place, code), pointer.replace(place, code)
        return PriceSource(url, pointer)


@dataclass(frozen=True)
class Confirmations:
    """How deep a payment must be, by the invoice's amount: ascending (from_usd, blocks)."""

    steps: tuple[tuple[Decimal, int], ...]

    def for_usd(self, amount_usd: Decimal) -> int:
        """Blocks asked of an invoice of that amount: the last step that it reaches."""
        return [blocks for from_usd, blocks in self.steps if amount_usd >= from_usd][-1]


def whole(low: int, high: int) -> Callable[[str], int]:
    """What accepts a number of this range, without sign and spaces."""

    def parse(text: str) -> int:
        if not re.fullmatch(r"[0-9]{1,12}", text) or not low <= int(text) <= high:
            raise ValueError(f"a whole number from {low} to {high}")
        return int(text)

    return parse


def percent(text: str) -> Decimal:
    """A share from 0 to 5 percent, with up to nine decimals."""
    if not re.fullmatch(r"[0-9](\.[0-9]{1,9})?", text) or Decimal(text) > 5:
        raise ValueError("a number from 0 to 5")
    return Decimal(text)


def switch(text: str) -> bool:
    """Whether it is on."""
    if text not in ("on", "off"):
        raise ValueError("on or off")
    return text == "on"


def _is_port(text: str) -> bool:
    return re.fullmatch("[0-9]{1,5}", text) is not None and int(text) <= 65535


def network(text: str) -> Network:
    """One of the networks that are known, by its name."""
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


def base_url(text: str) -> str:
    """An http(s) root, without the slash at its end."""
    parts = urlsplit(text)
    if not is_http_url(text) or parts.query or parts.fragment or parts.username:
        raise ValueError("an http:// or https:// root such as https://pay.example.com")
    return text.rstrip("/")


def origins(text: str) -> tuple[str, ...]:
    """Origins, separated by spaces; none at all is allowed."""
    for origin in text.split():
        if not is_http_url(origin) or not re.fullmatch(r"https?://[A-Za-z0-9.:\[\]-]+", origin):
            raise ValueError("origins such as https://shop.example.com, separated by spaces")
    return tuple(text.split())


def proxy(text: str) -> str:
    """The proxy that explorers and price sources are asked through; nothing at all for none.

    socks5:// is refused: everywhere else it means that names are looked up on this machine.
    """
    host = r"(?:\[[0-9A-Fa-f:.]+\]|[^/@:?#\s]+)"
    match = re.fullmatch(rf"(socks5h|http)://(?:[^/@\s]*@)?{host}:([0-9]{{1,5}})/?", text)
    if text and not (match and is_http_url(f"http{text[len(match[1]) :]}")):
        hint = "; socks5:// would look names up on this machine" if "socks5:" in text else ""
        raise ValueError(f"socks5h:// or http://, then [user:password@]host:port{hint}")
    if text.startswith("socks5h:") and find_spec("socks") is None:
        raise ValueError("socks5h:// with PySocks alone: pip install 'blocktill[socks]'")
    return text.rstrip("/")


def _require_way(urls: Iterable[str], proxy: str) -> None:
    if not proxy and any((urlsplit(url).hostname or "").endswith(".onion") for url in urls):
        raise ValueError("a .onion name with BTCPAY_PROXY alone, such as socks5h://127.0.0.1:9050")


def explorers(text: str, proxy: str = "") -> tuple[str, ...]:
    """One or more roots of Esplora interfaces, without the slash at their ends."""
    roots = tuple(root.rstrip("/") for root in text.split())
    if not roots or not all(is_http_url(root) for root in roots):
        raise ValueError("one or more Esplora roots (http:// or https://), separated by spaces")
    _require_way(roots, proxy)
    return roots


_SOURCES = "one or more URL#/json/pointer, separated by spaces"


def price_sources(text: str, proxy: str = "", accepted: str = _SOURCES) -> tuple[PriceSource, ...]:
    """One or more URL#/json/pointer."""
    sources = []
    for item in text.split():
        url, hash_sign, pointer = item.partition("#")
        if not is_http_url(url) or not hash_sign or not re.fullmatch(r"(/[^/]*)*", pointer):
            raise ValueError(accepted)
        sources.append(PriceSource(url, pointer))
    if not sources:
        raise ValueError(accepted)
    _require_way([source.url for source in sources], proxy)
    return tuple(sources)


def currency_sources(text: str, proxy: str = "") -> tuple[PriceSource, ...]:
    """The same, each with a place for the code of a currency."""
    accepted = f"{_SOURCES}, each with {{CURRENCY}} (for EUR) or {{currency}} (for eur) in it"
    sources = price_sources(text, proxy, accepted)
    if any(source == source.of("EUR") for source in sources):
        raise ValueError(accepted)
    return sources


def confirmations(text: str) -> Confirmations:
    """Blocks, then ascending steps by the amount in USD."""
    accepts = "a number of blocks from 1 to 100, or ascending steps by USD such as 1 3@1000 6@10000"
    steps: list[tuple[Decimal, int]] = []
    for position, item in enumerate(text.split()):
        match = re.fullmatch(r"([0-9]{1,3})(?:@([0-9]{1,12}(?:\.[0-9]{1,2})?))?", item)
        if not match or (match[2] is None) != (position == 0):
            raise ValueError(accepts)
        steps.append((Decimal(match[2] or 0), int(match[1])))
    amounts = [from_usd for from_usd, _ in steps]
    is_ascending = bool(steps) and amounts == sorted(set(amounts))
    if not is_ascending or any(not 1 <= blocks <= 100 for _, blocks in steps):
        raise ValueError(accepts)
    return Confirmations(tuple(steps))


# libpq's message about a password with one of these would quote it.
_NOT_IN_A_SERVER_URL = re.compile(r"%(?![0-9A-Fa-f]{2})|%00|[\ud800-\udfff]")


def database_url(text: str) -> str:
    """The URL of a SQLite file, or of a database on a PostgreSQL server."""
    place = r"(?:[^/@\s]*@)?[^/@:\s]+(?::([^/\s]*))?/[^/?\s]+"
    server = re.fullmatch(rf"postgresql://{place}(?:\?\S*)?", text)
    if server and _NOT_IN_A_SERVER_URL.search(text):
        raise ValueError("a sign such as % in a password only as %25, and nothing but UTF-8")
    if not (re.fullmatch("sqlite:///.+", text) or (server and _is_port(server[1] or "5432"))):
        said = "; write postgresql://" if text.startswith("postgres://") else ""
        raise ValueError(
            "sqlite:///path (four slashes for an absolute path) or"
            f" postgresql://user:password@host:port/name{said}"
        )
    return text


def rate_limit_store(text: str) -> str:
    """This process's memory, or the URL of a Redis server."""
    host = r"(?:\[[0-9A-Fa-f:.]+\]|[^/@:?\s]+)"
    server = re.fullmatch(rf"rediss?://(?:[^/@\s]*@)?{host}(?::([^/?\s]*))?(?:[/?]\S*)?", text)
    if text != "memory://" and not (server and _is_port(server[1] or "6379")):
        raise ValueError("memory:// or redis://host:port/n")
    return text


def bind(text: str) -> str:
    """Where to listen: host and port, or a socket in the file system."""
    host, _, port = text.rpartition(":")
    if not re.fullmatch(r"unix:\S+", text) and not (re.fullmatch(r"\S+", host) and _is_port(port)):
        raise ValueError("host:port or unix:/path")
    return text


def metrics_bind(text: str) -> str:
    """Host and port, or nothing at all."""
    host, _, port = text.rpartition(":")
    if text and not (re.fullmatch(r"\[[0-9A-Fa-f:.]+\]|[^\s:]+", host) and _is_port(port)):
        raise ValueError("host:port, or nothing at all for no metrics")
    return text
