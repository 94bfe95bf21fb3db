"""What `--version` prints: the program's version, and what it runs on, for a report."""

import platform
import sqlite3
from importlib import metadata

from btcpay import __version__


def lines() -> str:
    """Two lines: the version; Python, both databases and the system."""
    return f"btcpay, version {__version__}\n{', '.join(_surroundings())}"


def _surroundings() -> tuple[str, ...]:
    """The driver is not loaded: it takes 0.1 s."""
    try:
        driver = f"psycopg {metadata.version('psycopg')}"
    except metadata.PackageNotFoundError:
        driver = "no PostgreSQL driver"
    python = f"Python {platform.python_version()}"
    return python, f"SQLite {sqlite3.sqlite_version}", driver, platform.platform()
