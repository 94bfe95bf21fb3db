"""A shop that has lived, and the same one on another database: restored, or carried over."""

import contextlib
import hashlib
import sqlite3
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from app import create_app
from btcpay.merchants.sessions import log_in, log_in_owner
from btcpay.settings import settings
from btcpay.values.times import to_ms
from storage.queries.sessions import new_login
from tests.support.builders import Shop
from tests.support.databases import raw, tables
from tests.support.fake_esplora import Terminal, Till
from tests.support.scenes import over_the_deadline

ODD = "tab\t, line\n, back\\slash, \\N, \\., 'quotes\", \u20bf \U0001f600"
LOGO = b"\x89PNG\r\n\x1a\n\x00\x00\x00\rIHDR" + bytes(40) + bytes(range(256))
ORDER = {"amount_usd": 25, "description": ODD, "customer_email": "a@example.com"}
KEY = {"Idempotency-Key": "order 1"}
SENT = """INSERT INTO refund (id, merchant_id, store_id, status, amount_sats, reason,
    shop_texts, address, script, above_height, tx_hash, vout, sent_height, sent_ms, sent_sats,
    currency, value_at_sending, created_ms)
    VALUES ('rfd_1', 1, 'store_1', 'sent', 7, 'returned', '{}', 'bcrt1q', '0014', 0, 'ee', 1, 1, 1,
    7,
    'EUR', '5.00', 1)
"""


@contextlib.contextmanager
def on(url: str, till: Till) -> Iterator[Till]:
    """The same shop beside the same chain, on another database."""
    environ = till.shop.environ | {"BLOCKTILL_DATABASE_URL": url}
    app = create_app(settings.read(environ), till.clock)
    shop = Shop(
        app, app.extensions["blocktill"], till.clock, environ, till.shop.merchant_id
    )
    shop.read_key = till.shop.read_key
    shop.write_key = till.shop.write_key
    with shop:
        yield Till(shop, till.sandbox, till.clock)


def backed_up(till: Till, path: Path) -> Path:
    Terminal(till).run("backup", str(path))
    return path


def change(path: Path, *statements: str) -> None:
    """A change that somebody makes to a SQLite file, even to its schema."""
    with contextlib.closing(sqlite3.connect(path)) as db, db:
        db.execute("PRAGMA writable_schema = ON")
        for statement in statements:
            db.execute(statement)


def content(path: Path) -> dict[str, list[Any]]:
    """Every row, of a database that must be whole."""
    with contextlib.closing(sqlite3.connect(path)) as db:
        assert db.execute("PRAGMA integrity_check").fetchall() == [("ok",)]
        tables = [
            row[0]
            for row in db.execute("SELECT name FROM sqlite_master WHERE type='table'")
        ]
        return {name: db.execute(f"SELECT * FROM {name}").fetchall() for name in tables}  # noqa: S608


def rows_of(url: str) -> dict[str, Any]:
    """Every row, in an order of its own; without the versions, which each database notes itself."""
    with raw(url) as connection:
        found = tables(connection)
    del found["schema_step"]
    return {name: sorted(map(repr, rows)) for name, rows in found.items()}


def lived_in(till: Till, folder: Path) -> None:
    """Rows in every table: paid, waiting, late and replaced; a link, a brand, odd letters."""
    (folder / "logo").write_bytes(LOGO)
    words = ("--name", "Caf\u00e9 \\N", "--logo", str(folder / "logo"))
    Terminal(till).run("merchant", "brand", "shop", *words)
    present = till.clock.at
    till.clock.move(hours=-2.5)
    link = till.shop.link(amount_usd=5, title=ODD)
    assert till.shop.client.post(f"/link/{link['id']}").status_code == 303
    assert till.shop.post("/invoices", ORDER, headers=KEY).status_code == 201
    over_the_deadline(till)
    till.clock.at = present
    till.check()
    till.shop.sql("INSERT INTO explorer VALUES ('esplora.example', 2, 14)")
    till.shop.sql("INSERT INTO explorer_without_mempool VALUES ('mempool.example', 14)")
    till.shop.sql("INSERT INTO peer VALUES ('10.0.0.5:8333', 14, 100, NULL)")
    till.shop.sql(
        "INSERT INTO mail_server"
        " VALUES (1, 'mail.example', 465, 1, 'u', 'p', 'Shop', 'a@b.example')"
    )
    Terminal(till).run("webhook", "add", "shop", "http://127.0.0.1:9/")
    till.shop.invoice()
    Terminal(till).run("check")
    Terminal(till).run("merchant", "mail", "shop", "owner@shop.example", "--receipts")
    db = till.shop.service.db
    now = till.clock()
    till.shop.sql(
        "INSERT INTO store VALUES ('store_1', 1, 'https://shop.example:443', 1)"
    )
    till.shop.sql(SENT)
    till.shop.sql("INSERT INTO refund_transaction VALUES ('ee', 1, '{}', '{}')")
    till.shop.sql(
        "INSERT INTO refund_output VALUES ('ee', 1, '0014', 7, 1, 1, 1, 'rfd_1')"
    )
    of_shop = "store_id = (SELECT id FROM store), order_id = '27', shop_order = '{}'"
    newest = "seq = (SELECT MAX(seq) FROM invoice)"
    till.shop.sql(f"UPDATE invoice SET {of_shop} WHERE {newest}")  # noqa: S608
    till.shop.sql(
        "INSERT INTO bill (id, merchant_id, status, amount, currency, paid, created_ms, due_days,"
        " due_ms, number) VALUES ('bil_1', 1, 'open', '5', 'USD', '0', 1, 0, 1, 0)"
    )
    till.shop.sql("INSERT INTO part_work VALUES ('refunds', 'check', 0, '', 0, 2, '')")
    till.shop.sql("INSERT INTO file_link VALUES ('fil_1', 1, 'a hash', 1, 2, 3)")
    till.shop.sql(
        f"INSERT INTO key_requests SELECT MIN(id), {to_ms(now)}, '[]' FROM api_key"  # noqa: S608
        " WHERE true ON CONFLICT DO NOTHING"
    )
    assert log_in(db, new_login(db, 1, now), "", "Firefox", now)
    assert log_in_owner(db, 1, "a hash", "", "Firefox", now)
    new_login(db, 1, now)


def answers(till: Till) -> list[Any]:
    """The answers to clients on every path, and the pages' own data."""
    shop = till.shop
    lists = ["/invoices", "/payments", "/payment-links"]
    found = [
        shop.get(path, query_string={"limit": 100}) for path in ["/balance", *lists]
    ]
    for path, answer in zip(lists, found[1:], strict=True):
        if path != "/payments":
            found += [shop.get(f"{path}/{item['id']}") for item in answer.json["data"]]
    paid = [item for item in found[1].json["data"] if item["status"] == "paid"]
    assert (
        paid and len(found) > 10 and all(answer.status_code == 200 for answer in found)
    )
    pages = [f"/pay/{item['id']}/status" for item in found[1].json["data"]]
    pages += [f"/logo/{hashlib.sha256(LOGO).hexdigest()}"]
    shown = [shop.client.get(path) for path in pages]
    return [answer.data for answer in found] + [
        (page.status_code, page.data) for page in shown
    ]
