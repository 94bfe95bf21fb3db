"""A database of an earlier version comes to this one with all it has: a step runs once, or not."""

import shutil
from concurrent.futures import ThreadPoolExecutor

import pytest
from builders import at_once, until
from databases import ON_POSTGRES, about_sqlite, empty_database, raw, tables

from btcpay.values.errors import DatabaseNotReady
from storage import migrate, versions
from storage.database import open_database

pytestmark = pytest.mark.both_databases

STEP = """-- A comment; with a semicolon
CREATE TABLE note (
    seq BIGINT GENERATED ALWAYS AS IDENTITY PRIMARY KEY,  -- the database's
    merchant_id BIGINT NOT NULL REFERENCES merchant (id),
    seal BYTEA
);
INSERT INTO note (merchant_id) SELECT id FROM merchant;
ALTER TABLE merchant ADD COLUMN colour TEXT;

-- PostgreSQL alone

CREATE INDEX note_seal ON note (seal);
"""
MADE_ANEW = """CREATE TABLE payee AS SELECT name, next_index FROM merchant;
DROP TABLE merchant CASCADE;
"""
MERCHANT = (
    "INSERT INTO merchant (name, descriptor, account_key, created_at)"
    " VALUES ('shop', 'wpkh(x)', 'k', 9)"
)


@pytest.fixture
def url(tmp_path):
    """A database of today's version, with a merchant."""
    made = empty_database(tmp_path)
    migrate.migrate(made, "regtest")
    with raw(made) as connection:
        connection.execute(MERCHANT)
    return made


@pytest.fixture
def later(tmp_path):
    """The steps of a program that has one more."""
    folder = tmp_path / "steps"
    shutil.copytree(versions.STEPS, folder)
    (folder / "9000_note.sql").write_text(STEP)
    return folder


def content(url):
    with raw(url) as connection:
        return tables(connection)


def version(url):
    db = open_database(url)
    try:
        return versions.version(db)
    finally:
        db.close()


def test_a_step_runs_once_on_the_rows_that_there_are(url, later):
    before = content(url)
    assert migrate.migrate(url, "regtest", later) == ["9000_note"]
    assert migrate.migrate(url, "regtest", later) == []
    after = content(url)
    assert version(url) == versions.VERSION + 1
    assert [row["merchant_id"] for row in after.pop("note")] == [1]
    assert after.pop("merchant") == [row | {"colour": None} for row in before.pop("merchant")]
    del before["schema_version"], after["schema_version"]
    assert after == before


def test_a_new_database_gets_every_step(tmp_path, later):
    url = empty_database(tmp_path / "new")
    assert migrate.migrate(url, "regtest", later) == [step.stem for step in versions.steps(later)]
    assert "note" in content(url)


def test_of_several_that_upgrade_at_once_one_does_it(url, later):
    done = at_once(4, lambda _: migrate.migrate(url, "regtest", later))
    assert sorted(done) == [[], [], [], ["9000_note"]]
    assert len(content(url)["note"]) == 1


@pytest.mark.skipif(not ON_POSTGRES, reason="SQLite has one writer at a time")
def test_what_a_service_that_still_runs_has_written_is_not_lost(url, later):
    """It hands out an address while the step begins, which makes the table anew."""
    (later / "9000_note.sql").write_text(MADE_ANEW)
    with ThreadPoolExecutor(1) as pool:
        with raw(url) as service:
            service.execute("UPDATE merchant SET next_index = 7")
            upgrade = pool.submit(migrate.migrate, url, "regtest", later)
            until(lambda: locks_waited_for(url) or upgrade.done(), "the upgrade to wait")
        assert upgrade.result() == ["9000_note"]
    assert content(url)["payee"] == [{"name": "shop", "next_index": 7}]


def locks_waited_for(url):
    with raw(url) as other:
        return other.execute(
            "SELECT count(*) AS waits FROM pg_stat_activity"
            " WHERE datname = current_database() AND wait_event_type = 'Lock'"
        ).fetchone()["waits"]


def test_a_step_that_fails_in_the_middle_leaves_the_version_before_it(url, later):
    before = content(url)
    step = later / "9000_note.sql"
    step.write_text(STEP.replace("ALTER TABLE merchant", "ALTER TABLE nothing"))
    with pytest.raises(Exception, match="nothing"):
        migrate.migrate(url, "regtest", later)
    assert content(url) == before and version(url) == versions.VERSION
    step.write_text(STEP)
    assert migrate.migrate(url, "regtest", later) == ["9000_note"]


def test_a_program_refuses_the_database_of_an_earlier_one(url):
    with pytest.raises(DatabaseNotReady, match="run `btcpay migrate`, after a backup"):
        versions.refuse_version(version(url), "shop.db", wanted=versions.VERSION + 1)


# The words of the two databases


def test_a_step_is_one_text_in_the_words_of_both_databases(later):
    step = later / "9000_note.sql"
    server, sqlite = (versions.statements(step, is_server) for is_server in (True, False))
    assert len(server) == 4 and len(sqlite) == 3
    assert server[0].startswith("CREATE TABLE note (\n    seq BIGINT GENERATED ALWAYS AS IDENTITY")
    assert sqlite[0] == (
        "CREATE TABLE note (\n    seq INTEGER PRIMARY KEY AUTOINCREMENT,\n"
        "    merchant_id INTEGER NOT NULL REFERENCES merchant (id),\n    seal BLOB\n) STRICT"
    )


@about_sqlite
def test_every_table_of_a_file_is_strict(url):
    """So a total beyond 64 bits, or a text among satoshis, is refused as a server refuses it."""
    with raw(url) as connection:
        loose = connection.execute(
            "SELECT name FROM pragma_table_list"
            " WHERE schema = 'main' AND NOT strict AND name NOT LIKE 'sqlite%'"
        ).fetchall()
        assert loose == []


@pytest.mark.parametrize("value", ["7.5", "9.45e18", "'many'"])
def test_satoshis_are_whole_numbers(url, value):
    if not url.startswith("sqlite") and value == "7.5":
        pytest.skip("a server rounds it")
    change = f"INSERT INTO balance VALUES (1, 0, 0, {value})"  # noqa: S608
    with pytest.raises(Exception, match="store|integer|range|bigint"), raw(url) as connection:
        connection.execute(change)
