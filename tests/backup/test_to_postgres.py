"""`btcpay restore FILE` on PostgreSQL: a SQLite shop goes on there, with all that it has."""

import contextlib
import hashlib
import itertools
import json
import os
import signal
import tracemalloc
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import postgres
import psycopg
import pytest
from builders import Clock, TickerServer
from databases import raw, tables
from fake_esplora import Terminal, Till, open_till
from forge import Forge, command_line, fork_for_each_order
from other_database import backed_up, change, on
from scenes import over_the_deadline

from btcpay.merchants.account import derive
from btcpay.merchants.sessions import log_in, new_login
from storage import versions
from storage.backup import to_postgres
from storage.database import open_database
from storage.queries import merchants

pytestmark = pytest.mark.both_databases

ODD = "tab\t, line\n, back\\slash, \\N, \\., 'quotes\", \u20bf \U0001f600"
LOGO = b"\x89PNG\r\n\x1a\n\x00\x00\x00\rIHDR" + bytes(40) + bytes(range(256))
ORDER = {"amount_usd": 25, "description": ODD, "customer_email": "a@example.com"}
KEY = {"Idempotency-Key": "order 1"}


@pytest.fixture
def till(tmp_path: Path, ticker: TickerServer, clock: Clock) -> Iterator[Till]:
    """A shop on a SQLite file, whatever this run of the tests is about."""
    url = f"sqlite:///{tmp_path}/btcpay.db"
    with open_till(tmp_path, ticker, clock, BTCPAY_DATABASE_URL=url) as opened:
        yield opened


@pytest.fixture
def target() -> Iterator[str]:
    """A server's database that was migrated, and nothing else."""
    url = postgres.server().create()
    with open_db(url) as db:
        versions.open_ready(url, "regtest").close()
        assert not db.rows(merchants.ALL)
    yield url
    postgres.server().drop(url)


@contextlib.contextmanager
def open_db(url: str) -> Iterator[Any]:
    db = open_database(url)
    try:
        yield db
    finally:
        db.close()


def lived_in(till: Till, folder: Path) -> None:
    """Rows in every table: paid, waiting, late and replaced; a link, a brand, odd letters."""
    (folder / "logo").write_bytes(LOGO)
    words = ("--name", "Caf\u00e9 \\N", "--logo", str(folder / "logo"))
    Terminal(till).run("merchant", "brand", "shop", *words)
    present = till.clock.at
    till.clock.move(hours=-2.5)
    link = till.shop.link(amount_usd=5, title=ODD)
    assert till.shop.client.post(f"/link/{link['id']}").status_code == 303
    assert till.shop.post("/invoices", ORDER, headers=KEY).status_code == 201
    over_the_deadline(till)
    till.clock.at = present
    till.check()
    till.shop.sql("INSERT INTO explorer VALUES ('esplora.example', 2, 14)")
    Terminal(till).run("webhook", "add", "shop", "http://127.0.0.1:9/")
    till.shop.invoice()
    Terminal(till).run("check")
    Terminal(till).run("merchant", "mail", "shop", "owner@shop.example", "--receipts")
    db, now = till.shop.service.db, till.clock()
    assert log_in(db, new_login(db, 1, now), "", "Firefox", now)
    new_login(db, 1, now)


def carry(
    till: Till, file: Path, target: str, *words: str, status: int = 0, **environ: str
) -> tuple[str, str]:
    """What `restore` answered, and what it said."""
    environ["BTCPAY_DATABASE_URL"] = target
    return Terminal(till).run("restore", str(file), "--yes", *words, status=status, **environ)


def rows_of(url: str) -> dict[str, Any]:
    """Every row, in an order of its own; without the versions, which each database notes itself."""
    with raw(url) as connection:
        found = tables(connection)
    del found["schema_version"]
    return {name: sorted(map(repr, rows)) for name, rows in found.items()}


def answers(till: Till) -> list[Any]:
    """What clients are shown, on every path, and the pages' own data."""
    shop = till.shop
    lists = ["/invoices", "/payments", "/payment-links"]
    found = [shop.get(path, query_string={"limit": 100}) for path in ["/balance", *lists]]
    for path, answer in zip(lists, found[1:], strict=True):
        if path != "/payments":
            found += [shop.get(f"{path}/{item['id']}") for item in answer.json["data"]]
    paid = [item for item in found[1].json["data"] if item["status"] == "paid"]
    assert paid and len(found) > 10 and all(answer.status_code == 200 for answer in found)
    pages = [f"/pay/{item['id']}/status" for item in found[1].json["data"]]
    pages += [f"/logo/{hashlib.sha256(LOGO).hexdigest()}"]
    shown = [shop.client.get(path) for path in pages]
    return [answer.data for answer in found] + [(page.status_code, page.data) for page in shown]


