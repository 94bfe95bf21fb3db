"""Checks and normalises host names and URLs as text, without DNS lookups."""

import ipaddress
import re
from urllib.parse import SplitResult, urlsplit

import idna

MAX_URL_CHARACTERS = 2000  # of a whole URL; all browsers accept as many
MAX_HOST_CHARACTERS = 253  # RFC 1035, section 2.3.4, as text
# The last label begins with a letter: browsers and resolvers read others as numbers, such as 127.1.
_NAME = re.compile(r"([a-z0-9-]{1,63}\.)+[a-z][a-z0-9-]{0,62}|localhost")
# Names in private networks may have an underscore, which no registry allows.
_ASCII_LABEL = re.compile(r"[a-z0-9_]([a-z0-9_-]{0,61}[a-z0-9_])?")
# If the last label of a host matches, browsers read the host as an IPv4 address.
_NUMBER = re.compile(r"[0-9]+|0x[0-9a-f]*")
# Names that are reserved for examples (RFC 2606), and for tests and this machine (RFC 6761).
_OF_EXAMPLES = re.compile(r"(^|\.)(example(\.com|\.net|\.org)?|invalid)$")
_WITHOUT_MAIL = re.compile(r"(^|\.)(test|localhost)$")
# Printable ASCII characters except the backslash, which browsers read as a slash.
_PRINTABLE_URL = re.compile(r"https?://[!-[\]-~]+")
_ACE_PREFIX = "xn--"
_CAPITAL_SHARP_S = "\u1e9e"


def ascii_host(text: str) -> str:
    """Returns a host in canonical form: a lower-case ASCII name, or an IP address.

    IPv6 addresses have no brackets. Names are converted by UTS #46 and IDNA 2008, as in
    browsers: `straße.de` becomes `xn--strae-oqa.de`. A final dot is dropped. Raises
    ValueError for an invalid host and for an ambiguous one, such as an emoji or another
    spelling of an IPv4 address (127.1).
    """
    if len(text) > MAX_HOST_CHARACTERS + 1:
        raise ValueError("a host's name has at most 253 characters")
    if ":" in text:
        return str(ipaddress.IPv6Address(text))
    if _CAPITAL_SHARP_S in text:
        raise ValueError("a letter that is ss before Unicode 15.1 and sharp s since")
    name = idna.uts46_remap(text, std3_rules=False).removesuffix(".")
    labels = [_ascii_label(label) for label in name.split(".")]
    host = ".".join(labels)
    if len(host) > MAX_HOST_CHARACTERS:
        raise ValueError("a host's name has at most 253 characters")
    is_address = _NUMBER.fullmatch(labels[-1])
    if is_address and str(ipaddress.IPv4Address(host)) != host:
        raise ValueError("another spelling of an IPv4 address")
    return host


def _ascii_label(label: str) -> str:
    """Returns a label of a name in the form that DNS uses.

    Raises ValueError if the label is invalid.
    """
    if label.startswith(_ACE_PREFIX) or not label.isascii():
        return idna.alabel(label).decode()
    if not _ASCII_LABEL.fullmatch(label):
        raise ValueError("not a part of a host's name")
    return label


def with_ascii_host(url: str) -> str:
    """Returns the URL with its host in the canonical form of `ascii_host`.

    Everything else in the URL stays the same. Raises ValueError if the URL has no host,
    or a host that `ascii_host` refuses.
    """
    parts = urlsplit(url)
    scheme, _, rest = url.partition("://")
    # `rest` begins otherwise if "://" is missing, or if urlsplit has removed tabs from the host.
    if not parts.hostname or not rest.startswith(parts.netloc):
        raise ValueError("a URL without a host")
    credentials, at_sign, place = parts.netloc.rpartition("@")
    path_and_query = rest.removeprefix(parts.netloc)
    return f"{scheme}://{credentials}{at_sign}{ascii_place(place)}{path_and_query}"


def ascii_place(place: str) -> str:
    """Returns `host` or `host:port` with the host in the canonical form of `ascii_host`.

    Raises ValueError if `ascii_host` refuses the host, or if brackets are around
    anything but an IPv6 address.
    """
    if place.startswith("["):
        host, bracket, port = place[1:].partition("]")
        # urlsplit also accepts future IP versions (IPvFuture) in brackets
        if not bracket or ":" not in host:
            raise ValueError("brackets are for IPv6 addresses")
        return f"[{ascii_host(host)}]{port}"
    host, colon, port = place.partition(":")
    return f"{ascii_host(host)}{colon}{port}"


def web_parts(url: str) -> SplitResult:
    """Returns the parts of an http or https URL of printable ASCII.

    The host must be a name with a dot, localhost, or an IP address in canonical form.
    Browsers, resolvers and content security policies disagree about other forms. Raises
    ValueError for any other URL.
    """
    if len(url) > MAX_URL_CHARACTERS:
        raise ValueError
    parts = urlsplit(url)
    host = parts.hostname or ""
    # urlsplit also accepts future IP versions (IPvFuture) in brackets
    if "[" in parts.netloc and ":" not in host:
        raise ValueError
    if _NAME.fullmatch(host):
        canonical_host = ascii_host(host)
    else:
        canonical_host = str(ipaddress.ip_address(host))
    # An IPv6 address with a zone, such as fe80::1%eth0, is refused.
    if canonical_host != host or "%" in host:
        raise ValueError
    if not _PRINTABLE_URL.fullmatch(url) or parts.port == 0:
        raise ValueError
    return parts


def web_url(text: str) -> str:
    """Returns the text as an http or https URL that `web_parts` accepts.

    If the text has characters other than ASCII, its host is converted to ASCII. A text
    that is all ASCII is returned unchanged, because shops compare URLs as texts. Raises
    ValueError if `web_parts` refuses the result.
    """
    if len(text) > MAX_URL_CHARACTERS:
        raise ValueError
    url = text
    if not text.isascii():
        url = with_ascii_host(text)
    web_parts(url)
    return url


def is_of_examples(host: str) -> bool:
    """True if the host's name is reserved for examples (RFC 2606), so nobody can own it."""
    return bool(_OF_EXAMPLES.search(host))


def is_without_mail(domain: str) -> bool:
    """True if no mail can arrive at this domain: it has no dot, or is a reserved name."""
    if "." not in domain or is_of_examples(domain):
        return True
    return bool(_WITHOUT_MAIL.search(domain))


def is_here(host: str | None) -> bool:
    """True if the host is this machine: a loopback address or a localhost name.

    Source: RFC 6761.
    """
    if not host:
        return False
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host == "localhost" or host.endswith(".localhost")


def host_and_port(place: str) -> tuple[str, int]:
    """Splits `host:port` or `[IPv6 address]:port` into host and port.

    Raises ValueError if there is no port.
    """
    host, _, port = place.rpartition(":")
    return host.strip("[]"), int(port)


def is_near(host: str | None) -> bool:
    """True if the host is this machine, or an IP address that is not public.

    Addresses of local networks, such as 192.168.1.5, and reserved addresses are not
    public.
    """
    try:
        return not ipaddress.ip_address(host or "").is_global
    except ValueError:
        return is_here(host)
