"""Files from the merchant's pages: those of the command line, of one merchant, however long."""

import csv
import io
import re
from datetime import UTC, datetime, timedelta

import pytest

from btcpay.exports.payments import COLUMNS
from btcpay.parts.merchant_pages.lists.downloads import AT_ONCE, CHUNK_LINES, MOST_LINKS
from tests.support.builders import pay
from tests.support.fake_esplora import Terminal
from tests.support.merchant_browser import MerchantBrowser

pytestmark = pytest.mark.both_databases


def lines(text):
    return list(csv.DictReader(io.StringIO(text, newline="")))


def test_the_files_are_those_of_the_command_line(shop, browser):
    """With a formula defused; a customer's address is not for the accountant."""
    for text in ("=1+1", "Kaffee; =2", None):
        pay(shop, shop.invoice(description=text, customer_email="ann@example.com"))
    theirs = shop.issue("write", shop.add_merchant("rival"))
    pay(
        shop,
        shop.post("/invoices", {"amount_usd": 7, "description": "secret"}, theirs).json,
    )
    blocktill = Terminal(shop)
    sent = browser.get("/downloads/payments")
    printed, _ = blocktill.run("export", "payments", "--merchant", "shop")
    assert (
        sent.text.replace("\r\n", "\n") == printed
        and [*lines(sent.text)[0]] == COLUMNS.split()
    )
    assert {line["description"] for line in lines(sent.text)} == {
        "'=1+1",
        "Kaffee;' =2",
        "",
    }
    assert "secret" not in sent.text and "ann@" in sent.text
    sheet = browser.get("/downloads/payments?format=spreadsheet")
    assert "Kaffee" in sheet.text and "ann@" not in sheet.text
    assert sent.headers["Content-Type"] == "text/csv; charset=utf-8"
    assert sent.headers["Content-Disposition"] == 'attachment; filename="payments.csv"'
    assert sent.headers["Cache-Control"] == "no-store"


def test_days_are_whole_and_those_of_the_shops_zone(shop, browser, clock):
    """Of 23 hours too."""
    shop.sql("UPDATE merchant SET timezone = 'Europe/Berlin'")
    begin = datetime(2026, 3, 28, 23, tzinfo=UTC)
    made = []
    for hours in (-1, 0, 22, 23):
        clock.at = begin + timedelta(hours=hours)
        pay(shop, invoice := shop.invoice())
        made.append(invoice["id"])
    browser.log_in()
    assert 'value="2026-01-01"' in browser.page("/downloads").source
    assert "in the time zone Europe/Berlin" in browser.page("/downloads").source
    listed = browser.page("/payments").source
    assert listed.index("Mon, Mar 30, 2026") < listed.index(">12:00\u202fAM<")
    day = "2026-03-29"
    answer = browser.get(f"/downloads/payments?from={day}&to={day}")
    assert [line["invoice_id"] for line in lines(answer.text)] == made[1:3]
    assert (
        f'filename="payments-{day}-{day}.csv"' in answer.headers["Content-Disposition"]
    )
    for everything in ("", "?from=&to=", "?from=0001-01-01&to=9999-12-31"):
        answer = browser.get(f"/downloads/payments{everything}")
        assert len(lines(answer.text)) == 4, everything
    assert lines(browser.get("/downloads/payments?from=9999-12-31").text) == []
    for odd in ("?from=x", "?to=9999-99-99", f"?from={day}&to=29.3.2026"):
        assert browser.get(f"/downloads/payments{odd}").status_code == 400, odd


FILES = {
    "csv": ("payments.csv", "day,received_at,"),
    "spreadsheet": ("payments.csv", "\ufeffTag;"),
    "koinly": ("payments-koinly.csv", "Koinly Date,"),
    "beancount": ("payments.beancount", "2009-01-03 open"),
}


def test_each_format_is_offered_and_in_the_pages_language(shop, browser):
    pay(shop, shop.invoice())
    page = browser.page("/downloads")
    assert page.source.count('name="format"') == len(FILES)
    for name, (file, began) in FILES.items():
        answer = browser.get(f"/downloads/payments?format={name}&lang=de")
        assert answer.text.startswith(began), name
        assert (
            answer.headers["Content-Disposition"] == f'attachment; filename="{file}"'
        ), name
    assert browser.get("/downloads/payments?format=xls").status_code == 400


DAYS = {"from": "2026-11-01", "to": "2026-11-30"}


def link_in(source):
    return re.search(r"http://[^\s<]*(/file/[0-9A-Za-z]+\?lang=\w+)", source)[1]


