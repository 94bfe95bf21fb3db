"""A database of every earlier version, with rows in it, comes to this one with all it has."""

import sqlite3
import time
from collections.abc import Iterator, Set
from pathlib import Path
from typing import Any

import postgres
import pytest
from databases import raw, tables
from forge import forge
from playhouse.migrations import Runner

from storage import migrate, versions
from storage.database import open_database, sqlite_path
from storage.queries import balances, meta
from storage.sqlite import create_file

VERSIONS = sorted(path.stem for path in versions.MIGRATIONS.glob("0*.py"))

# What each version's program could have stored, as that version's columns are.
ROWS = {
    "0001_first": (
        "INSERT INTO meta VALUES ('network', 'regtest'), ('tip_height', '120')",
        "INSERT INTO merchant (name, script_type, xpub, account_key, next_index, created_at)"
        " VALUES ('shop', 'p2wpkh', 'x', 'k', 2, 7), ('poor', 'p2pkh', 'y', 'l', 0, 8)",
        "INSERT INTO api_key (id, merchant_id, name, scope, secret_sha256, last_four, created_at)"
        " VALUES ('key_1', 1, '', 'write', 'hash', 'four', 9)",
        "INSERT INTO payment_link (id, merchant_id, status, title, amount_mode, amount_usd,"
        " created_at) VALUES ('lnk_1', 1, 'active', 'Tip \u20bf \U0001f600', 'fixed', '5', 9)",
        "INSERT INTO invoice (id, merchant_id, payment_link_id, status, amount_sats,"
        " amount_usd_quote, price_usd, deposit_address, address_index, looks, created_at)"
        " VALUES ('inv_1', 1, 'lnk_1', 'open', 2100000000000000, '1e-9', '60000', 'one', 0, 3, 10)",
        "INSERT INTO invoice (id, merchant_id, status, amount_sats, amount_usd_quote, price_usd,"
        " deposit_address, address_index, tx_hash, paid_at, finished_at, created_at)"
        " VALUES ('inv_2', 1, 'paid', 5, '1', '60000', 'two', 1, 'tx_a', 11, 12, 10)",
        "INSERT INTO payment (id, merchant_id, address_invoice_id, invoice_id, amount_sats,"
        " tx_hash, created_at) VALUES ('pay_1', 1, 'inv_2', 'inv_2', 5, 'tx_a', 11),"
        " ('pay_2', 1, 'inv_1', NULL, 7, 'tx_b', 13)",
        "INSERT INTO output (txid, vout, invoice_id, merchant_id, amount_sats, coinbase,"
        " first_seen_at, block_height, block_hash, block_time_at, spent_height, proven,"
        " payment_id) VALUES ('tx_a', 0, 'inv_2', 1, 5, 0, 10, 99, 'h', 11, NULL, 1,"
        " 'pay_1'), ('tx_b', 1, 'inv_1', 1, 7, 1, 10, 99, 'h', 11, 101, 1, 'pay_2')",
        "INSERT INTO output (txid, vout, invoice_id, merchant_id, amount_sats, coinbase,"
        " first_seen_at) VALUES ('tx_c', 0, 'inv_1', 1, 11, 0, 10)",
        "INSERT INTO event (invoice_id, happened_at, kind, detail)"
        " VALUES ('inv_2', 12, 'paid', '{}')",
        "INSERT INTO idempotency_key (merchant_id, operation, idempotency_key, body_sha256, owner,"
        " locked_at, created_at, response)"
        " VALUES (1, 'create-invoice', 'k', 'b', 'o', 1, 1, '{\"id\": \"inv_1\"}')",
    ),
    "0002_proof": ("INSERT INTO proof VALUES ('pay_1', '{}')",),
    "0003_balance": (
        "INSERT INTO balance (merchant_id, confirmed_sats, total_sats)"
        " VALUES (1, 5, 16), (2, 0, 0)",
    ),
    "0004_budget": (
        "INSERT INTO explorer VALUES ('esplora.example', 2, 14)",
        "INSERT INTO explorer_use VALUES ('esplora.example', 60000, 40, 4)",
        "UPDATE output SET position = 3 WHERE payment_id = 'pay_1'",
        "UPDATE merchant SET probed_at = 15 WHERE id = 1",
    ),
    "0005_brand": ("INSERT INTO brand (merchant_id, name, accent) VALUES (1, 'Shop', '#aabbcc')",),
    "0006_tally": (
        "INSERT INTO tally (name, label, total) VALUES ('checks', 'complete', 3)",
        "UPDATE balance SET settled_sats = 12 WHERE merchant_id = 1",
    ),
    "0008_retention": (),
    "0009_claim": (),
    "0010_facts": (),
    "0011_attention": ("INSERT INTO attention VALUES ('inv_1', 'reorganised', 16)",),
    "0012_begun": (),
    "0013_asked_since": ("UPDATE invoice SET asked_at = 17, asked_since = 16 WHERE id = 'inv_1'",),
    "0014_wallet_gap": ("UPDATE merchant SET wallet_gap_limit = 200 WHERE id = 1",),
    "0015_blocks": (
        "INSERT INTO block (height, hash, header, mined_at) VALUES (100, 'i', 'raw', 18)",
        "UPDATE invoice SET script = '0014', history_at = 19 WHERE id = 'inv_1'",
    ),
    "0016_growth": (),
    "0017_return": (
        "UPDATE brand SET return_paid = 'https://shop.example/' WHERE merchant_id = 1",
    ),
    "0018_public_event": (
        "INSERT INTO public_event (number, id, merchant_id, invoice_id, kind, happened_at)"
        " VALUES (1, 'evt_1', 1, 'inv_1', 'invoice.created', 20)",
        "INSERT INTO event_reader VALUES ('mail', 1)",
    ),
    "0019_webhook": (
        "INSERT INTO webhook_endpoint (id, merchant_id, command, since_number, created_at)"
        " VALUES ('whk_1', 1, 'mail', 0, 21)",
        "INSERT INTO webhook_delivery (event_seq, endpoint_id, next_at) VALUES (1, 'whk_1', 22)",
    ),
    "0020_mail": (
        "INSERT INTO merchant_mail VALUES (1, 'owner@shop.example', 1, 'de')",
        "INSERT INTO mail (about, merchant_id, recipient, event_seq, created_at, next_at)"
        " VALUES ('evt_1', 1, 'merchant', 1, 20, 21)",
    ),
    "0021_merchant_session": (
        "INSERT INTO merchant_login VALUES ('digest', 1, 23)",
        "INSERT INTO merchant_session VALUES ('ses_1', 1, 'other digest', 'Firefox', 22, 23)",
    ),
    "0022_suggested": (
        "INSERT INTO payment_link (id, merchant_id, status, amount_mode, suggested, created_at)"
        " VALUES ('lnk_2', 1, 'active', 'flexible', '5 10.50', 22)",
    ),
    "0023_currency": (
        "UPDATE merchant SET currency = 'EUR' WHERE id = 1",
        "UPDATE invoice SET currency = 'EUR', price_in_currency = '55200' WHERE id = 'inv_1'",
        "UPDATE payment SET currency = 'EUR', amount_at_receipt = '0.01' WHERE id = 'pay_1'",
    ),
    "0024_merchant_day": (),
    "0026_merchant_lists": (),
    "0028_link_pages": (),
}


