"""Reads all settings from environment variables, and reports all errors together."""

import re
import sys
from collections.abc import Callable, Iterator, Mapping, MutableMapping
from dataclasses import dataclass, field, fields
from decimal import Decimal
from importlib.util import find_spec
from types import SimpleNamespace
from typing import Any, TypeVar, cast
from urllib.parse import urlsplit

from btcpay.settings import (
    confirmation_settings,
    env_file,
    mail_settings,
    ticker_settings,
)
from btcpay.settings import parsers as accepts
from btcpay.settings.confirmation_settings import Confirmations
from btcpay.settings.mail_settings import MailServer, Sender
from btcpay.settings.parsers import whole
from btcpay.settings.ticker_settings import PriceSource
from btcpay.values.errors import SettingsError
from btcpay.values.hosts import host_and_port, is_near
from btcpay.values.networks import AUTO, Network

PREFIX = "BLOCKTILL_"
T = TypeVar("T")


def derive(
    default_and_parser: Callable[[Any], tuple[str, Callable[[str], T]]],
    may_be_empty: bool = False,
    is_secret: bool = False,
) -> T:
    """Returns a dataclass field whose default and parser depend on earlier settings.

    - `default_and_parser`: a function that gets the settings that stand above this one in
      the class. It returns the default as text, and the parser.
    - `may_be_empty`: True if an empty variable is a value. Otherwise it means the default.
    - `is_secret`: True if no output may show the value (secrets.py). The variable
      NAME_FILE may then name a file that contains the value.
    """
    metadata = {
        "default_and_parser": default_and_parser,
        "may_be_empty": may_be_empty,
        "is_secret": is_secret,
    }
    # A field, although its type is that of the setting, as with `dataclasses.field`.
    return cast(T, field(repr=not is_secret, metadata=metadata))


def setting(default: str, parser: Callable[[str], T], **more: bool) -> T:
    """Returns a dataclass field with this default and this parser.

    `default` is a text that the parser accepts. `more` are the arguments `may_be_empty`
    and `is_secret` of `derive`.
    """
    return derive(lambda _above: (default, parser), **more)


def _of_network(name: str, parser: Callable[[str], T]) -> T:
    """Returns a dataclass field whose default is the network's attribute `name`, a list."""
    return derive(lambda above: (" ".join(getattr(above.network, name)), parser))


