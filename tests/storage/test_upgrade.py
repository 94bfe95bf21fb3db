"""What was released stays as it is, and a shop that lived in it goes on in this version.

`tests/vectors/shops/0.3.0` is such a shop: its rows and answers, and the chain that it is paid on.
`PYTHONPATH=.:tests/support python tests/storage/test_upgrade.py 0.4.0` keeps the next one.
"""

import hashlib
import json
import shutil
import sys
import tempfile
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from builders import REGTEST, Clock, TickerServer
from databases import ON_POSTGRES, about_sqlite, empty_database, new_database, raw, tables
from dying import run_until_death
from fake_esplora import Terminal, open_till
from merchant_browser import ON, MerchantBrowser
from other_database import answers, lived_in, on
from paths import PROJECT
from scenes import assert_sound, deep_or_canceled, reorganised

from btcpay.health.doctor.run import examine
from btcpay.invoices.upgrade import upgrade
from btcpay.merchants.account import derive
from btcpay.settings.settings import read
from btcpay.values.finding import GREEN
from btcpay.values.times import from_ms, to_ms
from storage.migrate import migrate
from storage.versions import statements, steps

pytestmark = pytest.mark.both_databases

SHOPS = PROJECT / "tests/vectors/shops"
FIRST = "0.3.0-first"  # from before its release: kept by the program of then
# The steps of each version, and what their statements hash to: a released one is never edited.
_FIRST = {"0001_first.sql": "78cc5dfd1843f68d9700c68941a05b6463139be9af80083e8ba574692d72dd7b"}
RELEASED = {
    FIRST: _FIRST,
    "0.3.0": _FIRST
    | {"0002_whole.sql": "7b379af0e48a60ba4ecc56fd0d3a51eae56d5a2e8947e8a9f4252f491c74c6f3"},
}
PAGES = ("", "/attention", "/invoices", "/payments", "/month", "/till", "/links", "/settings")
SQLITES = ("SELECT type, name, tbl_name, coalesce(sql, '') AS sql FROM sqlite_master",)
SERVERS = (
    "SELECT table_name, ordinal_position, column_name, data_type, is_nullable, is_identity,"
    " coalesce(column_default, '') AS preset FROM information_schema.columns"
    " WHERE table_schema = 'public'",
    "SELECT indexdef FROM pg_indexes WHERE schemaname = 'public'",
    "SELECT conrelid::regclass::text AS of, conname, pg_get_constraintdef(oid) AS says"
    " FROM pg_constraint WHERE connamespace = 'public'::regnamespace",
)
STATES = {"open", "paid", "expired", "canceled"}


@pytest.mark.parametrize("release", RELEASED)
def test_its_steps_are_as_they_were_released(release):
    found = {
        step.name: hashlib.sha256("\n".join(statements(step, True)).encode()).hexdigest()
        for step in steps()
    }
    assert found.items() >= RELEASED[release].items()


@pytest.mark.parametrize("release", [release for release in RELEASED if release != FIRST])
def test_a_shop_of_every_state_goes_on(release, tmp_path, ticker, clock):
    kept = lived_then(release, tmp_path, clock)
    url = filled(tmp_path, release, kept["tables"])
    upgrade(of_url(url), url, clock())
    with open_till(tmp_path, ticker, clock, **ON) as beside, on(url, beside) as till:
        till.shop.read_key, till.shop.write_key = kept["keys"]
        assert json.loads(json.dumps(answers(till), default=plain)) == kept["answers"]
        goes_on(till, url)


