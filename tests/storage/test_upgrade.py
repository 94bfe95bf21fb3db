"""What was released stays as it is, and a shop that lived in it goes on in this version.

`tests/vectors/shops/0.3.0` is such a shop: its rows and answers, and the chain that it is paid on.
`PYTHONPATH=.:tests/support python tests/storage/test_upgrade.py 0.4.0` keeps the next one.
"""

import hashlib
import json
import shutil
import sys
import tempfile
from pathlib import Path
from typing import Any

import pytest
from builders import Clock, TickerServer
from databases import ON_POSTGRES, empty_database, raw, tables
from fake_esplora import Till, open_till
from merchant_browser import ON, MerchantBrowser
from other_database import answers, lived_in, on
from paths import PROJECT
from scenes import assert_sound, deep_or_canceled, reorganised

from btcpay.values.times import from_ms, to_ms
from storage.migrate import migrate
from storage.versions import steps

pytestmark = pytest.mark.both_databases

SHOPS = PROJECT / "tests/vectors/shops"
# The steps of each version, and what each file hashes to: a released one is never edited.
RELEASED = {
    "0.3.0": {"0001_first.sql": "8c3fb99d488968066bb616b6952c7fc28f61feedf6b089b5367171df4fa17e2b"}
}
PAGES = ("", "/attention", "/invoices", "/payments", "/month", "/till", "/links", "/settings")
STATES = {"open", "paid", "expired", "canceled"}


@pytest.mark.parametrize("release", RELEASED)
def test_its_steps_are_as_they_were_released(release):
    found = {step.name: hashlib.sha256(step.read_bytes()).hexdigest() for step in steps()}
    assert found.items() >= RELEASED[release].items()


@pytest.mark.parametrize("release", RELEASED)
def test_a_shop_of_every_state_goes_on(release, tmp_path, ticker, clock):
    kept = json.loads((SHOPS / release / "shop.json").read_text())
    shutil.copytree(SHOPS / release, tmp_path / "chain")
    clock.at = from_ms(kept["at"])
    url = filled(tmp_path, release, kept["tables"])
    with open_till(tmp_path, ticker, clock, **ON) as beside, on(url, beside) as till:
        till.shop.read_key, till.shop.write_key = kept["keys"]
        assert json.loads(json.dumps(answers(till), default=plain)) == kept["answers"]
        assert {one["status"] for one in listed(till)} == STATES
        browser = MerchantBrowser(till.shop).log_in()
        for page in PAGES:
            assert browser.get(page).status_code == 200, page
        report = till.check()
        assert report.complete and not report.failed
        assert_sound(url)
        asked = next(one for one in listed(till) if one["status"] == "open")
        till.pay(asked)
        till.mine()
        till.check()
        assert till.look(asked)["status"] == "paid"
        till.pay(new := till.shop.invoice())
        till.mine()
        assert till.check().changed == {new["id"]: "paid"}
        assert_sound(url)


def listed(till: Till) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = till.shop.get("/invoices", query_string={"limit": 100}).json[
        "data"
    ]
    return found


def filled(folder: Path, release: str, rows: dict[str, list[dict[str, Any]]]) -> str:
    """A database that the release made, with these rows, brought to this version."""
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
    migrate(url, "regtest")
    return url


def plain(value: bytes) -> dict[str, str]:
    return {"hex": value.hex()}


def stored(value: Any) -> Any:
    return bytes.fromhex(value["hex"]) if isinstance(value, dict) else value


def keep(release: str, folder: Path) -> None:
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
