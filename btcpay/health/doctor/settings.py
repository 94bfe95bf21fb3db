"""The settings: which are set, which are defaults, and names that nobody reads."""

import re
from collections.abc import Iterator
from urllib.parse import urlsplit

from btcpay.health.doctor.finding import GREEN, RED, YELLOW, Finding, Patient
from btcpay.settings import env_file
from btcpay.settings.settings import OF_FILES, VARIABLES, Settings, is_said, strange_names

LOOPBACK = ("127.0.0.1", "localhost", "::1")
OTHER_PROXIES = ("http_proxy", "https_proxy", "all_proxy")  # what curl reads
NOBODYS = re.compile(r"(^|\.)(example(\.com|\.net|\.org)?|invalid)$")  # RFC 2606


def findings(patient: Patient) -> Iterator[Finding]:
    """One line for each variable that is set, one for all that are not."""
    known = [*VARIABLES.values(), *OF_FILES.values()]
    is_set = {name: text.strip() for name, text in patient.environ.items() if text.strip()}
    in_file = env_file.values_of(patient.environ)
    for name in known:
        if name in is_set:
            is_files = in_file.get(name, "").strip() == is_set[name]
            where = patient.environ[env_file.VARIABLE] if is_files else "environment"
            yield Finding(f"setting {name}", GREEN, f"{masked(is_set[name])} ({where})")
    absent = [name for name in VARIABLES.values() if not is_said(patient.environ, name)]
    have = "has its default" if len(absent) == 1 else "have their defaults"
    told, brief = f"defaults: {', '.join(absent) or 'none'}", f"{len(absent)} {have}"
    yield Finding("settings", GREEN, told, brief=f"{brief} (--json names them)")
    for name, meant in strange_names(patient.environ).items():
        remedy = f"did you mean {meant}?" if meant else "docs/settings.md has the list"
        yield Finding(f"setting {name}", YELLOW, "nothing reads this variable", remedy)
    others = [name for name in is_set if name.lower() in OTHER_PROXIES]
    if others and not patient.settings.proxy:
        told = "not read: explorers and price sources are asked directly"
        yield Finding(", ".join(sorted(others)), YELLOW, told, "set BTCPAY_PROXY")
    yield _base_url(patient.settings)
    if patient.settings.merchant_pages:
        yield _merchant_pages(patient.settings)


def _base_url(settings: Settings) -> Finding:
    parts, is_earnest = urlsplit(settings.base_url), settings.network.main_keys
    told = f"payers are sent to {settings.base_url}"
    if NOBODYS.search(parts.hostname or ""):
        told += ", a name from the examples that nobody can have"
        remedy = "set BTCPAY_BASE_URL to the https:// root of your own name"
        return Finding("base URL", RED if is_earnest else YELLOW, told, remedy)
    if is_earnest and (not _is_sealed(settings) or parts.hostname in LOOPBACK):
        remedy = "set BTCPAY_BASE_URL to the public https:// root"
        return Finding("base URL", YELLOW, f"{told} with real bitcoin", remedy)
    return Finding("base URL", GREEN, told)


def _is_sealed(settings: Settings) -> bool:
    """Whether nobody on the way can read what goes to the base URL."""
    parts = urlsplit(settings.base_url)
    return parts.scheme == "https" or (parts.hostname or "").endswith(".onion")


def _merchant_pages(settings: Settings) -> Finding:
    told = f"on, at {settings.base_url}/merchant"
    if _is_sealed(settings) or urlsplit(settings.base_url).hostname in LOOPBACK:
        return Finding("merchant's pages", GREEN, told)
    told += ": whoever is on the same network can read login links and cookies"
    remedy = "set BTCPAY_BASE_URL to an https:// root, or BTCPAY_MERCHANT_PAGES=off"
    return Finding("merchant's pages", RED, told, remedy)


def masked(text: str) -> str:
    """The value without what may be secret: credentials and query values of URLs in it."""
    text = re.sub(r"(?<=://)[^/\s]*@", "***@", text)
    return re.sub(r"([?&][^=&#\s]*=)[^&#\s]+", r"\1***", text)
