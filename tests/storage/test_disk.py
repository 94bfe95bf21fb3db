"""A full disk, a damaged or a read-only file: calm errors, nothing half written, and on it goes.

A process that found the database read-only keeps that view of it until it starts anew.
"""

import contextlib
import os
import re
import shutil
import subprocess

import pytest
import requests

from storage.queries import meta
from tests.support.builders import Live, open_shop, until
from tests.support.databases import copy_of
from tests.support.fake_esplora import Terminal
from tests.support.no_writes import counts, refuses_orders, still_reads

PAGE = 4096  # bytes, as SQLite divides its files
IS_ROOT = os.geteuid() == 0
# Root may write where the mode says that nobody may; without these rights it may not.
AS_ANYBODY = (
    ["setpriv", "--bounding-set=-dac_override,-dac_read_search"] if IS_ROOT else []
)


@contextlib.contextmanager
def small_filesystem(tmp_path):
    """A folder with room for four megabytes."""
    if not IS_ROOT or not shutil.which("mount"):
        pytest.skip("only root can mount a small filesystem")
    folder = tmp_path / "disk"
    folder.mkdir()
    subprocess.run(
        ["mount", "-t", "tmpfs", "-o", "size=4m", "tmpfs", folder], check=True
    )
    try:
        yield folder
    finally:
        subprocess.run(["umount", "--lazy", folder], check=True)


def fill(folder):
    """A file that leaves no room for another byte."""
    ballast = folder / "ballast"
    with pytest.raises(OSError), ballast.open("wb", buffering=0) as file:
        while True:
            file.write(b"x" * 4096)
    return ballast


def test_a_full_disk_refuses_orders_calmly_and_takes_them_again_without_a_restart(
    tmp_path, ticker, clock
):
    ticker.reset()
    with (
        small_filesystem(tmp_path) as folder,
        open_shop(folder, ticker.url, clock) as shop,
        Live(shop, tmp_path) as live,
    ):
        link = shop.link(title="Tip jar")
        invoice = shop.invoice(25)
        assert live.ask("POST", "/invoices", shop.write_key, json={"amount_usd": 5}).ok
        meta.put_time(shop.service.db, meta.Key.CHECKED_MS, shop.clock())
        assert readyz(live).status_code == 200
        before = counts(shop)
        ballast = fill(folder)
        refuses_orders(live, shop, link)
        not_ready = readyz(live)
        assert not_ready.status_code == 503, not_ready.text
        assert not_ready.json()["database"]["problem"] == "it takes no writes"
        still_reads(live, shop, invoice)
        assert counts(shop) == before
        ballast.unlink()
        until(
            lambda: readyz(live).status_code == 200,
            "it to be ready again without an order",
        )
        assert "Traceback" not in live.log()
        refused = [line for line in live.log().splitlines() if '"request req_' in line]
        assert len(refused) == 4, refused
        answer = live.ask("POST", "/invoices", shop.write_key, json={"amount_usd": 25})
        assert answer.status_code == 201, answer.text
        assert counts(shop) == (before[0] + 1, before[1], before[2] + 1)
        (problem,) = shop.service.db.connection.execute_sql(
            "PRAGMA integrity_check"
        ).fetchone()
        assert problem == "ok"
        shop.service.db.close()


def readyz(live):
    return requests.get(f"{live.url}/readyz", timeout=60)


def test_doctor_and_check_on_a_full_disk_tell_all_that_they_can_find_out(
    tmp_path, ticker, clock
):
    ticker.reset()
    with (
        small_filesystem(tmp_path) as folder,
        open_shop(folder, ticker.url, clock) as shop,
    ):
        shop.invoice(25)
        fill(folder)
        blocktill = Terminal(shop)
        found = {
            one["name"]: one
            for one in blocktill.json("doctor", "--integrity", status=1)
        }
        assert {"check", "gap of shop"} <= set(found)
        assert found["database"]["colour"] == found["disk"]["colour"] == "red"
        assert "database or disk is full" in found["database"]["sentence"]
        assert found["totals of shop"]["colour"] == found["price"]["colour"] == "green"
        output, errors = blocktill.run("doctor", status=1)
        assert re.search("^red +disk: 0 MB are free -> make room", output, re.M)
        assert re.search("^green +price: ", output, re.M) and "Traceback" not in errors
        _, errors = blocktill.run("check", status=1)
        assert "database or disk is full" in errors and "Traceback" not in errors
        shop.service.db.close()


@pytest.mark.slow
def test_a_read_only_database_is_shown_and_refuses_orders_calmly(
    tmp_path, ticker, clock
):
    ticker.reset()
    folder = tmp_path / "disk"
    folder.mkdir()
    with open_shop(folder, ticker.url, clock) as shop:
        invoice = shop.invoice(25)
        link = shop.link(title="Tip jar")
        before = counts(shop)
        with read_only(folder), Live(shop, tmp_path, AS_ANYBODY) as live:
            refuses_orders(live, shop, link)
            still_reads(live, shop, invoice)
            assert "attempt to write a readonly database" in live.log()
        assert counts(shop) == before
        with Live(shop, tmp_path, AS_ANYBODY) as live:
            assert live.ask(
                "POST", "/invoices", shop.write_key, json={"amount_usd": 5}
            ).ok
        assert counts(shop) == (before[0] + 1, before[1], before[2] + 1)


@contextlib.contextmanager
def read_only(folder):
    if IS_ROOT and not shutil.which("setpriv"):
        pytest.skip("root cannot do without its rights here")
    for path in [*folder.iterdir(), folder]:
        path.chmod(0o500 if path.is_dir() else 0o400)
    try:
        yield
    finally:
        for path in [folder, *folder.iterdir()]:
            path.chmod(0o700)


@pytest.mark.parametrize("words", ["invoice list", "export labels"])
def test_a_damaged_page_is_told_in_one_line_whenever_it_is_read(words, shop, tmp_path):
    for number in range(40):
        shop.invoice(description=f"order {number} ".ljust(500, "."))
    damaged = tmp_path / "damaged.db"
    copy_of(shop.environ["BLOCKTILL_DATABASE_URL"], damaged)
    pages = bytearray(damaged.read_bytes())
    start = pages.index(b"order 20 ") // PAGE * PAGE
    pages[start : start + PAGE] = b"\xff" * PAGE
    damaged.write_bytes(pages)
    url = {"BLOCKTILL_DATABASE_URL": f"sqlite:///{damaged}"}
    _, errors = Terminal(shop).run(*words.split(), status=1, **url)
    assert (
        errors
        == "blocktill: the database cannot be used: database disk image is malformed\n"
    )
