"""The same shop beside the same chain, on another database: after a restore, or carried over."""

import contextlib
import sqlite3
from collections.abc import Iterator
from pathlib import Path

from builders import Shop
from fake_esplora import Terminal, Till

from app import create_app
from btcpay.settings import settings


@contextlib.contextmanager
def on(url: str, till: Till) -> Iterator[Till]:
    """The same shop beside the same chain, on another database."""
    environ = till.shop.environ | {"BTCPAY_DATABASE_URL": url}
    app = create_app(settings.read(environ), till.clock)
    shop = Shop(app, app.extensions["btcpay"], till.clock, environ, till.shop.merchant_id)
    shop.read_key, shop.write_key = till.shop.read_key, till.shop.write_key
    again = Till(shop, till.sandbox, till.clock)
    try:
        yield again
    finally:
        stop(again)


def stop(till: Till) -> None:
    """Nobody is connected any more: what was to be noted is, and the connections are closed."""
    till.shop.service.close()
    till.shop.close()


def backed_up(till: Till, path: Path) -> Path:
    Terminal(till).run("backup", str(path))
    return path


def change(path: Path, *statements: str) -> None:
    """What somebody does to a file of SQLite's, also to its schema."""
    with contextlib.closing(sqlite3.connect(path)) as db, db:
        db.execute("PRAGMA writable_schema = ON")
        for statement in statements:
            db.execute(statement)
