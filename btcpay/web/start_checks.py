"""Checks the settings and the database before gunicorn listens."""

import sys
from collections.abc import Sequence
from typing import Any, NoReturn

from btcpay.settings.settings import Settings
from btcpay.values.errors import DatabaseNotReady
from btcpay.values.hosts import is_here
from btcpay.web.rate_limits import missing_driver
from storage.database import in_one_line
from storage.faults import PeeweeException
from storage.versions import open_ready


def check_before_start(
    settings: Settings,
    processes: int,
    addresses: Sequence[Any],
) -> None:
    """Exits with status 2 if a setting is wrong, with 1 if the database is not usable.

    `processes` is the number of worker processes. `addresses` are the addresses on
    which gunicorn will listen, in the form that `too_open` describes.
    """
    mistakes = (
        too_many(settings, processes),
        missing_driver(settings.rate_limit_store),
        too_open(settings, addresses),
    )
    for mistake in mistakes:
        if mistake:
            _exit(mistake, 2)
    try:
        open_ready(settings.database_url, settings.network.name).close()
    except (DatabaseNotReady, OSError) as error:
        _exit(str(error), 1)
    except PeeweeException as error:
        _exit(f"the database cannot be used: {in_one_line(error)}", 1)


def too_many(settings: Settings, processes: int) -> str:
    """Returns an error message if this many processes cannot share the rate limits.

    Returns "" if they can. Rate limits in the memory (`memory://`) allow one process.
    """
    if processes <= 1 or settings.rate_limit_store != "memory://":
        return ""
    return (
        f"BLOCKTILL_RATE_LIMIT_STORE accepts memory:// for one process only; {processes} are"
        " asked for: use redis://host:port/n"
    )


def too_open(settings: Settings, addresses: Sequence[Any]) -> str:
    """Returns an error message if the service must not listen on one of these addresses.

    Returns "" if it may listen on all of them. Each address is a (host, port) pair, or
    the path of a Unix socket. On mainnet a service without a proxy may listen only on
    addresses that other machines cannot reach.
    """
    if settings.trusted_proxies or not settings.network.main_keys:
        return ""
    # A Unix socket, whose address is a text, is of this machine.
    hosts = [address[0] for address in addresses if isinstance(address, tuple)]
    if all(map(is_here, hosts)):
        return ""
    return (
        "on mainnet BLOCKTILL_BIND accepts an address of this machine alone: strangers could hold"
        " every thread, so a proxy has to stand in front, and BLOCKTILL_TRUSTED_PROXIES says so"
    )


def _exit(message: str, status: int) -> NoReturn:
    print(f"blocktill: {message}", file=sys.stderr)
    raise SystemExit(status)
