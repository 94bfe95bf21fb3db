"""A database with many invoices and API keys, filled past the models: a million rows in seconds."""

import hashlib
import sqlite3
from collections.abc import Iterator
from pathlib import Path

from btcpay.merchants.keys import sha256_of
from storage.migrate import migrate

KEYS = 6_000  # of either scope: each serves for some requests, then not again within a minute
START_MS = 1_700_000_000_000
ACCOUNT = (
    "tpubDCJhUkjNdUDzBufJQchy7n3UFTQW653qcM7KMSLWSiqzY1vQxj7Y"
    "Pv2NTpU6gfpP7pxrUbTgqzBmAk5X2SjLshiBLis1Prs7ZPQ7u9MiaqF"
)
STATUSES = ("paid", "paid", "expired", "paid", "open", "canceled", "paid", "expired")


def invoice_id(number: int) -> str:
    return f"inv_{number:024d}"


def secret(scope: str, number: int) -> str:
    return f"sk_test_{scope}{number:038d}"


def fill(path: Path, invoices: int) -> str:
    """Makes the database and returns its URL; nothing in it needs to survive a crash."""
    url = f"sqlite:///{path}"
    migrate(url, "regtest")
    db = sqlite3.connect(path)
    db.executescript("PRAGMA synchronous=OFF; PRAGMA cache_size=-1000000; PRAGMA mmap_size=0;")
    with db:
        db.execute(
            "INSERT INTO merchant"
            " (id, name, descriptor, account_key, next_index, created_at)"
            " VALUES (1, 'bench', ?, 'bench', ?, 0)",
            (f"wpkh({ACCOUNT}/0/*)", invoices),
        )
        db.executemany(
            "INSERT INTO api_key (id, merchant_id, name, scope, secret_sha256, last_four,"
            " created_at) VALUES (?, 1, '', ?, ?, '0000', 0)",
            _keys(),
        )
        db.executemany(
            "INSERT INTO invoice (id, merchant_id, status, amount_sats, amount_usd_quote,"
            " price_usd, currency, price, description, customer_email, deposit_address, script,"
            " address_index, tx_hash, expires_at, paid_at, finished_at, created_at)"
            " VALUES (?, 1, ?, ?, ?, '60000.00', 'USD', '60000.00', ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",
            map(_invoice, range(invoices)),
        )
    db.execute("PRAGMA wal_checkpoint(TRUNCATE)")
    db.close()
    return url


def _keys() -> Iterator[tuple[str, str, str]]:
    for scope in ("read", "write"):
        for number in range(KEYS):
            yield f"key_{scope}{number}", scope, sha256_of(secret(scope, number))


def _invoice(number: int) -> tuple[object, ...]:
    status = STATUSES[number % len(STATUSES)]
    created_ms = START_MS + number * 1000
    finished_ms = None if status == "open" else created_ms + 1_800_000
    return (
        invoice_id(number),
        status,
        41_667 + number,
        f"{25 + number / 100:.2f}",
        f"Order {number}: two pounds of tea",
        f"customer{number}@example.com",
        f"bcrt1q{number:038d}",
        f"0014{number:040x}",
        number,
        hashlib.sha256(b"%d" % number).hexdigest() if status == "paid" else None,
        created_ms + 3_600_000,
        finished_ms if status == "paid" else None,
        finished_ms,
        created_ms,
    )
