"""A wrong BLOCKTILL_DATABASE_URL is no new shop: few commands make a database, and say so."""

import contextlib
import json
import sqlite3

import pytest

from storage.database import open_database
from tests.support import postgres
from tests.support.builders import new_xpub
from tests.support.databases import new_database
from tests.support.fake_esplora import Terminal
from tests.support.forge import forge

MAKES_IT = "`blocktill migrate`"
COMMANDS = [
    *("check", "check --invoice inv_1", "check --watch 1", "serve", "merchant list"),
    *("merchant add shop --xpub {xpub} --yes", "key list", "invoice list", "link list"),
    *(
        "webhook list",
        "listen",
        "export payments",
        "export labels",
        "wallet export shop",
    ),
    *("restore --in-place --yes", "backup copy.db", "doctor"),
]


def refused(folder, url, words):
    """The message of a command that could not begin."""
    environ = {
        "PATH": "/usr/bin:/bin",
        "BLOCKTILL_DATABASE_URL": url,
        "BLOCKTILL_BIND": "127.0.0.1:0",
    }
    environ |= {"BLOCKTILL_METRICS_BIND": "", "BLOCKTILL_NETWORK": "regtest"}
    environ |= {
        "BLOCKTILL_EXPLORERS": "http://127.0.0.1:9",
        "BLOCKTILL_PRICE_SOURCES": "http://a:9#/a",
    }
    ended = forge().run(
        environ, words.format(xpub=new_xpub()).split(), folder=str(folder)
    )
    assert ended.status == 1 and "Traceback" not in ended.errors, ended
    return ended.output + ended.errors


@pytest.mark.parametrize("words", COMMANDS)
def test_where_there_is_no_shop_none_is_made_and_the_place_is_named(words, tmp_path):
    said = refused(tmp_path, "sqlite:///lost/blocktill.db", words)
    assert f"{tmp_path}/lost/blocktill.db" in said and MAKES_IT in said, said
    assert list(tmp_path.iterdir()) == []
    for content in ("no bytes", "no tables"):
        path = tmp_path / f"{content}.db"
        with contextlib.closing(sqlite3.connect(path)) as db:
            if content == "no tables":
                db.execute("PRAGMA journal_mode = wal")
        path.touch()
        before = path.read_bytes()
        said = refused(tmp_path, f"sqlite:///{path}", words)
        assert str(path) in said or words == "doctor", said
        assert path.read_bytes() == before


@pytest.mark.parametrize("words", ["merchant list", "migrate"])
def test_a_folder_is_no_database(words, tmp_path):
    refused(tmp_path, f"sqlite:///{tmp_path}", words)
    assert list(tmp_path.iterdir()) == []


def test_nothing_that_opens_a_database_can_make_one(tmp_path):
    """Also where the file goes while it is served: the next connection makes no empty one."""
    db = open_database(f"sqlite:///{tmp_path}/gone.db")
    with pytest.raises(Exception, match="unable to open"):
        db.connection.execute_sql("SELECT 1")
    assert list(tmp_path.iterdir()) == []


def test_a_name_with_odd_letters_is_the_file_that_it_names(tmp_path):
    url = f"sqlite:///{tmp_path}/a%20b?c#d e.db"
    environ = {"PATH": "/usr/bin:/bin", "BLOCKTILL_DATABASE_URL": url}
    for words in (["migrate"], ["merchant", "list"]):
        assert forge().run(environ, words).status == 0
    assert "a%20b?c#d e.db" in {path.name for path in tmp_path.iterdir()}


def test_a_servers_empty_database_is_refused_and_named_without_the_password(tmp_path):
    url = postgres.server().create("template1")
    said = refused(tmp_path, url, "check")
    assert MAKES_IT in said and url.rpartition("/")[2] in said and "@" not in said


def test_migrate_says_where_it_made_a_new_database_and_where_it_did_not(tmp_path):
    url = f"sqlite:///{tmp_path}/new/blocktill.db"
    environ = {"PATH": "/usr/bin:/bin", "BLOCKTILL_DATABASE_URL": url}
    first, second = (forge().run(environ, ["migrate"]).output for _ in range(2))
    assert first.startswith(
        f"made a new database for regtest, {tmp_path}/new/blocktill.db"
    )
    assert "nothing to do" in second and "new" not in second


def test_check_and_doctor_of_a_shop_without_a_merchant_say_so_and_end_well(
    till, tmp_path
):
    empty = {"BLOCKTILL_DATABASE_URL": new_database(tmp_path, "empty")}
    output, said = Terminal(till).run("check", **empty)
    assert (
        "in the mempool: 0" in output
        and "no merchant" in said
        and "BLOCKTILL_DATABASE_URL" in said
    )
    assert '"merchants": 0' in Terminal(till).run("check", "--json", **empty)[0]
    assert Terminal(till).json("check")["merchants"] == 1
    assert "merchant" not in Terminal(till).run("check")[1]
    for environ, colour in (({}, "green"), (empty, "yellow")):
        findings = json.loads(Terminal(till).run("doctor", "--json", **environ)[0])
        (found,) = (finding for finding in findings if finding["name"] == "merchants")
        assert found["colour"] == colour
    assert "BLOCKTILL_DATABASE_URL" in found["remedy"]
