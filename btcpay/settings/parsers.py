"""Parses the settings, which are texts in environment variables.

A parser gets the text, and returns the value of the setting. It raises ValueError for an
invalid text; the error's message says what the setting accepts.
"""

import re
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from decimal import Decimal
from urllib.parse import quote, urlsplit

from btcpay.values.hosts import ascii_place, with_ascii_host
from btcpay.values.networks import AUTO, NETWORKS, Network


@contextmanager
def accepting(words: str) -> Iterator[None]:
    """Decorates a parser: replaces the message of its ValueErrors by `words`.

    `words` say which texts the parser accepts.
    """
    try:
        yield
    except ValueError:
        raise ValueError(words) from None


def require(is_good: object) -> None:
    """Raises ValueError if the value is false, 0, empty or None."""
    if not is_good:
        raise ValueError


def whole(low: int, high: int) -> Callable[[str], int]:
    """Returns a parser of whole numbers from `low` to `high`."""

    @accepting(f"a whole number from {low} to {high}")
    def parse(text: str) -> int:
        require(re.fullmatch(r"[0-9]{1,12}", text) and low <= int(text) <= high)
        return int(text)

    return parse


@accepting("on or off")
def switch(text: str) -> bool:
    require(text in ("on", "off"))
    return text == "on"


@accepting(f"one of {', '.join(NETWORKS)}")
def network(text: str) -> Network:
    """Returns the network with this name. Raises ValueError if there is none."""
    require(text in NETWORKS)
    return NETWORKS[text]


@accepting("a number from 0 to 5")
def percent(text: str) -> Decimal:
    require(re.fullmatch(r"[0-9](\.[0-9]{1,9})?", text) and Decimal(text) <= 5)
    return Decimal(text)


def url(text: str, *schemes: str) -> str:
    """Returns an absolute URL with its host in ASCII.

    Raises ValueError if the scheme is not one of `schemes`, if the port is 0, or if the
    URL contains a blank, a control character, or a lone surrogate, which stands for a
    byte that is not UTF-8.
    """
    require(not re.search(r"[\s\x00-\x1f\ud800-\udfff]", text))
    parts = urlsplit(text)
    require(parts.scheme in schemes and parts.port != 0)
    return with_ascii_host(text)


def http_url(text: str) -> str:
    """Returns an absolute http or https URL with its host in ASCII.

    Raises ValueError if the text is no such URL.
    """
    return url(text, "http", "https")


# A mail header that contains a link has room for 998 characters.
_MOST_CHARACTERS = 500
# Characters that `quote` keeps. % begins an escape that is there already.
_AS_IT_IS = "!#$%&'()*+,/:;=?@[]~"


@accepting("an http:// or https:// root such as https://pay.example.com")
def base_url(text: str) -> str:
    """Returns an http or https URL, which may have a path, without a slash at its end.

    The result is in ASCII. Raises ValueError if the text is no such URL, if it has a
    query, a fragment, a user name or a password, or if the result has more than
    _MOST_CHARACTERS.
    """
    has_login = "@" in urlsplit(text).netloc
    require(not has_login and "?" not in text and "#" not in text)
    # ASCII, because the URL is used in headers of responses and mails.
    url_without_slash = quote(http_url(text), safe=_AS_IT_IS).rstrip("/")
    require(len(url_without_slash) <= _MOST_CHARACTERS)
    return url_without_slash


@accepting("origins such as https://shop.example.com, separated by spaces")
def origins(text: str) -> tuple[str, ...]:
    urls = tuple(map(http_url, text.split()))
    for origin in urls:
        require(re.fullmatch(r"https?://[a-z0-9.:\[\]-]+", origin))
    return urls


@accepting(
    "socks5h:// or http://, then [user:password@]host:port; socks5:// would look names up on this"
    " machine"
)
def proxy(text: str) -> str:
    if not text:
        return ""
    require(re.fullmatch(r"\w+://[^/?#]*:[0-9]+/?", text))
    return url(text, "socks5h", "http").rstrip("/")


@accepting(
    "one or more Esplora roots (http:// or https://), separated by spaces, or none"
)
def explorers(text: str) -> tuple[str, ...]:
    if text == "none":
        return ()
    return tuple(http_url(root).rstrip("/") for root in words(text))


def words(text: str) -> list[str]:
    """Returns the words of the text. Raises ValueError if there are none."""
    require(text.split())
    return text.split()


# libpq's error message about one of these in a password would contain the password.
_NOT_IN_A_SERVER_URL = re.compile(r"%(?![0-9A-Fa-f]{2})|%00|[\ud800-\udfff]")


@accepting(
    "sqlite:///path (four slashes for an absolute path) or"
    " postgresql://user:password@host:port/name, in UTF-8, a % in the password as %25"
)
def database_url(text: str) -> str:
    """Returns the URL of a SQLite file or of a PostgreSQL database.

    Raises ValueError for any other text.
    """
    if re.fullmatch("sqlite:///.+", text):
        return text
    has_host_and_name = re.fullmatch(r"[^/]+//[^/?#]+/[^/?#]+(\?.*)?", text)
    require(has_host_and_name and not _NOT_IN_A_SERVER_URL.search(text))
    is_unix_socket = re.match("postgresql://([^/@]*@)?%2F", text, re.I)
    if is_unix_socket:  # its folder stands in place of a host, which `url` would refuse
        return text
    return url(text, "postgresql")


@accepting("memory:// or redis://host:port/n")
def rate_limit_store(text: str) -> str:
    if text == "memory://":
        return text
    return url(text, "redis", "rediss")


@accepting("mailto:somebody@example.com or https://example.com/report, or nothing")
def security_contact(text: str) -> str:
    require(re.fullmatch(r"(mailto:[!-~]+@[!-~]+|https://[!-~]+)?", text))
    return text


@accepting("20 to 200 letters, digits, - and _, or nothing")
def setup_token(text: str) -> str:
    require(re.fullmatch(r"([A-Za-z0-9_-]{20,200})?", text))
    return text


@accepting("12 to 200 characters, none of them invisible, or nothing")
def owner_password(text: str) -> str:
    require(not text or 12 <= len(text) <= 200)
    require(text.isprintable())
    return text


@accepting("host:port or unix:/path")
def bind(text: str) -> str:
    if re.fullmatch(r"unix:\S+", text):
        return text
    return _place(text)


@accepting("host:port of nodes of the Bitcoin network, separated by commas, or auto")
def peers(text: str) -> tuple[str, ...]:
    """Returns the nodes, each once, as `host:port`; AUTO alone for `auto`.

    Raises ValueError for any other text, and for the port 0.
    """
    texts = text.replace(",", " ").split()
    different_texts = tuple(dict.fromkeys(texts))
    if different_texts == (AUTO,):
        return different_texts
    places = tuple(map(_place, different_texts))
    require(not any(place.endswith(":0") for place in places))
    return places


@accepting("host:port, or nothing at all for no metrics")
def metrics_bind(text: str) -> str:
    if not text:
        return ""
    return _place(text)


def _place(text: str) -> str:
    """Returns `host:port` with the host in ASCII. Raises ValueError for any other text."""
    match = re.fullmatch(r"(?:\[[0-9A-Fa-f:.]+\]|[^\s:]+):([0-9]{1,5})", text)
    require(match and int(match[1]) <= 65535)
    return ascii_place(text)
