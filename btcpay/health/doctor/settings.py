"""The settings: which are set, which are defaults, and names that nobody reads."""

import re
from collections.abc import Iterator
from urllib.parse import urlsplit

from btcpay.health.doctor.shop import Shop
from btcpay.settings import env_file
from btcpay.settings.settings import OF_FILES, VARIABLES, Settings, is_said, strange_names
from btcpay.values.finding import GREEN, RED, YELLOW, Finding
from btcpay.values.hosts import is_here

OTHER_PROXIES = ("http_proxy", "https_proxy", "all_proxy")  # what curl reads
NOBODYS = re.compile(r"(^|\.)(example(\.com|\.net|\.org)?|invalid)$")  # RFC 2606


def findings(shop: Shop) -> Iterator[Finding]:
    """One line for each variable that is set, one for all that are not."""
    known = [*VARIABLES.values(), *OF_FILES.values()]
    is_set = {name: text.strip() for name, text in shop.environ.items() if text.strip()}
    in_file = env_file.values_of(shop.environ)
    for name in known:
        if name in is_set:
            is_files = in_file.get(name, "").strip() == is_set[name]
            where = shop.environ[env_file.VARIABLE] if is_files else "environment"
            yield Finding(f"setting {name}", GREEN, f"{masked(is_set[name])} ({where})")
    absent = [name for name in VARIABLES.values() if not is_said(shop.environ, name)]
    have = "has its default" if len(absent) == 1 else "have their defaults"
    sentence, brief = f"defaults: {', '.join(absent) or 'none'}", f"{len(absent)} {have}"
    yield Finding("settings", GREEN, sentence, brief=f"{brief} (--json names them)")
    for name in strange_names(shop.environ):
        remedy = "docs/operators/settings.md has the list"
        yield Finding(f"setting {name}", YELLOW, "nothing reads this variable", remedy)
    others = [name for name in is_set if name.lower() in OTHER_PROXIES]
    if others and not shop.settings.proxy:
        sentence = "ignored: explorers and price sources are asked directly"
        yield Finding(", ".join(sorted(others)), YELLOW, sentence, "set BTCPAY_PROXY")
    yield _base_url(shop.settings)
    if shop.settings.merchant_pages:
        yield _merchant_pages(shop.settings)


def _base_url(settings: Settings) -> Finding:
    parts, is_earnest = urlsplit(settings.base_url), settings.network.main_keys
    sentence = f"payers are sent to {settings.base_url}"
    if NOBODYS.search(parts.hostname or ""):
        sentence += ", a name from the examples, which nobody can own"
        remedy = "set BTCPAY_BASE_URL to the https:// root of your own domain"
        return Finding("base URL", RED if is_earnest else YELLOW, sentence, remedy)
    if is_earnest and (not _is_sealed(settings) or is_here(parts.hostname)):
        remedy = "set BTCPAY_BASE_URL to the public https:// root"
        return Finding("base URL", YELLOW, f"{sentence} with real bitcoin", remedy)
    return Finding("base URL", GREEN, sentence)


def _is_sealed(settings: Settings) -> bool:
    """True if nobody on the way can read requests to the base URL."""
    parts = urlsplit(settings.base_url)
    return parts.scheme == "https" or (parts.hostname or "").endswith(".onion")


def _merchant_pages(settings: Settings) -> Finding:
    sentence = f"on, at {settings.base_url}/merchant"
    if _is_sealed(settings) or is_here(urlsplit(settings.base_url).hostname):
        return Finding("merchant's pages", GREEN, sentence)
    sentence += ": anyone on the same network can read login links and cookies"
    remedy = "set BTCPAY_BASE_URL to an https:// root, or BTCPAY_MERCHANT_PAGES=off"
    return Finding("merchant's pages", RED, sentence, remedy)


_KEY_IN_PATH = re.compile(
    r"(?<=[^:/]/)(?=[^/?#\s]*[0-9])(?=[^/?#\s]*[A-Za-z])[A-Za-z0-9_-]{16,}(?=[/?#\s]|$)"
)


def masked(text: str) -> str:
    """The value without what may be secret: credentials, query values, keys in paths of URLs.

    A key is a part of a path with at least sixteen letters and digits, and some of both.
    """
    text = re.sub(r"(?<=://)[^/\s]*@", "***@", text)
    text = re.sub(r"https?://\S+", lambda url: _KEY_IN_PATH.sub("***", url[0]), text)
    return re.sub(r"([?&][^=&#\s]*=)[^&#\s]+", r"\1***", text)
