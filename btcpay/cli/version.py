"""What `--version` prints: the program's version, and what it runs on, for a report."""

import platform
import sqlite3
from importlib import metadata

from btcpay import __version__


def lines() -> str:
    """Two lines: the version; Python, both databases and the system."""
    try:  # the driver is not loaded, which takes 0.1 s
        driver = f"psycopg {metadata.version('psycopg')}"
    except metadata.PackageNotFoundError:
        driver = "no PostgreSQL driver"
    python = f"Python {platform.python_version()}"
    surroundings = python, f"SQLite {sqlite3.sqlite_version}", driver, platform.platform()
    return f"btcpay, version {__version__}\n{', '.join(surroundings)}"