def test_a_shop_from_before_the_release_goes_on(tmp_path, ticker, clock):
    kept = lived_then(FIRST, tmp_path, clock)
    was, url = kept["tables"], filled(tmp_path, FIRST, kept["tables"])
    assert [upgrade(of_url(url), url, clock()) for _ in range(2)] == [["0002_whole"], []]
    assert schema(url) == schema(new_database(tmp_path, "new"))
    rows = stored_in(url)
    for table in was.keys() - {"schema_version", "merchant_day"}:
        same = was[table][0].keys() & rows[table][0].keys() - {"account_key", "currency"}
        assert some(was[table], same) == some(rows[table], same)
    assert all(row["stake_minor"] > 0 for row in rows["attention"])
    covered = {row["id"] for row in rows["invoice"] if row["covered_at"]}
    assert covered == {row["id"] for row in rows["invoice"] if is_covered(row)}
    with open_till(tmp_path, ticker, clock, **ON) as beside, on(url, beside) as till:
        ticker.price("60000.00", eur="55000.00", jpy="9000000")
        shops = {row["name"]: row["id"] for row in rows["merchant"]}
        tills = [of_merchant(till, id, *kept["keys"][name]) for name, id in shops.items()]
        for (name, id), one in zip(shops.items(), tills, strict=True):
            found = {path: one.shop.get(path).json for path in kept["answers"][name]}
            assert found == kept["answers"][name]
            for invoice_id, shown in kept["pages"][name].items():
                page = one.shop.client.get(f"/pay/{invoice_id}/status")
                assert [page.status_code, page.json] == shown
            merchant = rows["merchant"][id - 1]
            indexes = range(merchant["next_index"], merchant["next_index"] + 3)
            ahead = [derive(merchant["descriptor"], index, REGTEST) for index in indexes]
            assert ahead == kept["next"][name]
        again = kept["idempotency"]
        key = {"Idempotency-Key": again["key"]}
        nested = next(one.shop for one in tills if one.shop.merchant_id == shops["nested"])
        assert nested.post("/invoices", again["body"], headers=key).json == again["answer"]
        browser = nested.client
        for name, value in kept["cookies"].items():
            browser.set_cookie(name, value)
        assert browser.get("/merchant").status_code == 200
        asked = Terminal(till).json("invoice", "list", "--attention")
        assert asked == [row | {"reference": None} for row in kept["attention"]]
        known = {row["name"] for row in kept["doctor"] if row["colour"] != "green"}
        known |= {"clock"}  # it is the time of then
        environ = till.shop.environ
        findings = examine(read(environ), environ, clock)
        assert {found.name for found in findings if found.colour != GREEN} <= known
        for one in tills:
            goes_on(one, url)


def some(rows, names):
    """These columns of the rows, in an order of their own."""
    return sorted(repr([row[name] for name in sorted(names)]) for row in rows)


def of_merchant(till, merchant_id, read_key, write_key):
    keys = {"read_key": read_key, "write_key": write_key}
    return replace(till, shop=replace(till.shop, merchant_id=merchant_id, **keys))


def is_covered(row):
    """Of a shop without tolerance, which keeps no invoice in time that is not covered."""
    return row["status"] in ("open", "paid") and row["received_sats"] >= row["amount_sats"]


def test_an_upgrade_that_is_killed_at_its_end_has_changed_nothing(tmp_path, capfd):
    kept = json.loads((SHOPS / FIRST / "shop.json").read_text())
    url = filled(tmp_path, FIRST, kept["tables"])
    before = stored_in(url)
    environ = {"BTCPAY_NETWORK": "regtest", "BTCPAY_DATABASE_URL": url}
    run_until_death(1, "migrate", **environ)
    assert capfd.readouterr().err == "killed before COMMIT\n"
    assert stored_in(url) == before


def test_one_spoiled_row_keeps_no_shop_from_the_upgrade(tmp_path, clock):
    kept = lived_then(FIRST, tmp_path, clock)
    for odd in (row for row in kept["tables"]["invoice"] if row["status"] == "paid"):
        odd["script"] = odd["script"][:-2]
    url = filled(tmp_path, FIRST, kept["tables"])
    assert upgrade(of_url(url), url, clock()) == ["0002_whole"]
    rows = stored_in(url)
    assert any(row["received_sats"] for row in rows["invoice"] if row["status"] == "open")
    assert_sound(url)


@about_sqlite
def test_a_backup_from_before_the_release_is_restored(tmp_path, ticker, clock):
    kept = lived_then(FIRST, tmp_path, clock)
    url = filled(tmp_path, FIRST, kept["tables"])
    with open_till(tmp_path, ticker, clock) as till:
        words = ("restore", url.removeprefix("sqlite:///"), "--yes")
        place = {"BTCPAY_DATABASE_URL": f"sqlite:///{tmp_path}/place.db"}
        Terminal(till).run(*words, **place)
        Terminal(till).run(*words, **place)
        assert {row["name"] for row in stored_in(place["BTCPAY_DATABASE_URL"])["merchant"]} == set(
            kept["keys"]
        )
        # Its account keys are others: what its counters say would not be found in the backup.
        words = ("restore", str(tmp_path / "place.db"), "--yes")
        said = Terminal(till).run(*words, status=1, BTCPAY_DATABASE_URL=url)[1]
        assert "is at version 1: run `btcpay migrate` first" in said