def test_all_that_a_shop_has_is_there_and_answers_as_before(till, target, tmp_path):
    lived_in(till, tmp_path)
    first = till.shop.post("/invoices", ORDER, headers=KEY)
    (paid,) = (item for item in till.payments() if item["invoice_id"])
    before = answers(till)
    proof = Terminal(till).json("invoice", "show", paid["invoice_id"], "--proof")
    file = backed_up(till, tmp_path / "kept.db")
    old = rows_of(f"sqlite:///{file}")
    assert all(old.values()), [name for name in old if not old[name]]
    Terminal(till).run("check", BTCPAY_DATABASE_URL=target)  # notes what gives way
    told = json.loads(carry(till, file, target, "--json")[0])
    new = rows_of(target)
    # The counter moved, and the chain was asked; all else is what it was.
    assert told["migrated"] == [] and told["merchants"][0]["next_index"] == 108
    ways_in = {"merchant_login", "merchant_session"}
    for table in old.keys() - {"merchant", "meta", "explorer_use"} - ways_in:
        assert new[table] == old[table], table
    assert not any(new[table] for table in ways_in)  # whoever was logged out stays so
    assert len(new["merchant"]) == 1 and new.keys() == old.keys()
    with on(target, till) as again:
        assert answers(again) == before
        shown = Terminal(again).json("invoice", "show", paid["invoice_id"], "--proof")
        assert shown == proof
        replay = again.shop.post("/invoices", ORDER, headers=KEY)
        assert replay.json == first.json and replay.headers["Idempotent-Replayed"] == "true"
        findings = Terminal(again).json("doctor", "--integrity")
        assert {f["name"]: f["colour"] for f in findings}["totals of shop"] == "green"
        again.mine(), again.check()  # what waited for its block is paid there
        assert again.look(first.json)["status"] == "open"
        assert "paid" in again.kinds(
            again.payments()[0] | {"id": again.payments()[0]["invoice_id"]}
        )


def test_the_next_row_of_every_table_has_a_number_of_its_own(till, target, tmp_path):
    lived_in(till, tmp_path)
    change(tmp_path / "btcpay.db", "INSERT INTO sqlite_sequence VALUES ('unknown', 9)")
    till.shop.sql("UPDATE sqlite_sequence SET seq = 900 WHERE name = 'event'")  # rows now gone
    carry(till, backed_up(till, tmp_path / "kept.db"), target)
    with on(target, till) as again:
        assert again.shop.add_merchant("second") == 2
        again.shop.link(amount_usd=5)
        again.pay(fresh := again.shop.invoice())
        again.mine()
        assert again.check().changed[fresh["id"]] == "paid"
        for table in ("invoice", "payment", "payment_link"):
            (count, last) = again.shop.sql(f"SELECT count(*), max(seq) FROM {table}").fetchone()  # noqa: S608
            assert count == last, table
        assert again.shop.sql("SELECT max(seq) FROM event").fetchone()[0] > 900


def test_no_paid_address_is_given_out_twice(till, target, tmp_path):
    """Sold on after the backup, and carried over all the same."""
    file = backed_up(till, tmp_path / "kept.db")
    later = [till.shop.invoice() for _ in range(30)]
    till.pay(later[20])
    said = carry(till, file, target, "--skip", "7")[1]
    assert "it will be 28" in said and "Never serve the SQLite database again" in said
    with on(target, till) as again:
        row = again.shop.service.db.only(merchants.BY_ID, id=again.shop.merchant_id)
        wanted = derive(row["xpub"], row["script_type"], 28, again.settings.network)
        assert again.shop.invoice()["deposit_address"] == wanted


# What is refused


def other_network(path: Path) -> None:
    change(path, "UPDATE meta SET value = 'signet' WHERE name = 'network'")


def newer(path: Path) -> None:
    change(path, "UPDATE schema_version SET version = 9999")


