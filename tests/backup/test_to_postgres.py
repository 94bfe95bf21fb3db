"""`blocktill restore FILE` on PostgreSQL: a SQLite shop goes on there, with all that it has."""

import json
import tracemalloc
from contextlib import closing
from pathlib import Path

import pytest

from storage import versions
from storage.backup import into_empty
from storage.database import open_database
from storage.queries import merchants
from tests.support import postgres
from tests.support.databases import raw
from tests.support.fake_esplora import Terminal
from tests.support.other_database import (
    KEY,
    ORDER,
    answers,
    backed_up,
    change,
    lived_in,
    on,
    rows_of,
)

pytestmark = [pytest.mark.both_databases, pytest.mark.slow]


@pytest.fixture
def till(open_tills, tmp_path):
    """A shop on a SQLite file, whatever this run of the tests is about."""
    url = f"sqlite:///{tmp_path}/blocktill.db"
    return open_tills(BLOCKTILL_DATABASE_URL=url)


@pytest.fixture
def target():
    """A server's database that was migrated, and nothing else."""
    url = postgres.server().create()
    with closing(open_database(url)) as db:
        versions.open_ready(url, "regtest").close()
        assert not db.rows(merchants.ALL)
    yield url
    postgres.server().drop(url)


def carry(till, file, target, *words, status=0, **environ):
    """The answer of `restore`, and its messages."""
    environ["BLOCKTILL_DATABASE_URL"] = target
    return Terminal(till).run(
        "restore", str(file), "--yes", *words, status=status, **environ
    )


def test_all_that_a_shop_has_is_there_and_answers_as_before(till, target, tmp_path):
    lived_in(till, tmp_path)
    first = till.shop.post("/invoices", ORDER, headers=KEY)
    (paid,) = (item for item in till.payments() if item["invoice_id"])
    before = answers(till)
    proof = Terminal(till).json("invoice", "show", paid["invoice_id"], "--proof")
    file = backed_up(till, tmp_path / "kept.db")
    old = rows_of(f"sqlite:///{file}")
    assert all(old.values()), [name for name in old if not old[name]]
    Terminal(till).run("check", BLOCKTILL_DATABASE_URL=target)  # notes what gives way
    output, said = carry(till, file, target, "--json")
    result = json.loads(output)
    assert "Never serve the SQLite database again" in said
    new = rows_of(target)
    # The counter moved, and the chain was asked; all else is what it was.
    assert result["migrated"] == [] and result["merchants"][0]["next_index"] == 108
    ways_in = {"file_link", "merchant_login", "merchant_session"}
    for table in old.keys() - {"merchant", "meta", "explorer_use"} - ways_in:
        assert new[table] == old[table], table
    assert not any(new[table] for table in ways_in)  # whoever was logged out stays so
    assert len(new["merchant"]) == 1 and new.keys() == old.keys()
    with on(target, till) as again:
        assert answers(again) == before
        shown = Terminal(again).json("invoice", "show", paid["invoice_id"], "--proof")
        assert shown == proof
        replay = again.shop.post("/invoices", ORDER, headers=KEY)
        assert (
            replay.json == first.json
            and replay.headers["Idempotent-Replayed"] == "true"
        )
        findings = Terminal(again).json("doctor", "--integrity")
        assert {f["name"]: f["colour"] for f in findings}["totals of shop"] == "green"
        again.mine(), again.check()  # what waited for its block is paid there
        assert again.look(first.json)["status"] == "open"
        assert "paid" in again.kinds({"id": again.payments()[0]["invoice_id"]})


def test_the_next_row_of_every_table_has_a_number_of_its_own(till, target, tmp_path):
    lived_in(till, tmp_path)
    change(
        tmp_path / "blocktill.db", "INSERT INTO sqlite_sequence VALUES ('unknown', 9)"
    )
    # rows now gone
    till.shop.sql("UPDATE sqlite_sequence SET seq = 900 WHERE name = 'event'")
    carry(till, backed_up(till, tmp_path / "kept.db"), target)
    with on(target, till) as again:
        assert again.shop.add_merchant("second") == 2
        again.shop.link(amount_usd=5)
        again.pay(fresh := again.shop.invoice())
        again.mine()
        assert again.check().new_statuses[fresh["id"]] == "paid"
        for table in ("invoice", "payment", "payment_link"):
            (count, last) = again.shop.sql(
                f"SELECT count(*), max(seq) FROM {table}"  # noqa: S608
            ).fetchone()
            assert count == last, table
        assert again.shop.sql("SELECT max(seq) FROM event").fetchone()[0] > 900


def unspeakable(path):
    """A letter that no version took, and that PostgreSQL cannot hold."""
    change(path, "UPDATE merchant SET name = 'a' || char(0)")


REFUSED = {
    "a dump of PostgreSQL": (
        lambda path: path.write_bytes(b"PGDMP" * 99),
        "use pg_restore",
    ),
    "with U+0000 in a text": (unspeakable, "NUL (0x00)"),
    "not there": (Path.unlink, "no file"),
}


@pytest.mark.parametrize("name", REFUSED)
def test_carrying_over_refuses_a_file_that_is(name, till, target, tmp_path):
    spoilt, said = REFUSED[name]
    file = backed_up(till, tmp_path / "kept.db")
    spoilt(file)
    before = rows_of(target)
    assert said in carry(till, file, target, status=1)[1]
    assert rows_of(target) == before and not list(tmp_path.glob(".kept*"))


def test_a_merchant_that_is_added_meanwhile_is_not_lost(till, target, tmp_path):
    file = backed_up(till, tmp_path / "kept.db")
    with on(target, till) as again:
        again.shop.add_merchant("meanwhile")
        with pytest.raises(Exception, match="already has the merchant 'meanwhile'"):
            into_empty.carry_over(file, again.shop.service.db, lambda: None)
        assert [row.name for row in again.shop.service.db.rows(merchants.ALL)] == [
            "meanwhile"
        ]


def test_the_rows_go_by_without_being_held(till, target, tmp_path):
    """20,000 invoices with a kilobyte each."""
    file = backed_up(till, tmp_path / "kept.db")
    change(
        file,
        "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 20000)"
        " INSERT INTO invoice (id, merchant_id, status, amount_sats, amount_usd_quote, price_usd,"
        " currency, price, deposit_address, script, address_index, created_ms, description)"
        " SELECT 'inv_' || i, 1, 'open', 1, '1', '1', 'USD', '1', 'a' || i, 's' || i, i, i,"
        " printf('%01000d', i) FROM n",
    )
    with closing(open_database(target)) as db:
        tracemalloc.start()
        into_empty.carry_over(file, db, lambda: None)
        peak = tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()
        assert peak < 2_000_000
    with raw(target) as connection:
        (row,) = connection.execute(
            "SELECT count(*) FROM invoice WHERE length(description) = 1000"
        )
    assert row["count"] == 20_000
