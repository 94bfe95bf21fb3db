"""The schema refuses what must never be, migrations run once, an address is handed out once."""

import json
import os
import pwd
import stat
from pathlib import Path
from typing import Any

import pytest
from peewee import IntegrityError

from btcpay.values.errors import DatabaseNotReady
from storage import locks, versions
from storage.backup import sqlite_file
from storage.database import open_database
from storage.models.shop import Table
from storage.queries import links, merchants, receivers
from storage.statement import as_dict
from tests.support.databases import about_sqlite, empty_database, raw, tables
from tests.support.paths import GONE

pytestmark = pytest.mark.both_databases


@pytest.fixture
def url(tmp_path):
    return empty_database(tmp_path)


@pytest.fixture
def db(url):
    versions.migrate(url, "regtest")
    opened = open_database(url)
    with opened.borrow_connection():
        yield opened
    opened.close()


# One row for each table that everything else allows; a test names what differs.
ROWS: dict[str, dict[str, Any]] = {
    "merchant": {"id": 1, "name": "shop", "descriptor": "wpkh(x)", "account_key": "k",
        "created_ms": 0},
    "payment_link": {"id": "lnk_1", "merchant_id": 1, "status": "active", "amount_mode": "fixed",
        "currency": "USD", "amount": "5", "amount_usd": "5", "created_ms": 0},
    "invoice": {"id": "inv_1", "merchant_id": 1, "status": "open", "amount_sats": 1_000,
        "amount_usd_quote": "1", "price_usd": "60000", "currency": "USD", "price": "60000",
        "deposit_address": "addr1", "script": "0014aa", "address_index": 0, "created_ms": 0},
    "payment": {"id": "pay_1", "merchant_id": 1, "address_invoice_id": "inv_1",
        "amount_sats": 1_000, "tx_hash": "aa", "created_ms": 0, "currency": "EUR"},
    "output": {"txid": "aa", "vout": 0, "invoice_id": "inv_1", "merchant_id": 1,
        "amount_sats": 1_000, "coinbase": 0, "first_seen_ms": 0, "seen_waiting": 0},
}  # fmt: skip
BLOCK = {"block_height": 1, "block_hash": "00", "block_time_ms": 0}
PAID = {"status": "paid", "paid_ms": 1, "tx_hash": "aa", "finished_ms": 1}
SECOND = {
    "id": "inv_2",
    "deposit_address": "addr2",
    "script": "0014bb",
    "address_index": 1,
}
OTHER = {"id": 2, "name": "b", "account_key": "l"}
ANOTHER = {"id": "pay_2", "tx_hash": "bb"}


def insert(db, table, **changes):
    row = ROWS[table] | changes
    places = ", ".join([db.connection.param] * len(row))
    given = "OVERRIDING SYSTEM VALUE" if db.is_server else ""
    db.connection.execute_sql(
        f"INSERT INTO {table} ({', '.join(row)}) {given} VALUES ({places})",  # noqa: S608
        list(row.values()),
    )


@pytest.fixture
def full(db):
    """One row in every table."""
    for table in ROWS:
        insert(db, table)
    return db


@pytest.mark.parametrize("amount_sats", [1, 21 * 10**14])
def test_an_invoice_may_be_of_one_satoshi_and_of_all_there_can_be(full, amount_sats):
    insert(full, "invoice", **SECOND, amount_sats=amount_sats)