def cut(path: Path) -> None:
    os.truncate(path, path.stat().st_size // 2)


def unspeakable(path: Path) -> None:
    """A letter that no version took, and that PostgreSQL cannot hold."""
    change(path, "UPDATE merchant SET name = 'a' || char(0)")


REFUSED = {
    "of another network": (other_network, "belongs to signet"),
    "of a newer program": (newer, "install the newer program"),
    "cut short": (cut, "damaged"),
    "a dump of PostgreSQL": (lambda path: path.write_bytes(b"PGDMP" * 99), "use pg_restore"),
    "with U+0000 in a text": (unspeakable, "NUL (0x00)"),
    "not there": (Path.unlink, "no file"),
}


@pytest.mark.parametrize("name", REFUSED)
def test_a_file_is_refused_that_is(name, till, target, tmp_path):
    spoilt, said = REFUSED[name]
    file = backed_up(till, tmp_path / "kept.db")
    spoilt(file)
    before = rows_of(target)
    assert said in carry(till, file, target, status=1)[1]
    assert rows_of(target) == before and not list(tmp_path.glob(".kept*"))


def test_a_database_with_a_merchant_is_refused_and_the_remedy_named(till, target, tmp_path):
    file = backed_up(till, tmp_path / "kept.db")
    carry(till, file, target)
    before = rows_of(target)
    till.shop.invoice()
    said = carry(till, backed_up(till, tmp_path / "later.db"), target, status=1)[1]
    assert "the merchant 'shop' already" in said and "createdb" in said
    assert rows_of(target) == before


def test_a_merchant_that_is_added_meanwhile_is_not_lost(till, target, tmp_path):
    file = backed_up(till, tmp_path / "kept.db")
    with on(target, till) as again:
        again.shop.add_merchant("meanwhile")
        with pytest.raises(Exception, match="'meanwhile' already"):
            to_postgres.carry_over(file, again.shop.service.db)
        assert [row["name"] for row in again.shop.service.db.rows(merchants.ALL)] == ["meanwhile"]


def test_a_database_that_was_not_migrated_is_refused(till, tmp_path):
    file = backed_up(till, tmp_path / "kept.db")
    empty = postgres.server().create("template1")
    assert "run `btcpay migrate`" in carry(till, file, empty, status=1)[1]


def test_a_target_of_another_network_is_refused(till, target, tmp_path):
    with raw(target) as connection:
        connection.execute("UPDATE meta SET value = 'signet'")
    said = carry(till, backed_up(till, tmp_path / "kept.db"), target, status=1)[1]
    assert "the database belongs to signet" in said


# However many there are, and whenever it dies


def test_the_rows_go_by_without_being_held(till, target, tmp_path):
    """20,000 invoices with a kilobyte each."""
    file = backed_up(till, tmp_path / "kept.db")
    change(
        file,
        "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 20000)"
        " INSERT INTO invoice (id, merchant_id, status, amount_sats, amount_usd_quote, price_usd,"
        " deposit_address, script, address_index, created_at, description)"
        " SELECT 'inv_' || i, 1, 'open', 1, '1', '1', 'a' || i, 's' || i, i, i,"
        " printf('%01000d', i) FROM n",
    )
    with open_db(target) as db:
        tracemalloc.start()
        to_postgres.carry_over(file, db)
        peak = tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()
        assert peak < 2_000_000
    with raw(target) as connection:
        (row,) = connection.execute("SELECT count(*) FROM invoice WHERE length(description) = 1000")
    assert row["count"] == 20_000


def die(order: dict[str, Any]) -> None:
    """The command line, killed before it tells the server its so manieth thing.

    Or before this statement.
    """
    told, at = itertools.count(1), order["at"]

    def mortal(kind: type, name: str) -> None:
        living = getattr(kind, name)

        def method(*args: Any, **kwargs: Any) -> Any:
            if next(told) == at or args[1:2] == (at,):
                os.write(2, f"killed before {name} {args[1:]}\n".encode())
                os.kill(os.getpid(), signal.SIGKILL)
            return living(*args, **kwargs)

        setattr(kind, name, method)

    mortal(psycopg.Cursor, "execute")
    mortal(psycopg.Copy, "write_row")
    try:
        command_line(order)
    finally:
        os.write(2, f"told {next(told) - 1}\n".encode())


@pytest.fixture
def mortals() -> Iterator[Forge]:
    """Makes processes that `die`."""
    with closing(Forge(__file__)) as forge:
        yield forge


def test_killed_at_any_point_it_leaves_the_empty_database_or_all_of_it(
    till, target, tmp_path, mortals
):
    def said_by_one(target: str, at: int | str = 0) -> str:
        environ = Terminal(till).environ | {"BTCPAY_DATABASE_URL": target}
        return mortals.run(environ, ["restore", str(file), "--yes"], at=at).errors

    lived_in(till, tmp_path)
    file = backed_up(till, tmp_path / "kept.db")
    whole = postgres.server().create()
    versions.open_ready(whole, "regtest").close()
    last = int(said_by_one(whole).rpartition("told ")[2])
    assert last > 60
    before, after = rows_of(target), rows_of(whole)["invoice"]
    for at in (*range(last // 3, last, last // 8), last - 3, "COMMIT"):
        said = said_by_one(target, at)
        assert "killed before" in said and rows_of(target) == before, said
    carry(till, file, target)
    assert rows_of(target)["invoice"] == after
    assert not list(tmp_path.glob(".kept*"))  # nor what the killed ones left


if __name__ == "__main__":
    fork_for_each_order(die)
