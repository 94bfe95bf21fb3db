"""Examines the settings: those that are set, unknown names, and the base URL."""

from collections.abc import Iterator
from urllib.parse import urlsplit

from btcpay.health.doctor.shop import Shop
from btcpay.settings import env_file
from btcpay.settings.secrets import without_secrets
from btcpay.settings.settings import OF_FILES, VARIABLES, Settings, strange_names
from btcpay.values.finding import GREEN, RED, YELLOW, Colour, Finding
from btcpay.values.hosts import is_here, is_of_examples


def findings(shop: Shop) -> Iterator[Finding]:
    """Yields the findings about the settings, in this order:

    - one for each setting that is set, with its value and where it is set;
    - a yellow one for each variable that looks like a setting but is none;
    - one about the base URL;
    - one about the merchant's pages, if they are switched on.
    """
    in_file = env_file.values_of(shop.environ)
    for name in (*VARIABLES.values(), *OF_FILES.values()):
        text = shop.environ.get(name, "").strip()
        if not text:
            continue
        place = "environment"
        if in_file.get(name, "").strip() == text:
            place = shop.environ[env_file.VARIABLE]
        sentence = f"{without_secrets(name, text)} ({place})"
        yield Finding(f"setting {name}", GREEN, sentence)
    for name in strange_names(shop.environ):
        remedy = "docs/operators/settings.md has the list"
        yield Finding(f"setting {name}", YELLOW, "nothing reads this variable", remedy)
    yield _base_url(shop.settings)
    if shop.settings.merchant_pages:
        yield _merchant_pages(shop.settings)


def _base_url(settings: Settings) -> Finding:
    host = urlsplit(settings.base_url).hostname
    is_real_money = settings.network.main_keys
    sentence = f"payers are sent to {settings.base_url}"
    if is_of_examples(host or ""):
        colour: Colour = YELLOW
        if is_real_money:
            colour = RED
        sentence += ", a name from the examples, which nobody can own"
        remedy = "set BLOCKTILL_BASE_URL to the https:// root of your own domain"
        return Finding("base URL", colour, sentence, remedy)
    is_public = _is_encrypted(settings) and not is_here(host)
    if is_real_money and not is_public:
        remedy = "set BLOCKTILL_BASE_URL to the public https:// root"
        return Finding("base URL", YELLOW, f"{sentence} with real bitcoin", remedy)
    return Finding("base URL", GREEN, sentence)


def _is_encrypted(settings: Settings) -> bool:
    """True if requests to the base URL are encrypted: by https, or to a Tor .onion host."""
    parts = urlsplit(settings.base_url)
    return parts.scheme == "https" or (parts.hostname or "").endswith(".onion")


def _merchant_pages(settings: Settings) -> Finding:
    sentence = f"on, at {settings.base_url}/merchant"
    if _is_encrypted(settings) or is_here(urlsplit(settings.base_url).hostname):
        return Finding("merchant's pages", GREEN, sentence)
    sentence += ": anyone on the same network can read login links and cookies"
    remedy = (
        "set BLOCKTILL_BASE_URL to an https:// root, or BLOCKTILL_MERCHANT_PAGES=off"
    )
    return Finding("merchant's pages", RED, sentence, remedy)