REFUSED = [
    ("a key without its form", "merchant", OTHER | {"descriptor": "xpub"}),
    ("a counter below zero", "merchant", OTHER | {"next_index": -1}),
    ("a counter beyond the last index", "merchant", OTHER | {"next_index": 2**31 + 1}),
    (
        "fixed without price",
        "payment_link",
        {"id": "lnk_2", "amount": None, "amount_usd": None},
    ),
    (
        "flexible with a price",
        "payment_link",
        {"id": "lnk_2", "amount_mode": "flexible"},
    ),
    ("fixed with bounds", "payment_link", {"id": "lnk_2", "max_amount_usd": "9"}),
    ("an address twice", "invoice", SECOND | {"deposit_address": "addr1"}),
    ("an index twice", "invoice", SECOND | {"address_index": 0}),
    ("an invoice of nothing", "invoice", SECOND | {"amount_sats": 0}),
    ("more than exists", "invoice", SECOND | {"amount_sats": 21 * 10**14 + 1}),
    ("an unknown invoice status", "invoice", SECOND | {"status": "lost"}),
    ("open and finished", "invoice", SECOND | {"finished_ms": 1}),
    ("paid, not finished", "invoice", SECOND | PAID | {"finished_ms": None}),
    ("paid at no time", "invoice", SECOND | PAID | {"paid_ms": None}),
    ("paid by no transaction", "invoice", SECOND | PAID | {"tx_hash": None}),
    ("open with a transaction", "invoice", SECOND | {"tx_hash": "aa"}),
    ("open with a time of payment", "invoice", SECOND | {"paid_ms": 1}),
    ("open and settled by hand", "invoice", SECOND | {"settled_reason": "x"}),
    ("two payments of one transaction and invoice", "payment", {"id": "pay_2"}),
    ("a payment of nothing", "payment", ANOTHER | {"amount_sats": 0}),
    (
        "a payment that settles another invoice",
        "payment",
        ANOTHER | {"invoice_id": "inv_9"},
    ),
    ("an output before the first", "output", {"vout": -1}),
    ("an output of nothing", "output", {"vout": 1, "amount_sats": 0}),
    ("neither coinbase nor not", "output", {"vout": 1, "coinbase": 2}),
    ("a height without a block", "output", {"vout": 1, "block_height": 1}),
    ("a block of no time", "output", BLOCK | {"vout": 1, "block_time_ms": None}),
    ("vanished and in a block", "output", BLOCK | {"vout": 1, "vanished_ms": 1}),
    (
        "vanished and a payment",
        "output",
        {"vout": 1, "vanished_ms": 1, "payment_id": "pay_1"},
    ),
    ("a payment in no block", "output", {"vout": 1, "payment_id": "pay_1"}),
    ("spent before it is in a block", "output", {"vout": 1, "spent_height": 2}),
]


@pytest.mark.parametrize(("_", "table", "changes"), REFUSED)
def test_what_must_never_be_is_refused_by_the_schema(full, _, table, changes):
    with pytest.raises(IntegrityError):
        insert(full, table, **changes)


def test_a_row_that_may_be_there_already_is_refused_like_any_other(full):
    """`INSERT OR IGNORE`, of SQLite, would leave it out without a word."""
    new = {
        "id": "whk_1",
        "merchant_id": 1,
        "transport": "webhook",
        "kinds": None,
        "created_ms": 0,
    }
    good = new | {"url": "https://shop.example", "command": None, "secret": "s"}
    assert [full.run(receivers.ADD, **good) for _ in range(2)] == [1, 0]
    for bad in (
        {"url": None},
        {"transport": None},
        {"transport": "pigeon"},
        {"merchant_id": 9},
    ):
        with pytest.raises(IntegrityError), full.write():
            full.run(receivers.ADD, **good | {"id": "whk_2"} | bad)


def test_packed_rows_hold_the_same_values(full):
    columns, packed = full.json_rows(links.LIST, merchant_id=1, limit=50)
    rows = [dict(zip(columns, json.loads(row), strict=True)) for row in packed]
    assert (
        rows
        == [as_dict(row) for row in full.rows(links.LIST, merchant_id=1, limit=50)]
        != []
    )


# Tables that stay without a model if the part is deleted, whose models are its own.
TABLES_OF_PARTS = {
    "bills": {"bill"},
    "greenfield": {"store"},
    "merchant_pages": {"key_requests"},
    "refunds": {"refund", "refund_transaction", "refund_output"},
}


def test_every_table_has_a_model_with_its_columns(db):
    no_models = {"schema_step", "sqlite_sequence"}
    for part in GONE:
        no_models |= TABLES_OF_PARTS.get(part, set())
    columns = {
        table: [column.name for column in db.connection.get_columns(table)]
        for table in set(db.connection.get_tables()) - no_models
    }
    models = [model._meta for model in Table.__subclasses__()]
    assert columns == {meta.table_name: list(meta.columns) for meta in models}


@about_sqlite
def test_sqlite_keeps_what_it_has_answered(db):
    pragmas = ("journal_mode", "synchronous", "foreign_keys")
    found = [
        db.connection.execute_sql(f"PRAGMA {name}").fetchone()[0] for name in pragmas
    ]
    assert found == ["wal", 2, 1]