def test_a_link_opens_the_file_without_a_session_for_a_week_or_until_it_is_revoked(
    shop, browser, clock
):
    clock.at = datetime(2026, 10, 15, tzinfo=UTC)
    pay(shop, shop.invoice(description="Coffee"))
    clock.at = datetime(2026, 11, 15, tzinfo=UTC)
    browser.log_in()
    pay(shop, invoice := shop.invoice(description="Tea"))
    month = browser.page("/month")
    assert "Send October 2026 to my accountant" in month.source
    assert "Send October 2026" in browser.page("/month?month=2026-10").source
    pressed = browser.post("/files", press="one", **DAYS)
    path = link_in(pressed.text)
    assert (
        "mailto:?subject=Payments%20from%20Nov%201%20to%20Nov%2030%20%C2%B7%20shop"
        in pressed.text
    )
    assert 'data-share="http' in pressed.text
    assert link_in(browser.post("/files", press="one", **DAYS).text) == path
    secret = path.partition("?")[0].rpartition("/")[2]
    assert [
        row for row in shop.sql("SELECT * FROM file_link").fetchall() if secret in row
    ] == []

    stranger = shop.app.test_client()
    sent = stranger.get(path, buffered=True)
    assert sent.status_code == 200 and invoice["id"] in sent.text and "Tea" in sent.text
    assert sent.headers["Content-Disposition"].endswith(
        '"payments-2026-11-01-2026-11-30.csv"'
    )
    assert (
        sent.headers["Cache-Control"] == "no-store" and "Set-Cookie" not in sent.headers
    )
    in_german = stranger.get(path.replace("lang=en", "lang=de"), buffered=True)
    assert in_german.text.startswith("\ufeffTag;")
    for days, status in ((6.9, 200), (0.2, 404)):
        clock.move(days=days)
        assert stranger.get(path, buffered=True).status_code == status, days

    browser.log_in()
    path = link_in(browser.post("/files", press="two", **DAYS).text)
    assert stranger.get(path, buffered=True).status_code == 200
    (id,) = set(re.findall(r"fil_\w+", browser.page("/downloads").source))
    rival = MerchantBrowser(shop).log_in(shop.add_merchant("rival"))
    assert rival.post(f"/files/{id}/revoke").status_code == 404
    assert id not in rival.page("/downloads").source
    assert browser.log_in().post(f"/files/{id}/revoke").status_code == 303
    assert stranger.get(path, buffered=True).status_code == 404
    assert "fil_" not in browser.page("/downloads").source


def test_links_to_files_are_bounded_and_guessing_is_counted(shop, browser):
    statuses = [
        browser.post("/files", press=str(n), **DAYS).status_code for n in range(21)
    ]
    assert statuses == [200] * MOST_LINKS + [400]
    for odd in (
        {},
        {"from": "x", "to": "y"},
        {"from": "2026-11-02", "to": "2026-11-01"},
    ):
        assert browser.post("/files", press="odd", **odd).status_code == 400, odd
    stranger = shop.app.test_client()
    asked = [stranger.get(f"/file/{n}").status_code for n in range(21)]
    assert asked == [404] * 20 + [429]


def test_a_few_at_once_and_then_others_wait(shop, browser):
    first, *others = (
        browser.get("/downloads/payments", buffered=False) for _ in range(AT_ONCE)
    )
    assert browser.get("/downloads/payments").status_code == 429
    first.close()
    assert browser.get("/downloads/payments").status_code == 200
    for one in others:
        one.close()


def test_a_long_file_is_sent_in_pieces_and_whole(shop, browser):
    pay(shop, shop.invoice(description="x" * 500))
    (row,) = shop.sql("SELECT MAX(seq) FROM payment").fetchall()
    copies = 2 * CHUNK_LINES
    shop.sql(
        f"""WITH RECURSIVE n (n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM n WHERE n < {copies})
            INSERT INTO payment
                (id, merchant_id, address_invoice_id, amount_sats, currency, tx_hash, created_ms)
            SELECT 'pay_' || n, merchant_id, address_invoice_id, 1, 'USD', 'tx' || n, created_ms + n
            FROM payment, n WHERE seq = {row[0]}"""  # noqa: S608
    )
    with browser.get("/downloads/payments", buffered=False) as sent:
        pieces = [piece.decode() for piece in sent.iter_encoded()]
    assert len(pieces) == 3 and len(lines("".join(pieces))) == copies + 1
