"""The owner downloads a backup in a browser: what `blocktill backup` writes."""

import contextlib
import socket
import sqlite3

import pytest
import requests

from storage.backup import sqlite_file
from storage.database import sqlite_path
from storage.queries import meta
from tests.support.builders import Live, until
from tests.support.databases import about_sqlite
from tests.support.measured import peak_bytes
from tests.support.merchant_browser import FROM_THIS_SITE, MerchantBrowser
from tests.support.other_database import content
from tests.support.payer import Page


def folder_of(shop):
    """The folder of the SQLite file."""
    return sqlite_path(shop.service.settings.database_url).parent


def leftovers(shop):
    return sorted(path.name for path in folder_of(shop).glob(".*.blocktill"))


def backed_up_ms(shop):
    return meta.count(shop.service.db, meta.Key.BACKED_UP_MS)


@about_sqlite
def test_the_download_is_a_whole_backup_and_the_page_says_when_it_was_made(
    shop, browser, tmp_path
):
    shop.invoice(customer_email="a@example.com")
    assert "Never" in browser.page("/backup").texts["backed-up"]
    answer = browser.post("/backup")
    assert answer.status_code == 200
    named = f"blocktill-{shop.clock():%Y-%m-%d-%H%M}.db"
    assert answer.headers["Content-Disposition"] == f'attachment; filename="{named}"'
    assert answer.headers["Cache-Control"] == "no-store"
    assert int(answer.headers["Content-Length"]) == len(answer.data)
    file = tmp_path / "downloaded.db"
    file.write_bytes(answer.data)
    assert sqlite_file.inspect(file, file)[1] == "regtest"
    assert len(content(file)["invoice"]) == 1
    assert backed_up_ms(shop) == int(shop.clock().timestamp() * 1000)
    assert "Never" not in browser.page("/backup").texts["backed-up"]
    assert leftovers(shop) == []


def test_the_backup_page_says_what_is_in_a_backup(browser):
    text = browser.page("/backup").source
    for words in ("names, e-mail addresses", "webhooks", "mail server", "hashes"):
        assert words in text


@pytest.mark.both_databases
def test_with_another_merchant_a_merchants_own_session_learns_nothing_of_it(
    shop, browser
):
    assert "/backup" in browser.page("/settings").source
    token = browser.token()
    shop.add_merchant("other")
    refused = [browser.get("/backup"), browser.post("/backup", token)]
    assert [answer.status_code for answer in refused] == [404, 404]
    for path in ("/settings", ""):
        assert "/backup" not in browser.page(path).source


@pytest.mark.both_databases
def test_a_device_of_the_till_and_a_stranger_get_none(shop):
    till = MerchantBrowser(shop).log_in(till_only=True)
    assert till.get("/backup").status_code == till.post("/backup").status_code == 403
    stranger = shop.client.post("/merchant/backup", headers=FROM_THIS_SITE)
    assert stranger.status_code == 401 and b"SQLite" not in stranger.data


@about_sqlite
def test_a_form_of_another_session_gets_none(shop, browser):
    assert browser.post("/backup", token="of another").status_code == 403  # noqa: S106
    other_site = shop.client.post(
        "/merchant/backup", headers={"Sec-Fetch-Site": "cross-site"}
    )
    assert other_site.status_code == 403
    assert backed_up_ms(shop) == 0


@about_sqlite
def test_who_breaks_off_leaves_no_file_and_no_note(shop, browser):
    """The next one finds its place free."""
    token = browser.token()
    broken_off = browser.client.post(
        "/merchant/backup",
        data={"token": token},
        headers=FROM_THIS_SITE,
        buffered=False,
    )
    pieces = broken_off.iter_encoded()
    assert next(pieces).startswith(b"SQLite format 3\0")
    assert leftovers(shop) == []  # the open file has no name any more
    assert browser.post("/backup", token).status_code == 429
    broken_off.close()
    assert backed_up_ms(shop) == 0
    assert browser.post("/backup", token).status_code == 200


@about_sqlite
def test_a_copy_that_a_killed_process_left_is_removed(shop, browser):
    file = sqlite_path(shop.service.settings.database_url)
    killed = folder_of(shop) / f".{file.name}.killed.download.blocktill"
    killed.write_bytes(b"half of a copy")
    assert browser.post("/backup").status_code == 200
    assert leftovers(shop) == []


@about_sqlite
def test_what_cannot_be_copied_is_said_and_the_next_one_is_not_kept_waiting(
    shop, browser, monkeypatch
):
    def fail(old, target):
        raise sqlite3.OperationalError("database or disk is full")

    with monkeypatch.context() as patch:
        patch.setattr(sqlite_file, "copy_all", fail)
        answer = browser.post("/backup")
    page = Page(answer.text)
    assert answer.status_code == 503 and "disk is full" in page.texts["problem"]
    assert leftovers(shop) == [] and backed_up_ms(shop) == 0
    assert browser.post("/backup").status_code == 200


@pytest.mark.both_databases
def test_on_postgresql_the_page_names_the_servers_own_command(shop, browser):
    page = browser.page("/backup")
    is_server = shop.service.db.is_server
    assert ("pg_dump" in page.source) == is_server
    assert ("download" in page.attributes) != is_server
    if is_server:
        assert browser.post("/backup").status_code == 404


@about_sqlite
@pytest.mark.slow
def test_a_large_one_is_sent_in_pieces_and_who_reads_nothing_gives_way(
    shop, browser, tmp_path
):
    """The service's memory does not grow by the file."""
    size = 60_000_000
    shop.sql(
        "INSERT INTO brand (merchant_id, logo, logo_type, logo_sha256)"
        " VALUES (1, zeroblob(60000000), 'image/png', 'x')"
    )
    token = browser.token()
    cookie = f"merchant={browser.client.get_cookie('merchant').value}"
    with Live(shop, tmp_path, BLOCKTILL_MERCHANT_PAGES="on") as live:

        def download():
            with requests.post(
                f"{live.url}/merchant/backup",
                data={"token": token},
                headers={**FROM_THIS_SITE, "Cookie": cookie},
                stream=True,
                timeout=60,
            ) as answer:
                if answer.status_code != 200:
                    return answer.status_code
                return sum(map(len, answer.iter_content(65_536)))

        before = peak_bytes(live.pid)
        assert download() > size
        assert peak_bytes(live.pid) - before < size / 2
        until(lambda: backed_up_ms(shop), "the note of the first one")
        with contextlib.closing(
            socket.create_connection(("127.0.0.1", live.port))
        ) as slow:
            body = f"token={token}"
            slow.sendall(
                "POST /merchant/backup HTTP/1.1\r\nHost: localhost\r\n"
                "Sec-Fetch-Site: same-origin\r\n"
                "Content-Type: application/x-www-form-urlencoded\r\n"
                f"Cookie: {cookie}\r\nContent-Length: {len(body)}\r\n\r\n{body}".encode()
            )
            slow.settimeout(60)
            assert slow.recv(12) == b"HTTP/1.1 200"
            assert download() == 429
            until(lambda: download() != 429, "it to give way", every_s=1)
    assert leftovers(shop) == []
