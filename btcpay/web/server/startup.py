"""Before gunicorn starts: wrong settings (status 2) or an old database (1) stop it."""

import contextlib
import errno
import os
import socket
import struct
import sys
import time
from collections.abc import Iterable, MutableMapping
from typing import Any, NoReturn

from peewee import PeeweeException

from btcpay.settings import env_file
from btcpay.settings.settings import Settings, read
from btcpay.values.errors import DatabaseNotReady, SettingsError
from btcpay.web.rate_limits import missing_driver
from storage.database import in_one_line
from storage.versions import open_ready

FREED_WITHIN_S = 5  # as long as gunicorn tries
CLIENT_SILENCE_S = 5  # longer than a phone on a bad line is silent amid a request


def read_or_exit(environ: MutableMapping[str, str]) -> Settings:
    """The settings, those of the file that BTCPAY_ENV_FILE names among them.

    Every mistake goes to standard error, and the process ends with status 2.
    """
    try:
        env_file.fill(environ)
        return read(environ)
    except SettingsError as error:
        for mistake in error.mistakes:
            print(f"btcpay: {mistake}", file=sys.stderr)
        raise SystemExit(2) from None


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
    """Why so many processes cannot share this store for their limits; empty when they can."""
    if processes <= 1 or settings.rate_limit_store != "memory://":
        return ""
    return (
        f"BTCPAY_RATE_LIMIT_STORE accepts memory:// for one process only; {processes} are"
        " asked for: use redis://host:port/n"
    )


def require_free(addresses: Iterable[Any]) -> None:
    """Ends the process (status 1) when one of gunicorn's addresses is taken, and stays so.

    It waits a while, since whoever listens there may be about to end. gunicorn would log each try.
    """
    for host, port in (address for address in addresses if isinstance(address, tuple)):
        until_s = time.monotonic() + FREED_WITHIN_S
        while _is_taken(host, port):
            if time.monotonic() > until_s:
                told = "stop what listens there, or choose another address with BTCPAY_BIND"
                _exit(f"{host}:{port} is taken: {told}", 1)
            time.sleep(0.1)


def _is_taken(host: str, port: int) -> bool:
    """Any other fault of an address is gunicorn's to report."""
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    with socket.socket(family) as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind((host, port))
        except OSError as error:
            return error.errno == errno.EADDRINUSE
    return False


def limit_waiting(listeners: Iterable[socket.socket]) -> None:
    """Lets no client hold a thread by sending nothing: accepted sockets inherit the time-out.

    gunicorn's threads wait for the rest of a request without limit (socket(7), SO_RCVTIMEO).
    """
    for listener in listeners:
        timeout = struct.pack("ll", CLIENT_SILENCE_S, 0)
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_RCVTIMEO, timeout)


def keep_to_one_processor(number: int) -> None:
    """Lets worker `number` run on one processor alone, counted from the last, if that is allowed.

    A process has one interpreter lock: its threads never run at once, and handing the lock over to
    another processor takes longer than most of what they do. The first processor has the most
    interrupts.
    """
    with contextlib.suppress(AttributeError, OSError):  # not of every system; or forbidden
        allowed = sorted(os.sched_getaffinity(0))
        os.sched_setaffinity(0, {allowed[-number % len(allowed)]})


def _exit(message: str, status: int) -> NoReturn:
    print(f"btcpay: {message}", file=sys.stderr)
    raise SystemExit(status)
