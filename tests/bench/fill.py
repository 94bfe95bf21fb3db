"""`python fill.py FILE INVOICES [URL]`: a database with many of them and of API keys.

It is an SQLite file, written past the models, and at the URL a PostgreSQL database with the same.
"""

import hashlib
import os
import sqlite3
import subprocess
import sys

import psycopg

KEYS = 6_000  # of either scope: each serves for some requests, then not again within a minute
ACCOUNT = (
    "tpubDCJhUkjNdUDzBufJQchy7n3UFTQW653qcM7KMSLWSiqzY1vQxj7Y"
    "Pv2NTpU6gfpP7pxrUbTgqzBmAk5X2SjLshiBLis1Prs7ZPQ7u9MiaqF"
)
INVOICES = """
WITH RECURSIVE n(i) AS (SELECT 0 UNION ALL SELECT i + 1 FROM n WHERE i + 1 < ?)
INSERT INTO invoice (id, merchant_id, status, amount_sats, amount_usd_quote, price_usd, currency,
  price, description, customer_email, deposit_address, script, address_index, expires_ms,
  finished_ms, created_ms)
SELECT printf('inv_%024d', i), 1, 'expired', 41667 + i, printf('%.2f', 25 + i / 100.0),
  '60000.00', 'USD', '60000.00', printf('Order %d: two pounds of tea', i),
  printf('customer%d@example.com', i), printf('bcrt1q%038d', i), printf('0014%040x', i), i,
  1700003600000 + 1000 * i, 1700003600000 + 1000 * i, 1700000000000 + 1000 * i FROM n
"""


def invoice_id(number: int) -> str:
    return f"inv_{number:024d}"


def secret(scope: str, number: int) -> str:
    return f"sk_test_{scope}{number:038d}"


def migrate(url: str) -> None:
    """By the command, which an earlier commit has too."""
    environ = os.environ | {
        "BLOCKTILL_DATABASE_URL": url,
        "BLOCKTILL_NETWORK": "regtest",
    }
    command = [sys.executable, "-m", "btcpay", "migrate"]
    subprocess.run(command, env=environ, stdout=subprocess.DEVNULL, check=True)


def fill(path: str, invoices: int) -> None:
    """A million rows in seconds; nothing of them needs to survive a crash."""
    migrate(f"sqlite:///{path}")
    db = sqlite3.connect(path)
    db.execute("PRAGMA synchronous=OFF")
    with db:
        db.execute(
            "INSERT INTO merchant (id, name, descriptor, account_key, next_index, created_ms)"
            " VALUES (1, 'bench', ?, 'bench', ?, 0)",
            (f"wpkh({ACCOUNT}/0/*)", invoices),
        )
        db.executemany(
            "INSERT INTO api_key (id, merchant_id, name, scope, secret_sha256, last_four,"
            " created_ms) VALUES (?, 1, '', ?, ?, '0000', 0)",
            [
                (
                    f"key_{scope}{n}",
                    scope,
                    hashlib.sha256(secret(scope, n).encode()).hexdigest(),
                )
                for scope in ("read", "write")
                for n in range(KEYS)
            ],
        )
        db.execute(INVOICES, (invoices,))
    db.close()


def copy(path: str, url: str) -> None:
    """Gives an empty PostgreSQL database the rows of such a file."""
    migrate(url)
    with sqlite3.connect(path) as source, psycopg.connect(url) as target:
        for table in ("merchant", "api_key", "invoice"):
            rows = source.execute(f"SELECT * FROM {table}")  # noqa: S608
            columns = ", ".join(column[0] for column in rows.description)
            statement = f"COPY {table} ({columns}) FROM STDIN"
            with target.cursor().copy(statement) as into:
                for row in rows:
                    into.write_row(row)
        next_seq = "setval(pg_get_serial_sequence('invoice', 'seq'), max(seq))"
        target.execute(f"SELECT {next_seq} FROM invoice")  # noqa: S608


if __name__ == "__main__":
    file, stored, *urls = sys.argv[1:]
    fill(file, int(stored))
    for url in urls:
        copy(file, url)
