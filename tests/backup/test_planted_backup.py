"""A backup that somebody else has had in his hands: what he planted is refused before it runs."""

import re
import shutil
import sqlite3

import pytest

from btcpay.merchants.account import derive
from btcpay.values.errors import CommandError
from storage.backup import sqlite_file
from tests.support import postgres
from tests.support.account_texts import account_of
from tests.support.builders import new_xpub
from tests.support.databases import raw
from tests.support.fake_esplora import Terminal
from tests.support.other_database import backed_up, change

pytestmark = pytest.mark.slow

RUNS = "writefile_or_whatever(1)"  # no such function: whoever runs it is told so


def rewritten(table, old, new):
    """SQL that changes a definition in place, for which SQLite itself has no statement."""
    return (
        f"UPDATE sqlite_master SET sql = replace(sql, '{old}', '{new}')"  # noqa: S608
        f" WHERE name = '{table}'"
    )


PLANTED = {
    "trigger widen": "CREATE TRIGGER widen AFTER UPDATE ON merchant BEGIN"
    " UPDATE api_key SET scope = 'write'; END",
    "view note": "CREATE VIEW note AS SELECT * FROM merchant",
    "table note": "CREATE TABLE note (text TEXT)",
    "index note": "CREATE INDEX note ON merchant (name)",
    "index by_code": "CREATE INDEX by_code ON merchant (abs(next_index))",
    "table api_key": rewritten("api_key", "scope TEXT", "scope TEXT DEFAULT ''write''"),
    "table merchant": rewritten("merchant", "name TEXT", f"name TEXT CHECK ({RUNS})"),
    "table invoice": "ALTER TABLE invoice ADD COLUMN ours TEXT GENERATED ALWAYS AS (price_usd)",
    "table proof": "DROP TABLE proof",
    "table sqlite_stat1": "ANALYZE",
}


def test_a_backup_with_more_in_it_is_refused_before_more_than_its_list_is_read(
    till, tmp_path, monkeypatch
):
    touched: list[str] = []
    opened = sqlite_file.read_only

    def watch(file):
        db = opened(file)
        db.set_authorizer(lambda *seen: touched.append(str(seen)) or sqlite3.SQLITE_OK)
        return db

    monkeypatch.setattr(sqlite_file, "read_only", watch)
    kept = backed_up(till, tmp_path / "kept.db")
    for name, statement in PLANTED.items():
        file = shutil.copy(kept, tmp_path / "planted.db")
        change(file, statement)
        touched.clear()
        with pytest.raises(
            CommandError, match="this version of the program does not make"
        ) as caught:
            sqlite_file.inspect(file, file)
        assert name in str(caught.value) and "no such function" not in str(caught.value)
        read = [
            s
            for s in touched
            if not re.search(r"sqlite_master|trusted_schema|\(21,", s)
        ]
        assert touched and read == [], name


@pytest.mark.parametrize("database", ["SQLite", "PostgreSQL"])
def test_nothing_of_a_planted_backup_gets_into_the_database(database, till, tmp_path):
    file = backed_up(till, tmp_path / "kept.db")
    url = f"sqlite:///{tmp_path}/place.db"
    change(file, PLANTED["table merchant"])
    if database == "PostgreSQL":
        url = postgres.server().create()
        Terminal(till).run("migrate", BLOCKTILL_DATABASE_URL=url)
    words = ["restore", str(file), "--yes"]
    said = Terminal(till).run(*words, status=1, BLOCKTILL_DATABASE_URL=url)[1]
    assert "table merchant" in said and not (tmp_path / "place.db").exists()
    if database == "PostgreSQL":
        with raw(url) as connection:
            assert connection.execute("SELECT name FROM merchant").fetchall() == []


# Things that no program can tell: whose addresses, and whose programs these are


def test_whom_it_pays_and_what_it_runs_are_shown_before_it_asks(till, tmp_path):
    file = backed_up(till, tmp_path / "kept.db")
    place = tmp_path / "place.db"
    theirs = account_of(new_xpub(), till.settings.network)
    hides = "shop\x1b[8m"  # ECMA-48: a terminal shows nothing of what follows
    change(
        file,
        f"UPDATE merchant SET descriptor = '{theirs}', name = '{hides}'",  # noqa: S608
        "INSERT INTO receiver (id, merchant_id, transport, command, created_ms)"
        " SELECT 'whk_1', id, 'command', 'sh -c ' || name, 0 FROM merchant",
    )
    first = [derive(str(theirs), n, till.settings.network) for n in range(3)]
    process = Terminal(till).start(
        "restore", str(file), BLOCKTILL_DATABASE_URL=f"sqlite:///{place}"
    )
    _, said = process.communicate(timeout=60)
    assert process.returncode == 1 and not place.exists()
    assert "a shop on regtest with 1 merchant" in said and "\x1b" not in said
    assert f"shop\\x1b[8m: the first addresses are {', '.join(first)}" in said
    assert said.index(first[2]) < said.index("Replace")
    assert "A check will run this program: sh -c shop\\x1b[8m" in said


# Things that would keep payments from being found, or stop the shop later


# A text where a number belongs: each by a connection of its own, the rule is away for the second.
STRICT = (
    "UPDATE sqlite_master SET sql = replace(sql, '{}', '{}') WHERE name = 'balance'"
)
TEXT = [
    STRICT.format(") STRICT", ")"),
    "UPDATE balance SET total_sats = 'many'",
    STRICT.replace("replace(sql, '{}', '{}')", "sql || ' STRICT'"),
]
SPOILED = {
    "a balance that is text": (TEXT, "INTEGER value in balance.total_sats"),
    "a key that is none": (
        ["UPDATE merchant SET descriptor = 'wpkh(x)'"],
        "not an xpub or tpub",
    ),
    "an index of 2^31": (
        ["UPDATE invoice SET address_index = 2147483648"],
        "2147483648",
    ),
    "an index below 0": (["UPDATE invoice SET address_index = -1"], "-1"),
    "a counter of 2^31": (
        ["UPDATE merchant SET next_index = 2147483648"],
        "2147483648",
    ),
    "the address of somebody else": (
        ["UPDATE invoice SET deposit_address = replace(deposit_address, 'q', 'p')"],
        "not the address",
    ),
    "the script of somebody else": (
        [f"UPDATE invoice SET script = '0014{'a' * 40}'"],  # noqa: S608
        "not the script of its address",
    ),
}


@pytest.mark.parametrize("name", SPOILED)
def test_a_spoiled_backup_is_refused_with_a_sentence(till, tmp_path, name):
    till.shop.invoice()
    file = backed_up(till, tmp_path / "kept.db")
    place = tmp_path / "place.db"
    statements, said = SPOILED[name]
    for statement in statements:
        change(file, statement)
    environ = {"BLOCKTILL_DATABASE_URL": f"sqlite:///{place}"}
    errors = Terminal(till).run("restore", str(file), "--yes", status=1, **environ)[1]
    assert said in errors and "Traceback" not in errors and not place.exists()
