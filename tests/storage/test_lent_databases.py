"""What the tests' own server lends: a database that is as new, whatever the test before it did."""

import postgres
import psycopg
import pytest
from builders import REGTEST, new_xpub
from databases import tables

from btcpay.merchants.account import parse_account
from btcpay.merchants.merchants import add_merchant
from btcpay.values.times import utc_now
from storage.database import open_database


@pytest.fixture
def server() -> postgres.Server:
    """The server of this run, with nothing to lend that was made before."""
    postgres.server().drop_idle()
    return postgres.server()


def name_of(url: str) -> str:
    return url.rpartition("/")[2]


def execute(url: str, statement: str) -> None:
    with psycopg.connect(url) as connection:
        connection.execute(statement)


def contents(url: str) -> dict[str, list[object]]:
    with psycopg.connect(url, row_factory=psycopg.rows.dict_row) as connection:
        return tables(connection)


def test_it_comes_back_empty_and_counts_from_one(server):
    first = server.lend()
    new = contents(first)
    db = open_database(first)
    add_merchant(db, "one", parse_account(new_xpub(), REGTEST), utc_now())
    assert contents(first) != new
    db.close()
    server.take_back(first)
    second = server.lend()
    assert name_of(second) == name_of(first)
    assert contents(second) == new
    execute(second, "INSERT INTO schema_version VALUES (9999)")
    execute(second, "DELETE FROM schema_version WHERE version = 9999")
    db = open_database(second)
    add_merchant(db, "two", parse_account(new_xpub(), REGTEST), utc_now())
    db.close()
    assert [row["id"] for row in contents(second)["merchant"]] == [1]


def test_who_was_connected_is_sent_away_and_cannot_come_back(server):
    first = server.lend()
    left = psycopg.connect(first)
    left.execute("LOCK TABLE invoice")
    server.take_back(first)
    second = server.lend()
    assert name_of(second) == name_of(first)
    with pytest.raises(psycopg.OperationalError, match="terminating connection"):
        left.execute("SELECT 1")
    with pytest.raises(psycopg.OperationalError, match="does not exist"):
        psycopg.connect(first)
    execute(second, "DELETE FROM invoice")  # is not locked


@pytest.mark.parametrize(
    "change",
    [
        "CREATE TABLE another (id INTEGER)",
        "DROP TABLE tally",
        "ALTER TABLE invoice ADD COLUMN another INTEGER",
        "ALTER TABLE invoice RENAME COLUMN status TO another",
        "ALTER TABLE invoice ALTER COLUMN status DROP NOT NULL",
        "ALTER TABLE invoice ALTER COLUMN status SET DEFAULT 'open'",
        "ALTER TABLE merchant DISABLE TRIGGER ALL",
        "ALTER SEQUENCE merchant_id_seq CYCLE",
        "DROP INDEX invoice_newest",
        "CREATE VIEW another AS SELECT * FROM invoice",
        "CREATE FUNCTION another() RETURNS INTEGER LANGUAGE SQL AS 'SELECT 1'",
        "CREATE RULE another AS ON DELETE TO invoice DO INSTEAD NOTHING",
        "CREATE SCHEMA another",
        "REVOKE ALL ON invoice FROM PUBLIC, btcpay",
        "ALTER DEFAULT PRIVILEGES GRANT SELECT ON TABLES TO PUBLIC",
        "SELECT lo_create(0)",
        "UPDATE schema_version SET version = version + 1",
        "DELETE FROM schema_version",
        "DO $$BEGIN EXECUTE format('ALTER DATABASE %I SET jit = off', current_database()); END$$",
    ],
)
def test_it_is_not_lent_again_when_its_schema_was_changed(server, change):
    url = server.lend()
    execute(url, change)
    server.take_back(url)
    assert name_of(server.lend()) != name_of(url)
    with pytest.raises(psycopg.OperationalError, match="does not exist"):
        psycopg.connect(server.url(name_of(url)))


def test_nor_when_it_was_dropped_copied_or_the_server_was_stopped(server):
    dropped, copied, stopped = server.lend(), server.lend(), server.lend()
    server.drop(dropped)
    copy = server.create(name_of(copied))
    server.restart()
    for url in (dropped, copied, stopped, copy):
        server.take_back(url)
    assert not server._idle
    assert not {dropped, copied, stopped, copy} & server.made


def test_it_is_lent_only_so_often(server):
    names = set()
    for _ in range(postgres.TIMES + 1):
        url = server.lend()
        names.add(name_of(url))
        server.take_back(url)
    assert len(names) == 2


def test_a_test_that_wants_many_gets_them(server):
    urls = [server.lend() for _ in range(postgres.AT_ONCE + 2)]
    assert len({name_of(url) for url in urls}) == len(urls)
    for url in urls:
        execute(url, "SELECT * FROM invoice")
        server.take_back(url)
    assert len(server._idle) == postgres.AT_ONCE
