"""The pages for who writes programs: keys with their requests, webhooks with their deliveries."""

import re
from datetime import timedelta
from html import unescape

import pytest

from btcpay.merchants import keys
from btcpay.notify import receivers
from btcpay.notify.outbox import Outbox, new_send
from btcpay.values.times import from_ms, iso
from storage.queries import receivers as stored_receivers
from tests.support.fake_esplora import Terminal
from tests.support.merchant_browser import MerchantBrowser
from tests.support.serving import say

HOSTILE = "=1+1\"'><script>alert(1)</script><img src=x onerror=alert(1)>"


def cells(browser, path):
    """The texts of each row's cells, without tags and blanks at their ends."""
    body = browser.get(path).text.partition("<tbody>")[2].partition("</tbody>")[0]
    return [
        [unescape(" ".join(re.sub("<[^>]*>", " ", cell).split())) for cell in row]
        for row in (
            re.findall(r"<t[hd]\b[^>]*>(.*?)</t[hd]>", text, re.S)
            for text in re.findall(r"<tr>(.*?)</tr>", body, re.S)
        )
    ]


def note(shop, secret, *values):
    """A request in the log, past the API."""
    (log,) = shop.service.request_logs
    log.note(shop.key_ids[secret], *values)
    assert log.write()


@pytest.mark.both_databases
def test_a_keys_page_lists_its_latest_requests_newest_first(shop, browser):
    key = shop.issue("read")
    path = f"/keys/{shop.key_ids[key]}"
    assert "made no request in the past week" in browser.page(path).source
    shop.get("/balance", key)
    shop.clock.move(seconds=2)
    shop.post("/invoices", {"amount_usd": 5}, key)
    shop.clock.move(seconds=2)
    shop.get("/nothing", key)
    (log,) = shop.service.request_logs
    assert log.write()
    rows = cells(browser, path)
    assert [row[:3] for row in rows] == [
        ["no such operation", "404", "not_found"],
        ["create-invoice", "403", "forbidden"],
        ["get-balance", "200", ""],
    ]
    assert all(re.fullmatch(r"[\d,]+ ms", row[3]) for row in rows)
    source = browser.page(path).source
    assert "read only" in source and key[-4:] in source and key not in source
    shop.clock.move(days=7, seconds=3)
    MerchantBrowser(shop).log_in()
    assert "made no request in the past week" in browser.page(path).source


def test_odd_texts_in_the_log_are_shown_as_texts(shop, browser):
    key = shop.issue("read")
    note(shop, key, HOSTILE, 599, HOSTILE[::-1], 1e9)
    source = browser.page(f"/keys/{shop.key_ids[key]}").source
    assert "<script>alert" not in source and "&lt;script&gt;" in source
    shop.sql("UPDATE key_requests SET requests = '[[1,2]]'")
    assert "made no request" in browser.page(f"/keys/{shop.key_ids[key]}").source


def test_nobody_else_sees_a_keys_requests_or_a_webhooks_deliveries(shop, browser):
    other = shop.add_merchant("other")
    key = shop.key_ids[shop.issue("read", other)]
    hook = receivers.add(
        shop.service.db, other, "https://x.example/", None, [], shop.clock()
    )
    for path in (f"/keys/{key}", f"/webhooks/{hook.id}", "/keys/key_x", "/webhooks/x"):
        assert browser.get(path).status_code == 404, path
    answer = browser.post(f"/webhooks/{hook.id}/events/evt_1/send")
    assert answer.status_code == 404
    own = shop.key_ids[shop.issue("read")]
    cashier = MerchantBrowser(shop).log_in(till_only=True)
    for path in (f"/keys/{own}", "/keys", "/webhooks"):
        assert cashier.get(path).status_code == 403, path


def test_a_page_with_a_secret_is_stored_by_no_browser_and_no_proxy(browser):
    key = browser.post("/keys", press="1", scope="read", name="x")
    hook = browser.post("/webhooks", press="1", url="https://shop.example.com/paid")
    for answer in (key, hook):
        assert 'id="secret"' in answer.text
        assert "no-store" in answer.headers["Cache-Control"]


@pytest.mark.both_databases
def test_a_merchant_has_at_most_a_hundred_keys_that_work(shop, browser, monkeypatch):
    monkeypatch.setattr(keys, "MOST", 4)  # the shop has two
    for number in range(2):
        fields = {"press": f"{number}", "scope": "read", "name": f"{number}"}
        assert browser.post("/keys", **fields).status_code == 200
    answer = browser.post("/keys", press="3", scope="read", name="too many")
    assert answer.status_code == 400 and "There are already 100 keys" in answer.text
    assert 'value="too many"' in answer.text and 'id="name-problem"' in answer.text
    keys.revoke(shop.service.db, shop.key_ids[shop.read_key], shop.clock())
    assert browser.post("/keys", press="4", scope="read").status_code == 200


def test_a_rotated_key_can_be_revoked_while_it_works(shop, browser):
    old = shop.issue("read")
    id = shop.key_ids[old]
    network = shop.service.settings.network
    keys.rotate(shop.service.db, network, id, timedelta(hours=2), shop.clock())
    for path in ("/keys", f"/keys/{id}"):
        source = browser.page(path).source
        assert "Works until" in source and f"keys/{id}/revoke" in source
    assert browser.post(f"/keys/{id}/revoke").status_code == 303
    assert keys.caller_of(shop.service.db, old, shop.clock()) is None
    assert f"keys/{id}/revoke" not in browser.page("/keys").source


