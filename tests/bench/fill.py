"""`python fill.py FILE INVOICES`: a database with many of them and of API keys, past the models."""

import hashlib
import os
import sqlite3
import subprocess
import sys

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


def fill(path: str, invoices: int) -> None:
    """A million rows in seconds; nothing of them needs to survive a crash."""
    # By the command, which an earlier commit has too.
    environ = os.environ | {
        "BLOCKTILL_DATABASE_URL": f"sqlite:///{path}",
        "BLOCKTILL_NETWORK": "regtest",
    }
    migrate = [sys.executable, "-m", "btcpay", "migrate"]
    subprocess.run(migrate, env=environ, stdout=subprocess.DEVNULL, check=True)
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


if __name__ == "__main__":
    fill(sys.argv[1], int(sys.argv[2]))