@about_sqlite
def test_a_new_sqlite_file_has_small_pages(db):
    assert db.connection.execute_sql("PRAGMA page_size").fetchone()[0] == 2048


@about_sqlite
def test_a_library_that_is_too_old_is_named_before_a_file_is_touched(
    url, tmp_path, monkeypatch
):
    monkeypatch.setattr("sqlite3.sqlite_version_info", (3, 36, 9))
    for use in (
        lambda: versions.migrate(url, "regtest"),
        lambda: sqlite_file.copy(tmp_path / "kept.db", tmp_path / "new.db"),
    ):
        with pytest.raises(
            DatabaseNotReady, match=r"this Python has SQLite .* 3\.37 or newer"
        ):
            use()
    assert not list(tmp_path.glob("new.db"))


@about_sqlite
def test_the_database_file_is_its_owners_alone(url):
    versions.migrate(url, "regtest")
    path = Path(url.removeprefix("sqlite:///"))
    assert stat.S_IMODE(path.stat().st_mode) == 0o600


VERSIONS = {
    "of an older checkout": ("ALTER TABLE schema_step RENAME TO schema_version",
        "is of an older version of this program: its data cannot be carried over. Keep it"),
    "of 0.3.0, which kept no hash": ("ALTER TABLE schema_step DROP COLUMN sha256",
        "is of an older version of this program: its data cannot be carried over. Keep it"),
    "of other statements": ("UPDATE schema_step SET sha256 = 'other'",
        "is of an older version of this program: its data cannot be carried over. Keep it"),
    "of no version": ("DELETE FROM schema_step",
        "is not a database of this program: let BLOCKTILL_DATABASE_URL name a new one"),
    "a newer one": ("UPDATE schema_step SET number = 9999", "install the newer program"),
}  # fmt: skip


@pytest.mark.parametrize("case", VERSIONS)
def test_a_database_of_another_version_is_refused_and_not_touched(url, case):
    version, help = VERSIONS[case]
    versions.migrate(url, "regtest")
    with raw(url) as connection:
        connection.execute(version)
        before = tables(connection)
    for open_it in (versions.open_ready, versions.migrate):
        with pytest.raises(DatabaseNotReady, match=help):
            open_it(url, "regtest")
    with raw(url) as connection:
        assert tables(connection) == before


@pytest.mark.parametrize("open_it", [versions.migrate, versions.open_ready])
def test_a_database_of_another_network_is_refused(url, open_it):
    versions.migrate(url, "mainnet")
    with pytest.raises(
        DatabaseNotReady, match="belongs to mainnet, but BLOCKTILL_NETWORK says regtest"
    ):
        open_it(url, "regtest")


def test_an_index_of_a_transaction_that_failed_is_given_out_again(full):
    with pytest.raises(RuntimeError), full.write():
        full.get(merchants.TAKE_INDEX, id=1)
        raise RuntimeError
    assert full.get(merchants.TAKE_INDEX, id=1).next_index == 1


def test_only_one_holds_a_lock_at_a_time_and_another_name_is_another_lock(url):
    versions.migrate(url, "regtest")
    first, second, third = (open_database(url) for _ in range(3))
    with (
        locks.only_one(first, url, "check") as one,
        locks.only_one(second, url, "check") as two,
        locks.only_one(third, url, "backup") as other,
    ):
        assert (one, two, other) == (True, False, True)
    with locks.only_one(second, url, "check") as again:
        assert again
    for db in (first, second, third):
        db.close()


@about_sqlite
@pytest.mark.skipif(os.geteuid() != 0, reason="only root makes files for another user")
def test_a_lock_that_root_takes_does_not_lock_out_the_databases_owner(tmp_path):
    url = f"sqlite:///{tmp_path}/shop.db"
    nobody = pwd.getpwnam("nobody")
    versions.migrate(url, "regtest")
    os.chown(tmp_path / "shop.db", nobody.pw_uid, nobody.pw_gid)
    db = open_database(url)
    with locks.only_one(db, url, "check"):
        assert (tmp_path / "shop.db.check.lock").stat().st_uid == nobody.pw_uid
    (tmp_path / "shop.db.webhooks.lock").symlink_to(tmp_path / "elsewhere")
    with (
        pytest.raises(OSError, match="symbolic links"),
        locks.only_one(db, url, "webhooks"),
    ):
        pass
    assert not (tmp_path / "elsewhere").exists()
    db.close()