@pytest.mark.both_databases
def test_a_revoked_key_is_not_said_to_work_after_the_clock_has_stepped_back(
    shop, browser
):
    id = shop.key_ids[shop.read_key]
    keys.revoke(shop.service.db, id, shop.clock() + timedelta(minutes=5))
    for path in ("/keys", f"/keys/{id}"):
        source = browser.page(path).source
        assert "Works until" not in source and f"keys/{id}/revoke" not in source


def deliver(shop):
    send = new_send(shop.service.settings, 60)
    Outbox(shop.service.db, shop.service.settings, shop.clock, send).run()


@pytest.mark.both_databases
def test_a_webhooks_page_says_what_was_answered_and_sends_an_event_again(
    shop, browser, receiver
):
    receiver.instead = lambda _: say(HOSTILE.encode() * 9, 500)
    hook = receivers.add(
        shop.service.db, shop.merchant_id, receiver.url, None, [], shop.clock()
    )
    path = f"/webhooks/{hook.id}"
    assert "Nothing has been sent to it yet" in browser.page(path).source
    shop.invoice()
    deliver(shop)
    source = browser.page(path).source
    assert "<script>alert" not in source and "&lt;script&gt;" in source
    ((event, state, tried, answer, again),) = cells(browser, path)
    assert event.startswith("invoice.created evt_")
    assert state.startswith("Waiting Next try: ") and tried.endswith("Attempts: 1")
    assert answer.startswith("500 =1+1") and len(answer) < 220
    assert again == "Send again"
    receiver.instead = lambda _: say(b"", 204)
    id = event.split()[1]
    for _ in range(2):
        assert browser.post(f"{path}/events/{id}/send").status_code == 303
        deliver(shop)
        assert cells(browser, path)[0][1] == "Delivered"
    assert receiver.ids == [id] * 3
    assert browser.post(f"{path}/events/evt_nobodys/send").status_code == 404
    assert "goes out once more" in browser.page(f"{path}?done=again").source


def test_two_webhooks_of_one_address_are_told_apart(shop, browser):
    hooks = []
    for _ in range(2):
        shop.clock.move(days=1)
        hooks.append(
            receivers.add(
                shop.service.db,
                shop.merchant_id,
                "https://shop.example.com/paid",
                None,
                [],
                shop.clock(),
            )
        )
    listed = browser.page("/webhooks").source
    for hook in hooks:
        created = f'<time datetime="{iso(from_ms(hook.created_ms))}">'
        for source in (listed, browser.page(f"/webhooks/{hook.id}").source):
            assert f">{hook.id}<" in source and created in source


@pytest.mark.both_databases
def test_an_event_behind_an_earlier_one_of_its_invoice_is_said_to_wait_for_that(
    shop, browser, receiver
):
    """The time that is stored for it lies in the past: it is when it was published."""
    receiver.instead = lambda _: say(b"", 500)
    hook = receivers.add(
        shop.service.db, shop.merchant_id, receiver.url, None, [], shop.clock()
    )
    path = f"/webhooks/{hook.id}"
    invoice = shop.invoice()
    ((first, state, *_),) = cells(browser, path)
    assert state == "Waiting Due now"
    deliver(shop)
    Terminal(shop).run("invoice", "cancel", invoice["id"])
    shop.clock.move(seconds=3)
    (_, second), (_, state) = [row[:2] for row in cells(browser, path)]
    assert second == f"Waiting Waits for the earlier event {first.split()[1]}"
    assert state.startswith("Waiting Next try: ")
    listed = Terminal(shop).json("webhook", "deliveries", hook.id)
    assert [row["waits_for"] for row in listed] == [first.split()[1], None]
    receiver.instead = lambda _: say(b"", 204)
    assert browser.post(f"{path}/send").status_code == 303
    deliver(shop)
    assert [row[1] for row in cells(browser, path)] == ["Delivered"] * 2


def test_a_disabled_webhook_works_again_once_an_event_is_sent_again(
    shop, browser, receiver
):
    hook = receivers.add(
        shop.service.db, shop.merchant_id, receiver.url, None, [], shop.clock()
    )
    receiver.instead = lambda _: say(b"", 410)
    shop.invoice()
    deliver(shop)
    path = f"/webhooks/{hook.id}"
    assert "it failed for too long" in browser.page(path).source
    ((event, state, *_),) = cells(browser, path)
    assert state == "Given up"
    receiver.instead = lambda _: say(b"", 204)
    assert browser.post(f"{path}/events/{event.split()[1]}/send").status_code == 303
    assert "it failed for too long" not in browser.page(path).source
    deliver(shop)
    assert cells(browser, path)[0][1] == "Delivered"


def test_a_mailbox_is_no_webhook(shop, browser):
    browser.post("/settings/mail", address="owner@shop.example", language="en")
    id = stored_receivers.mail_id(stored_receivers.MAIL, shop.merchant_id)
    assert browser.get(f"/webhooks/{id}").status_code == 404