def lived_then(release, folder, clock):
    """What was kept of a shop; its chain is in the folder, and it is the time of then."""
    shutil.copytree(SHOPS / release, folder / "chain")
    kept: dict[str, Any] = json.loads((SHOPS / release / "shop.json").read_text())
    clock.at = from_ms(kept["at"])
    return kept


def goes_on(till, url):
    """Its pages are there; a check finds what is paid, of what was open and of what is new."""
    assert_sound(url)
    browser = MerchantBrowser(till.shop).log_in(till.shop.merchant_id)
    for page in PAGES:
        assert browser.get(page).status_code == 200, page
    report = till.check()
    assert report.complete and not report.failed
    assert_sound(url)
    asked = next((one for one in listed(till) if one["status"] == "open"), till.shop.invoice())
    till.confirm(asked)
    assert till.look(asked)["status"] == "paid"
    assert till.confirm(new := till.shop.invoice()).changed == {new["id"]: "paid"}
    assert_sound(url)


def listed(till):
    found: list[dict[str, Any]] = till.shop.get("/invoices", query_string={"limit": 100}).json[
        "data"
    ]
    return found


def filled(folder, release, rows):
    """A database that the release made, with these rows."""
    url, then = empty_database(folder), folder / "then"
    then.mkdir()
    for step in steps():
        if step.name in RELEASED[release]:
            shutil.copy(step, then)
    migrate(url, "regtest", then)
    mark, of_server = ("%s", "OVERRIDING SYSTEM VALUE") if ON_POSTGRES else ("?", "")
    with raw(url) as db:
        if ON_POSTGRES:
            db.execute("SET session_replication_role = replica")  # in whatever order they come
        for table, of_table in rows.items():
            db.execute(f"DELETE FROM {table}")  # noqa: S608
            for row in of_table:
                marks = ", ".join([mark] * len(row))
                named = f"{table} ({', '.join(row)}) {of_server}"
                values = [stored(value) for value in row.values()]
                db.execute(f"INSERT INTO {named} VALUES ({marks})", values)  # noqa: S608
            if ON_POSTGRES and "seq" in rows[table][0]:
                last = max(row["seq"] for row in of_table)
                db.execute(f"SELECT setval(pg_get_serial_sequence('{table}', 'seq'), {last})")
        db.commit()
    return url


def of_url(url):
    return read(
        {
            "BTCPAY_NETWORK": "regtest",
            "BTCPAY_DATABASE_URL": url,
            "BTCPAY_EXPLORERS": "http://127.0.0.1:9",
        }
    )


def stored_in(url):
    """Every row, with bytes as they are kept in JSON."""
    with raw(url) as db:
        found = tables(db)
    return json.loads(json.dumps(found, default=plain))


def schema(url):
    """All objects of a database, with what they are made of."""
    with raw(url) as db:
        found = [db.execute(query).fetchall() for query in (SERVERS if ON_POSTGRES else SQLITES)]
    return [sorted(tuple(dict(row).items()) for row in rows) for rows in found]


def plain(value):
    return {"hex": value.hex()}


def stored(value):
    return bytes.fromhex(value["hex"]) if isinstance(value, dict) else value


def keep(release, folder):
    url = f"sqlite:///{folder}/btcpay.db"
    environ = {"BTCPAY_DATABASE_URL": url}
    with TickerServer() as ticker, open_till(folder, ticker, Clock(), **environ) as till:
        lived_in(till, folder)
        for scene in (deep_or_canceled, reorganised):
            scene(till)
            till.check()
        with raw(url) as db:
            rows = tables(db)
        keys = till.shop.read_key, till.shop.write_key
        kept = {"at": to_ms(till.clock()), "keys": keys, "tables": rows, "answers": answers(till)}
    shutil.copytree(folder / "chain", SHOPS / release)
    (SHOPS / release / "shop.json").write_text(json.dumps(kept, default=plain, indent=0) + "\n")


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as place:
        keep(sys.argv[1], Path(place))
