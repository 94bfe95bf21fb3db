"""A database of an earlier version comes to this one with all it has: a step runs once, or not."""

import json
import re
import shutil
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from btcpay.values.errors import DatabaseNotReady
from storage import versions
from storage.models.shop import Table
from storage.steps import STEPS, hash_of, hash_of_steps, statements
from storage.versions import migrate
from tests.support import postgres
from tests.support.builders import at_once, until
from tests.support.databases import (
    ON_POSTGRES,
    about_sqlite,
    empty_database,
    raw,
    tables,
)
from tests.support.fake_esplora import Terminal
from tests.support.other_database import backed_up, lived_in
from tests.support.paths import PROJECT

pytestmark = [pytest.mark.both_databases, pytest.mark.slow]

# The steps that were published, and what their statements hash to: they are never edited.
RELEASED = {
    "0001_first.sql": "f01302024d86ca9f56b6ea2766cbfeab7724df1276c935139a9fb913da434553",
    "0002_key_requests.sql": (
        "1f9e6ac83d40273ff0522c45a87298947866f3dae733ac85360500879a9fd54f"
    ),
}
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
    "INSERT INTO merchant (name, descriptor, account_key, created_ms)"
    " VALUES ('shop', 'wpkh(x)', 'k', 9)"
)


@pytest.fixture
def url(tmp_path):
    """A database of today's version, with a merchant."""
    made = empty_database(tmp_path)
    migrate(made, "regtest")
    with raw(made) as connection:
        connection.execute(MERCHANT)
    return made


@pytest.fixture
def later(tmp_path):
    """The steps of a program that has one more."""
    folder = tmp_path / "steps"
    shutil.copytree(STEPS, folder)
    (folder / "9000_note.sql").write_text(STEP)
    return folder


def content(url):
    with raw(url) as connection:
        return tables(connection)


def version(url):
    (row,) = content(url)["schema_step"]
    return row["number"]


def test_the_published_steps_are_as_they_were():
    for name, sha256 in RELEASED.items():
        assert hash_of(STEPS / name) == sha256, name


# A later program


class Later:
    """A copy of the program: its next step adds a column to every table, and to every model.

    Its statements read the column wherever they read all of a row; none writes it.
    """

    def __init__(self, folder: Path, environ: dict[str, str]) -> None:
        self._folder = folder
        self._environ = environ
        for name in ("btcpay", "schemas", "storage"):
            shutil.copytree(PROJECT / name, folder / name)
        models = [
            *(folder / "storage/models").glob("*.py"),
            *(folder / "btcpay/parts").glob("*/models.py"),
        ]
        for path in models:
            field = r"\g<0>    later_column = TextField(null=True)\n"
            path.write_text(re.sub(r"class \w+\(Table\):\n", field, path.read_text()))
        statement = folder / "storage/statement.py"
        every = statement.read_text().replace(
            '!= "seq"', 'not in ("seq", "later_column")'
        )
        statement.write_text(every)
        made = [model._meta.table_name for model in Table.__subclasses__()]
        step = "".join(
            f"ALTER TABLE {table} ADD COLUMN later_column TEXT;\n" for table in made
        )
        (folder / "storage/schema/9000_note.sql").write_text(step)

    def run(self, url, *words, status=0):
        """Standard output and standard error."""
        ended = subprocess.run(
            [sys.executable, "-m", "btcpay", *words],
            cwd=self._folder,
            env=self._environ
            | {"PYTHONPATH": str(self._folder), "BLOCKTILL_DATABASE_URL": url},
            capture_output=True,
            text=True,
        )
        assert ended.returncode == status, ended.stderr
        return ended.stdout, ended.stderr

    def json(self, url, *words):
        return json.loads(self.run(url, *words, "--json")[0])


@pytest.fixture
def filled(till, tmp_path):
    """A shop with rows in every table."""
    lived_in(till, tmp_path)
    till.shop.service.close()  # which has written all that it noted
    assert all(content(till.settings.database_url).values())
    return till


@pytest.fixture
def program(filled, tmp_path):
    return Later(tmp_path / "later", Terminal(filled).environ)


def same(rows, before):
    """The rows, in whatever order, with an empty column more."""
    wanted = [row | {"later_column": None} for row in before]
    assert sorted(rows, key=repr) == sorted(wanted, key=repr)


