"""Before gunicorn starts: wrong settings (status 2) or an old database (1) stop it."""

import sys
from collections.abc import Mapping
from typing import NoReturn

from btcpay.errors import DatabaseNotReady, SettingsError
from btcpay.settings import Settings, read
from storage.schema import open_ready


def read_or_exit(environ: Mapping[str, str]) -> Settings:
    """The settings; every mistake goes to standard error, and the process ends with status 2."""
    try:
        return read(environ)
    except SettingsError as error:
        for mistake in error.mistakes:
            print(f"btcpay: {mistake}", file=sys.stderr)
        raise SystemExit(2) from None


def check_before_start(settings: Settings, processes: int) -> None:
    """Ends the process unless the store fits their number (2) and the database is ready (1)."""
    if processes > 1 and settings.rate_limit_store == "memory://":
        _exit(
            f"BTCPAY_RATE_LIMIT_STORE accepts memory:// for one process only; {processes} are"
            " asked for: use redis://host:port/n",
            2,
        )
    try:
        open_ready(settings.database_url, settings.network.name).close()
    except DatabaseNotReady as error:
        _exit(str(error), 1)


def _exit(message: str, status: int) -> NoReturn:
    print(f"btcpay: {message}", file=sys.stderr)
    raise SystemExit(status)