@dataclass(frozen=True)
class Settings:
    """All settings of the service. docs/operators/settings.md explains them.

    The environment variable of a field is BLOCKTILL_ followed by the field's name in
    capital letters.
    """

    network: Network = setting("regtest", accepts.network)
    database_url: str = setting(
        "sqlite:///var/blocktill.db", accepts.database_url, is_secret=True
    )
    base_url: str = setting("http://127.0.0.1:8000", accepts.base_url)
    proxy: str = setting("", accepts.proxy, is_secret=True)
    explorers: tuple[str, ...] = _of_network("explorers", accepts.explorers)
    peers: tuple[str, ...] = setting("", accepts.peers)
    price_sources: tuple[PriceSource, ...] = _of_network(
        "price_sources", ticker_settings.price_sources
    )
    # More than half, so that a minority of false tickers cannot set the price.
    price_quorum: int = derive(
        lambda above: (
            str(len(above.price_sources) // 2 + 1),
            whole(1, len(above.price_sources)),
        )
    )
    currency_sources: tuple[PriceSource, ...] = _of_network(
        "currency_sources", ticker_settings.currency_sources
    )
    price_max_age_s: int = setting("120", whole(1, 3600))
    confirmations: Confirmations = setting("1", confirmation_settings.confirmations)
    explorer_calls_per_hour: int = derive(
        lambda above: (str(above.network.calls_per_hour), whole(1, 10_000_000))
    )
    check_max_age_min: int = setting("15", whole(1, 10_080))
    underpayment_tolerance_percent: Decimal = setting("0", accepts.percent)
    rate_limit_store: str = setting(
        "memory://", accepts.rate_limit_store, is_secret=True
    )
    trusted_proxies: int = setting("0", whole(0, 10))
    visitor_addresses: bool = setting("on", accepts.switch)
    max_body_bytes: int = setting("65536", whole(1024, 16_777_216))
    idempotency_ttl_h: int = setting("24", whole(1, 8760))
    email_retention_days: int = setting("0", whole(0, 36_500))
    link_invoice_expiry_min: int = setting("60", whole(1, 525_600))
    link_invoices_per_visitor: int = setting("10", whole(1, 100_000))
    link_open_invoices: int = setting("50", whole(1, 1_000_000))
    frame_ancestors: tuple[str, ...] = setting("", accepts.origins)
    merchant_pages: bool = setting("off", accepts.switch)
    security_contact: str = setting("", accepts.security_contact)
    setup_token: str = setting("", accepts.setup_token, is_secret=True)
    owner_password: str = setting("", accepts.owner_password, is_secret=True)
    greenfield: bool = setting("off", accepts.switch)
    smtp_url: MailServer | None = setting("", mail_settings.smtp_url, is_secret=True)
    mail_from: Sender | None = setting("", mail_settings.sender)
    bind: str = derive(
        lambda above: (
            f"127.0.0.1:{urlsplit(above.base_url).port or 8000}",
            accepts.bind,
        )
    )
    metrics_bind: str = setting(
        "127.0.0.1:9464", accepts.metrics_bind, may_be_empty=True
    )


# At least one of these settings must name a source of blocks.
OF_BLOCKS = ("explorers", "peers")
VARIABLES = {entry.name: PREFIX + entry.name.upper() for entry in fields(Settings)}
# The variable that has the path of a secret's file, by the secret's own variable.
OF_FILES = {
    VARIABLES[entry.name]: VARIABLES[entry.name] + env_file.OF_A_FILE
    for entry in fields(Settings)
    if entry.metadata["is_secret"]
}
_ONION = re.compile(r"(\w+://)?[^/?#]*\.onion(:[0-9]+)?([/?#]|$)")
ONION_WAY = "a .onion name only with BLOCKTILL_PROXY, such as socks5h://127.0.0.1:9050"


def is_set(environ: Mapping[str, str], variable: str) -> bool:
    """True if the environment sets the variable, or names a file for it."""
    return any(
        environ.get(name, "").strip() for name in (variable, OF_FILES.get(variable, ""))
    )


# Variables for programs that use the API, such as those that `sandbox --once` starts.
OF_CLIENTS = {"BLOCKTILL_URL", "BLOCKTILL_KEY", "BLOCKTILL_SANDBOX_URL"}


def strange_names(environ: Mapping[str, str]) -> list[str]:
    """Returns the names of BLOCKTILL_ variables that are set, but that nothing reads."""
    our_names = {*VARIABLES.values(), *OF_FILES.values(), env_file.VARIABLE}
    names = environ.keys() - our_names - OF_CLIENTS
    return sorted(
        name for name in names if name.startswith(PREFIX) and environ[name].strip()
    )


def read(environ: Mapping[str, str]) -> Settings:
    """Returns the settings in the environment variables.

    Raises SettingsError if any are invalid. The error lists all mistakes: after an
    invalid value the remaining settings are still checked.
    """
    mistakes: list[str] = []
    above = SimpleNamespace()  # the settings that have been read so far
    for entry in fields(Settings):
        variable = VARIABLES[entry.name]
        default, parse = entry.metadata["default_and_parser"](above)
        value = parse(default)  # also stands in for an invalid value
        try:
            text = _text_of(environ, variable)
            is_set_empty = entry.metadata["may_be_empty"] and variable in environ
            if text or is_set_empty:
                value = parse(text)
        except SettingsError as error:
            mistakes += error.mistakes
        except ValueError as error:
            mistakes.append(f"{variable} accepts {error}")
        setattr(above, entry.name, value)
    mistakes += _contradictions(above)
    if mistakes:
        raise SettingsError(mistakes)
    return Settings(**vars(above))


def read_or_exit(environ: MutableMapping[str, str]) -> Settings:
    """Returns the settings in the environment and in the file that BLOCKTILL_ENV_FILE names.

    If there are errors, prints all of them to standard error, and exits with status 2.
    """
    try:
        env_file.fill(environ)
        return read(environ)
    except SettingsError as error:
        for mistake in error.mistakes:
            print(f"blocktill: {mistake}", file=sys.stderr)
        raise SystemExit(2) from None


def _contradictions(above: SimpleNamespace) -> Iterator[str]:
    """Yields an error for each combination of settings that cannot work."""
    if above.proxy.startswith("socks5h:") and find_spec("socks") is None:
        install = "pip install --require-hashes -r requirements/socks.txt"
        yield f"{VARIABLES['proxy']} accepts socks5h:// only with PySocks: {install}"
    yield from _contradictions_of_peers(above)
    for name in ("explorers", "peers", "price_sources", "currency_sources"):
        has_onion = any(map(_is_onion, getattr(above, name)))
        if has_onion and not above.proxy:
            yield f"{VARIABLES[name]} accepts {ONION_WAY}"
    has_source_of_blocks = any(getattr(above, name) for name in OF_BLOCKS)
    if not has_source_of_blocks:
        first, *others = (VARIABLES[name] for name in OF_BLOCKS)
        yield f"{first} accepts none only with {' or '.join(others)}"


def _contradictions_of_peers(above: SimpleNamespace) -> Iterator[str]:
    """Yields an error if the peers do not fit the proxy, or do not fit the network."""
    is_auto = above.peers == (AUTO,)
    hosts = [host_and_port(place)[0] for place in above.peers if not is_auto]
    may_be_far = is_auto or not all(map(is_near, hosts))
    if above.proxy.startswith("http:") and may_be_far:
        where = "only peers on this machine or in its network: others need socks5h://"
        yield f"{VARIABLES['peers']} accepts with an http:// proxy {where}"
    if is_auto and not above.network.seeds:
        yield f"{VARIABLES['peers']} accepts auto only on public networks"


def _is_onion(source: str | PriceSource) -> bool:
    """True if the host is a .onion name. `source` is a URL, `host:port` or a ticker."""
    if isinstance(source, PriceSource):
        source = source.url
    return _ONION.match(source) is not None


def _text_of(environ: Mapping[str, str], name: str) -> str:
    """Returns a setting's text, from its variable or its file; "" if it is not set.

    Raises SettingsError, whose message contains no secret.
    """
    text = environ.get(name, "").strip()
    by_file = OF_FILES.get(name, "")
    path = environ.get(by_file, "").strip()
    if not path:
        return text
    if text:
        raise SettingsError([f"{name} and {by_file} are both set: remove one of them"])
    content = env_file.text_of(path, f"{by_file}: {path}").strip()
    if not content:
        raise SettingsError([f"{by_file}: {path} is empty"])
    return content