@about_sqlite
@pytest.mark.parametrize("database", ["SQLite", "PostgreSQL"])
def test_a_backup_of_the_version_before_is_restored(
    database, filled, program, tmp_path
):
    url = f"sqlite:///{tmp_path}/place.db"
    if database == "PostgreSQL":
        url = postgres.server().create("template1")
        program.run(url, "migrate")
    file = backed_up(filled, tmp_path / "kept.db")
    assert program.json(url, "restore", str(file), "--yes")["migrated"] == ["9000_note"]
    same(content(url)["invoice"], content(f"sqlite:///{file}")["invoice"])
    program.run(url, "doctor", "--integrity")


@about_sqlite
def test_a_restore_leaves_a_database_of_the_version_before_to_be_migrated(
    filled, program, tmp_path
):
    """Counters that it could not read there would fall back."""
    file = backed_up(filled, tmp_path / "kept.db")
    place = shutil.copy(file, tmp_path / "place.db")
    said = program.run(f"sqlite:///{place}", "restore", str(file), "--yes", status=1)[1]
    assert f"is at version {versions.VERSION}: run `blocktill migrate` first" in said


# Once, or not at all


def test_of_several_that_upgrade_at_once_one_does_it(url, later):
    done = at_once(4, lambda _: migrate(url, "regtest", later))
    assert sorted(done) == [[], [], [], ["9000_note"]]
    assert len(content(url)["note"]) == 1


@pytest.mark.skipif(not ON_POSTGRES, reason="SQLite has one writer at a time")
def test_what_a_service_that_still_runs_has_written_is_not_lost(url, later):
    """It hands out an address while the step begins, which makes the table anew."""
    (later / "9000_note.sql").write_text(MADE_ANEW)
    with ThreadPoolExecutor(1) as pool:
        with raw(url) as service:
            service.execute("UPDATE merchant SET next_index = 7")
            upgrade = pool.submit(migrate, url, "regtest", later)
            until(
                lambda: locks_waited_for(url) or upgrade.done(), "the upgrade to wait"
            )
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
        migrate(url, "regtest", later)
    assert content(url) == before and version(url) == versions.VERSION
    step.write_text(STEP)
    assert migrate(url, "regtest", later) == ["9000_note"]


def test_a_program_refuses_the_database_of_an_earlier_one(url):
    with pytest.raises(
        DatabaseNotReady, match="run `blocktill migrate`, after a backup"
    ):
        versions.refuse_version(version(url), "shop.db", needed=versions.VERSION + 1)


@pytest.fixture
def edited(tmp_path):
    """The first step as a checkout had it, with another rule."""
    folder = tmp_path / "edited"
    shutil.copytree(STEPS, folder)
    first = folder / "0001_first.sql"
    first.write_text(
        first.read_text().replace("CHECK (total >= 0)", "CHECK (total > -1)")
    )
    assert hash_of(first) not in RELEASED.values()
    return folder


@pytest.mark.parametrize("open_it", [versions.open_ready, migrate])
def test_a_database_that_the_same_step_made_before_it_was_edited_is_refused(
    open_it, edited, tmp_path
):
    made = empty_database(tmp_path)
    every_step = sorted(path.stem for path in edited.glob("*.sql"))
    assert migrate(made, "regtest", edited) == every_step
    assert migrate(made, "regtest", edited) == []
    before = content(made)
    with pytest.raises(
        DatabaseNotReady, match="is of an older version of this program: its data"
    ):
        open_it(made, "regtest")
    assert content(made) == before


def test_both_databases_keep_the_same_hash_of_a_step(url):
    (row,) = content(url)["schema_step"]
    assert row["sha256"] == hash_of_steps(STEPS, versions.VERSION)


# The words of the two databases


def test_a_step_is_one_text_in_the_words_of_both_databases(later):
    step = later / "9000_note.sql"
    server, sqlite = (statements(step, is_server) for is_server in (True, False))
    assert len(server) == 4 and len(sqlite) == 3
    assert server[0].startswith(
        "CREATE TABLE note (\n    seq BIGINT GENERATED ALWAYS AS IDENTITY"
    )
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
