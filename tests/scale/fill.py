"""A large service on PostgreSQL, made by SQL past the program: merchants, keys, invoices."""

import psycopg

from storage.versions import migrate

ACCOUNT = (
    "tpubDCJhUkjNdUDzBufJQchy7n3UFTQW653qcM7KMSLWSiqzY1vQxj7Y"
    "Pv2NTpU6gfpP7pxrUbTgqzBmAk5X2SjLshiBLis1Prs7ZPQ7u9MiaqF"
)
AMOUNT_SATS = 41_667
EARLIER_MS = 3_600_000  # the invoices' age
MERCHANTS = {
    "merchant": "INSERT INTO merchant (name, descriptor, account_key, next_index, created_ms)"
    " SELECT 'shop ' || i, %(account)s || i || '/*)', 'key ' || i, %(each)s, 0"
    " FROM generate_series(1, %(merchants)s) i",
    "balance": "INSERT INTO balance (merchant_id, confirmed_sats, total_sats)"
    " SELECT id, 0, 0 FROM merchant",
    "receiver": "INSERT INTO receiver (id, merchant_id, transport, url, secret, created_ms)"
    " SELECT 'whk_' || id, id, 'webhook', %(receivers)s || id, %(secret)s, 0 FROM merchant",
    "api_key": "INSERT INTO api_key (id, merchant_id, name, scope, secret_sha256, last_four,"
    " created_ms) SELECT 'key_' || id, id, '', 'write',"
    " encode(sha256(convert_to('sk_test_w' || lpad((id - 1)::text, 38, '0'), 'UTF8')), 'hex'),"
    " '0000', 0 FROM merchant",
}
INVOICE = {
    "id": "'inv_' || lpad(i::text, 24, '0')",
    "merchant_id": "1 + i %% %(merchants)s",
    "status": "'open'",
    "amount_sats": str(AMOUNT_SATS),
    "amount_usd_quote": "'25.00'",
    "price_usd": "'60000.00'",
    "currency": "'USD'",
    "price": "'60000.00'",
    "deposit_address": "'bcrt1q' || lpad(i::text, 38, '0')",
    "script": "'0014' || lpad(to_hex(i), 40, '0')",
    "address_index": "i / %(merchants)s",
    "created_ms": "%(created_ms)s + i / 1000",
}


def script(number: int) -> bytes:
    """The script of the address of the invoice of this number, from 0."""
    return b"\x00\x14" + number.to_bytes(20, "big")


def invoice_id(number: int) -> str:
    return f"inv_{number:024d}"


def fill(url: str, merchants: int, invoices: int, now_ms: int, receivers: str) -> None:
    """Takes a minute for a million. `receivers`: the address of their webhooks, without a number.

    The addresses are made up, as a million real ones would take minutes, and `blocktill restore`
    says so. The invoices take turns at the merchants.
    """
    migrate(url, "regtest")
    values = {
        "merchants": merchants,
        "invoices": invoices,
        "each": -(-invoices // merchants),
        "created_ms": now_ms - EARLIER_MS,
        "account": f"wpkh({ACCOUNT}/",
        "secret": "whsec_" + "A" * 43 + "=",
        "receivers": receivers,
    }
    with psycopg.connect(url) as db:
        for statement in MERCHANTS.values():
            db.execute(statement, values)
        db.execute(
            f"INSERT INTO invoice ({', '.join(INVOICE)}) SELECT {', '.join(INVOICE.values())}"  # noqa: S608
            " FROM generate_series(0, %(invoices)s - 1) i",
            values,
        )
    with psycopg.connect(url, autocommit=True) as db:
        db.execute("VACUUM ANALYZE")
