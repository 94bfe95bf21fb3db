"""Before gunicorn starts: a store that cannot serve (status 2) or an old database (1) stops it."""

import sys
from typing import NoReturn

from peewee import PeeweeException

from btcpay.settings.settings import Settings
from btcpay.values.errors import DatabaseNotReady
from btcpay.web.rate_limits import missing_driver
from storage.database import in_one_line
from storage.versions import open_ready


def check_before_start(settings: Settings, processes: int) -> None:
    """Ends the process: status 2 when the limits' store cannot serve, 1 for the database."""
    mistake = too_many(settings, processes) or missing_driver(settings.rate_limit_store)
    if mistake:
        _exit(mistake, 2)
    try:
        open_ready(settings.database_url, settings.network.name).close()
    except (DatabaseNotReady, OSError) as error:
        _exit(str(error), 1)
    except PeeweeException as error:
        _exit(f"the database cannot be used: {in_one_line(error)}", 1)


def too_many(settings: Settings, processes: int) -> str:
    """The reason why so many processes cannot share this store; empty when they can."""
    if processes <= 1 or settings.rate_limit_store != "memory://":
        return ""
    return (
        f"BTCPAY_RATE_LIMIT_STORE accepts memory:// for one process only; {processes} are"
        " asked for: use redis://host:port/n"
    )


def _exit(message: str, status: int) -> NoReturn:
    print(f"btcpay: {message}", file=sys.stderr)
    raise SystemExit(status)