@pytest.fixture(params=["sqlite", "postgresql"])
def url(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[str]:
    """A database without tables, of each kind in every run."""
    if request.param == "sqlite":
        yield f"sqlite:///{tmp_path}/btcpay.db"
        return
    server = postgres.server()
    made = server.create("template1")
    yield made
    server.drop(made)


def bring_to(url: str, version: str) -> dict[str, Any]:
    """Makes the database of an earlier version, with that version's rows; all of them."""
    if path := sqlite_path(url):
        create_file(path)
    _run_up(url, min(version, OLD))
    with raw(url) as connection:
        for earlier in VERSIONS[: VERSIONS.index(version) + 1]:
            if earlier > OLD:
                break
            for statement in ROWS[earlier]:
                connection.execute(statement)
    for later in VERSIONS[VERSIONS.index(OLD) + 1 : VERSIONS.index(version) + 1]:
        _run_up(url, later)
        with raw(url) as connection:
            for statement in ROWS[later]:
                connection.execute(statement)
    with raw(url) as connection:
        return tables(connection)


def _run_up(url: str, version: str) -> None:
    db = open_database(url)
    with db.connected():
        Runner(db.connection, str(versions.MIGRATIONS)).up(version)
    db.close()


# The last version whose columns all rows of earlier ones fit.
OLD = "0014_wallet_gap"
# What block following keeps in another way.
OTHERWISE = {"tip_height", "begin_at"}
# Null, of a coin that nobody was asked for, is -1 now.
NEVER_ASKED = "0016_growth"


def test_every_version_has_its_rows_here():
    assert sorted(ROWS) == VERSIONS


@pytest.mark.parametrize("version", VERSIONS)
def test_a_database_of_every_version_is_brought_up_to_date_with_its_rows_intact(url, version):
    before = bring_to(url, version)
    assert migrate.migrate(url, "regtest") == VERSIONS[VERSIONS.index(version) + 1 :]
    with raw(url) as connection:
        after = tables(connection)
    if version < NEVER_ASKED and "asked_at" in before["output"][0]:
        before["output"] = [row | {"asked_at": -1} for row in before["output"]]
    for table in before.keys() - {"schema_migration"}:
        known = before[table][0].keys() & after[table][0].keys() if before[table] else set()
        # A server gives rows that were changed another place.
        assert _rows(after[table], known) == _rows(before[table], known), table
    db = versions.open_ready(url, "regtest")
    sums = [tuple(db.only(balances.OF_MERCHANT, merchant_id=n).values()) for n in (1, 2)]
    assert sums == [(5, 16), (0, 0)]
    assert meta.get(db, meta.Key.NETWORK) == "regtest"
    db.close()


def _rows(rows: list[dict[str, Any]], known: Set[str]) -> list[str]:
    kept = [row for row in rows if row.get("name") not in OTHERWISE]
    return sorted(repr([row[column] for column in sorted(known)]) for row in kept)


def test_an_upgrade_to_blocks_takes_along_what_was_paid_and_lets_the_rest_be_read_again(url):
    """A payment keeps its block and proof; what waited for depth is found by its block."""
    bring_to(url, OLD)
    with raw(url) as connection:
        connection.execute(
            "INSERT INTO output (txid, vout, invoice_id, merchant_id, amount_sats, coinbase,"
            " first_seen_at, block_height, block_hash, block_time_at, proven, position)"
            " VALUES ('tx_d', 0, 'inv_1', 1, 13, 1, 10, 98, 'g', 9, 1, 0)"
        )
        connection.execute("UPDATE invoice SET checked_at = 14 WHERE id = 'inv_1'")
    migrate.migrate(url, "regtest")
    with raw(url) as connection:
        found = tables(connection)
    outputs = {row["txid"]: row for row in found["output"]}
    assert (outputs["tx_a"]["block_height"], outputs["tx_b"]["spent_height"]) == (99, 101)
    waiting = outputs["tx_d"]
    assert (waiting["block_height"], waiting["position"], waiting["coinbase"]) == (None, None, 0)
    assert found["proof"] == [{"invoice_id": "inv_2", "txid": "tx_a", "document": "{}"}]
    facts = {row["name"]: row["value"] for row in found["meta"]}
    assert facts["begin_at"] == "9" and "tip_height" not in facts
    (shop, _) = sorted(found["balance"], key=lambda row: row["merchant_id"])
    assert (shop["confirmed_sats"], shop["total_sats"]) == (5, 5 + 11 + 13)


@pytest.mark.parametrize(
    ("finished_at", "waits", "begins"), [(None, True, 14), (15, True, 14), (15, False, None)]
)
def test_blocks_are_read_from_the_oldest_look_at_an_address_that_was_watched(
    url, finished_at, waits, begins
):
    """A finished invoice was watched for a week, or while money waited; otherwise reading begins
    at the upgrade.
    """
    bring_to(url, OLD)
    with raw(url) as connection:
        if not waits:
            connection.execute("UPDATE output SET vanished_at = 13 WHERE txid = 'tx_c'")
        connection.execute("UPDATE invoice SET checked_at = 14 WHERE id = 'inv_1'")
        if finished_at:
            connection.execute(
                "UPDATE invoice SET status = 'canceled', finished_at = 15 WHERE id = 'inv_1'"
            )
    migrate.migrate(url, "regtest")
    with raw(url) as connection:
        facts = {row["name"]: row["value"] for row in tables(connection)["meta"]}
    since_ms = int(facts["begin_at"])
    assert since_ms == begins if begins else abs(since_ms - time.time() * 1000) < 60_000


ENDED = """INSERT INTO invoice (id, merchant_id, status, amount_sats, amount_usd_quote, price_usd,
    deposit_address, address_index, tx_hash, paid_at, finished_at, expires_at, created_at)
    VALUES ('inv_{n}', 1, '{status}', {asked}, '1', '1', '{n}', {n}, {paid}, {finished}, 30, 10)"""
CAME = (
    """INSERT INTO payment (id, merchant_id, address_invoice_id, invoice_id, amount_sats, tx_hash,
    created_at) VALUES ('of {n}', 1, 'inv_{n}', {settled}, 1294, 'tx', {came})""",
    """INSERT INTO output (txid, vout, invoice_id, merchant_id, amount_sats, coinbase,
    first_seen_at, block_height, block_hash, block_time_at, proven, payment_id)
    VALUES ('tx', 0, 'inv_{n}', 1, 1294, 0, {came}, 99, 'h', {came}, 1, 'of {n}')""",
)


def add_ended(connection: Any, n: int, status: str, asked: int, came: int | None) -> None:
    """An invoice that ends at 30, and 1,294 satoshis that came to it at that time."""
    values = {
        "paid": "'tx', 20" if status == "paid" else "NULL, NULL",
        "finished": "NULL" if status == "open" else "30",
        "settled": f"'inv_{n}'" if status == "paid" else "NULL",
    }
    for statement in (ENDED, *(CAME if came else ())):
        connection.execute(statement.format(n=n, status=status, asked=asked, came=came, **values))


def test_an_upgrade_finds_what_wanted_attention_before_there_was_a_table_of_it(url):
    bring_to(url, "0009_claim")
    with raw(url) as connection:
        add_ended(connection, 10, "expired", 2000, came=29)
        add_ended(connection, 11, "expired", 1000, came=30)
        add_ended(connection, 12, "canceled", 1000, came=40)
        add_ended(connection, 13, "paid", 1000, came=20)
        add_ended(connection, 14, "paid", 1001, came=20)
        add_ended(connection, 15, "open", 1587, came=20)
        add_ended(connection, 16, "open", 1588, came=20)
        add_ended(connection, 17, "open", 1000, came=None)
        add_ended(connection, 18, "expired", 1000, came=None)
        connection.execute(
            "INSERT INTO event (invoice_id, happened_at, kind, detail)"
            " VALUES ('inv_17', 12, 'reorganised', '{\"id\": \"pay_0\", \"reopened\": true}')"
        )
    migrate.migrate(url, "regtest")
    with raw(url) as connection:
        found = {row["invoice_id"]: row["reason"] for row in tables(connection)["attention"]}
    assert found == {
        "inv_10": "short",
        "inv_11": "paid_late",
        "inv_12": "after_cancellation",
        "inv_13": "too_much",
        "inv_15": "dust_missing",
        "inv_17": "reorganised",
    }


def spoil(url: str, sats: int, count: int) -> None:
    """An explorer has shown so much, waiting, at `count` new addresses of the first merchant."""
    with raw(url) as connection:
        for number in range(count):
            connection.execute(
                "INSERT INTO invoice (id, merchant_id, status, amount_sats,"  # noqa: S608
                " amount_usd_quote, price_usd, deposit_address, address_index, created_at)"
                f" VALUES ('lie_{number}', 1, 'open', 9, '1', '1', 'lie{number}', {9 + number}, 9)"
            )
            connection.execute(
                "INSERT INTO output (txid, vout, invoice_id, merchant_id, amount_sats,"  # noqa: S608
                f" coinbase, first_seen_at) VALUES ('lie', 0, 'lie_{number}', 1, {sats}, 0, 10)"
            )


@pytest.mark.parametrize("lies", [0, 2, 4_500], ids=["none left", "two", "beyond 64 bits"])
def test_a_balance_that_lost_its_whole_numbers_is_counted_anew(tmp_path, lies):
    url = f"sqlite:///{tmp_path}/btcpay.db"
    bring_to(url, "0009_claim")
    spoil(url, 2_100_000_000_000_000, lies)
    with raw(url) as connection:
        connection.execute("UPDATE balance SET total_sats = 9.45e18 WHERE merchant_id = 1")
    migrate.migrate(url, "regtest")
    with raw(url) as connection:
        stored = tables(connection)["balance"][0]
    assert list(stored.values()) == [1, 5, 16 if lies < 2 else 5, 12]
    assert [type(value) for value in stored.values()] == [int] * 4


def test_of_more_than_can_exist_only_what_is_proven_stays_money(url):
    bring_to(url, "0009_claim")
    spoil(url, 2_100_000_000_000_000, 1)
    migrate.migrate(url, "regtest")
    with raw(url) as connection:
        outputs = {(o["invoice_id"], o["txid"]): o for o in tables(connection)["output"]}
        (shop, _) = sorted(tables(connection)["balance"], key=lambda row: row["merchant_id"])
    assert shop["total_sats"] == 5
    assert outputs["lie_0", "lie"]["vanished_at"] and outputs["inv_1", "tx_c"]["vanished_at"]
    assert outputs["inv_2", "tx_a"]["vanished_at"] is None


def test_what_was_seen_before_its_block_is_told_from_the_history(url):
    bring_to(url, "0009_claim")
    seen = [("tx_a", 0, "null"), ("tx_b", 1, '{"height": 99}'), ("tx_b", 11, "null")]
    with raw(url) as connection:
        for txid, vout, block in seen:
            detail = f'{{"txid": "{txid}", "vout": {vout}, "amount_sats": 5, "block": {block}}}'
            of = "inv_2" if txid == "tx_a" else "inv_1"
            connection.execute(
                "INSERT INTO event (invoice_id, happened_at, kind, detail)"  # noqa: S608
                f" VALUES ('{of}', 12, 'seen', '{detail}')"
            )
    migrate.migrate(url, "regtest")
    with raw(url) as connection:
        found = {o["txid"]: o["seen_waiting"] for o in tables(connection)["output"]}
    assert found == {"tx_a": 1, "tx_b": 0, "tx_c": 1}


def test_the_payments_of_before_are_summed_by_day(url):
    bring_to(url, "0021_merchant_session")
    with raw(url) as connection:
        connection.execute(
            "INSERT INTO payment (id, merchant_id, address_invoice_id, amount_sats,"
            " amount_usd_at_receipt, tx_hash, created_at)"
            " VALUES ('pay_3', 1, 'inv_1', 9, '1234.50', 'tx_e', 86399999),"
            " ('pay_4', 1, 'inv_1', 9, '0.07', 'tx_f', 86400000)"
        )
    migrate.migrate(url, "regtest")
    with raw(url) as connection:
        found = sorted(tuple(row.values()) for row in tables(connection)["merchant_day"])
    # Of merchant and day: payments, those without a price, satoshis, cents.
    assert found == [(1, 0, 3, 2, 5 + 7 + 9, 123_450), (1, 1, 1, 0, 9, 7)]


def test_a_proven_coinbase_is_one_and_an_ordinary_one_is_none(url):
    bring_to(url, "0009_claim")
    with raw(url) as connection:
        connection.execute("UPDATE output SET position = 0 WHERE txid = 'tx_a'")
        connection.execute("UPDATE output SET position = 4 WHERE txid = 'tx_b'")
    migrate.migrate(url, "regtest")
    with raw(url) as connection:
        found = {o["txid"]: o["coinbase"] for o in tables(connection)["output"]}
    assert found == {"tx_a": 1, "tx_b": 0, "tx_c": 0}


SATOSHIS = [
    ("invoice", "amount_sats"),
    ("payment", "amount_sats"),
    ("output", "amount_sats"),
    ("balance", "confirmed_sats"),
    ("balance", "total_sats"),
    ("balance", "settled_sats"),
    ("merchant_day", "received_sats"),
]


def test_every_column_of_satoshis_is_known_here(tmp_path):
    url = f"sqlite:///{tmp_path}/btcpay.db"
    migrate.migrate(url, "regtest")
    with raw(url) as connection:
        found = connection.execute(
            "SELECT m.name, c.name FROM sqlite_master AS m, pragma_table_info(m.name) AS c"
            " WHERE m.type = 'table' AND c.name LIKE '%sats'"
        ).fetchall()
    assert sorted(map(tuple, found)) == sorted(SATOSHIS)


@pytest.mark.parametrize("version", VERSIONS)
def test_after_an_upgrade_satoshis_are_whole_numbers(tmp_path, version):
    url = f"sqlite:///{tmp_path}/btcpay.db"
    bring_to(url, version)
    migrate.migrate(url, "regtest")
    for table, column in SATOSHIS:
        for value in ("7.5", "9.45e18", "'many'", "x'07'"):
            change = f"UPDATE {table} SET {column} = {value}"  # noqa: S608
            with raw(url) as connection, pytest.raises(sqlite3.IntegrityError, match="CHECK"):
                connection.execute(change)


@pytest.mark.parametrize("version", VERSIONS)
def test_an_upgraded_file_is_sound_and_has_the_tables_of_a_new_one(tmp_path, version):
    old, new = f"sqlite:///{tmp_path}/old.db", f"sqlite:///{tmp_path}/new.db"
    bring_to(old, version)
    made = []
    for url in (old, new):
        migrate.migrate(url, "regtest")
        with raw(url) as connection:
            assert [*connection.execute("PRAGMA integrity_check").fetchone()] == ["ok"]
            assert connection.execute("PRAGMA foreign_key_check").fetchall() == []
            made.append(
                sorted(
                    map(
                        tuple,
                        connection.execute(
                            "SELECT type, name, tbl_name, sql FROM sqlite_master"
                        ).fetchall(),
                    ),
                    key=repr,
                )
            )
    assert made[0] == made[1]


def test_an_upgrade_that_fails_leaves_the_version_before_it(url):
    before = bring_to(url, "0003_balance")
    with raw(url) as connection:  # in the way of 0004's second table
        connection.execute("CREATE TABLE explorer_use (root TEXT)")
    with pytest.raises(Exception, match="explorer_use"):
        migrate.migrate(url, "regtest")
    with raw(url) as connection:
        connection.execute("DROP TABLE explorer_use")
        assert tables(connection) == before
    assert migrate.migrate(url, "regtest") == VERSIONS[3:]


def test_of_two_processes_that_upgrade_at_once_one_does_it(url):
    bring_to(url, "0001_first")
    environ = {"PATH": "/usr/bin:/bin", "BTCPAY_DATABASE_URL": url}
    started = [forge().start(environ, ["migrate"]) for _ in range(2)]
    told = [child.communicate(timeout=60) for child in started]
    assert [child.returncode for child in started] == [0, 0], told
    (idle,) = (text for text, _ in told if "nothing to do" in text)
    (busy,) = (text for text, _ in told if text != idle)
    assert ", ".join(VERSIONS[1:]) in busy
