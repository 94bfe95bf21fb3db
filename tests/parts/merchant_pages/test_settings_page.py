"""Settings in the browser: by the rules of the commands, shown again where they are wrong."""

import re
from io import BytesIO

import pytest

from btcpay.merchants import keys
from storage.queries import deliveries, merchants, receivers
from storage.queries import keys as stored_keys
from storage.statement import as_dict
from tests.support.merchant_browser import FROM_THIS_SITE, MerchantBrowser
from tests.support.serving import say

PNG = b"\x89PNG\r\n\x1a\n" + b"\0\0\0\rIHDR" + bytes(30)
LOOK = {"name": "Café Ünder", "accent": "#c0397f", "contact": "+49 30 1234567"}
FORM = {"headers": FROM_THIS_SITE, "content_type": "multipart/form-data"}
LOGO = ("logo", "logo_type", "logo_sha256")
STORED = {
    "look": LOOK,
    "counting": {"currency": "EUR", "timezone": "Europe/Berlin"},
    "wallet": {"wallet_gap_limit": "120"},
    "mail": {
        "address": "me@harbour-roasters.com",
        "receipts": "1",
        "evening": "1",
        "language": "de",
    },
    "receipt": {
        "business_address": "Quay 1\n20095 Hamburg",
        "tax_number": "DE 1",
        "tax_percent": "7.7",
    },
    "return": {
        "return_paid": "https://shop.example.com/{invoice}",
        "return_unpaid": "",
    },
}
HOOK = "https://shop.example/hook"


def all_of(shop):
    """The merchant's stored values, by the names of the fields."""
    db = shop.service.db
    own = {"merchant_id": shop.merchant_id}
    row = db.get_or_none(merchants.BRAND, **own) or merchants.NO_BRAND
    mail = db.get_or_none(receivers.MAIL_OF, **own) or receivers.NO_MAIL
    (merchant,) = db.rows(receivers.Merchant.select())
    return as_dict(merchant) | as_dict(mail) | as_dict(row)


def test_a_currency_is_proposed_until_one_is_chosen_and_never_set_in_silence(browser):
    def page():
        german = {"Accept-Language": "de-AT"}
        return browser.page("/settings/counting", headers=german)

    assert (
        page().texts["own-currency"].endswith(" EUR")
        and "USD" in all_of(browser.shop).values()
    )
    browser.post("/settings/counting", currency="CHF", timezone="UTC")
    assert "own-currency" not in page().texts


@pytest.mark.both_databases
def test_each_form_stores_its_fields_and_the_page_shows_them(browser):
    for part, fields in STORED.items():
        answer = browser.post(f"/settings/{part}", **fields)
        assert answer.status_code == 303, part
        page = f"../../merchant/settings/{part}?done="
        assert answer.headers["Location"].startswith(page)
        stored = all_of(browser.shop)
        assert {name: str(stored[name] or "") for name in fields} == fields
        # It says so beside the button that was pressed.
        path, _, anchor = answer.headers["Location"].partition("#")
        shown = browser.page(path.removeprefix("../../merchant"))
        assert anchor == "save" and "Saved." in shown.texts["save"]
        for text in fields.values():
            assert text in shown.source
    empty = dict.fromkeys(LOOK, "")
    browser.post("/settings/look", **empty)
    assert {name: all_of(browser.shop)[name] for name in LOOK} == dict.fromkeys(LOOK)


def test_show_shows_the_checkout_as_it_would_look_and_stores_nothing(browser):
    before = all_of(browser.shop)
    shown = browser.post("/settings/look", **LOOK, show="1").text
    assert "It is not saved yet" in shown and "accent/c0397f.css" in shown
    assert "<bdi>Café Ünder</bdi>" in shown
    assert all_of(browser.shop) == before


def test_a_logo_is_stored_by_its_bytes_with_the_name_beside_it_and_taken_back(browser):
    def send(content=None, **more):
        fields = {"token": browser.token(), **LOOK, **more}
        if content is not None:
            fields["logo"] = (BytesIO(content), "logo.png")
        return browser.client.post("/merchant/settings/look", data=fields, **FORM)

    assert send(PNG).status_code == 303
    stored = all_of(browser.shop)
    assert (stored["logo_type"], stored["name"]) == ("image/png", LOOK["name"])
    assert stored["logo_sha256"] in browser.get("/settings/look").text
    for content in (b"<svg/>", PNG + bytes(65_536), b""):
        answer = send(content, name="Other")
        assert answer.status_code == 400 and "at most 64 KiB" in answer.text
        assert 'value="Other"' in answer.text
    too_large = send(bytes(1_000_001))
    assert too_large.status_code == 413 and "at most 64 KiB" in too_large.text
    assert send(PNG, token="another").status_code == 403
    assert send().status_code == 303  # no file was chosen
    assert all_of(browser.shop) == stored
    assert send(remove="1").status_code == 303
    assert all_of(browser.shop) == stored | dict.fromkeys(LOGO)


@pytest.mark.both_databases
def test_the_list_of_settings_says_what_is_set_on_each_page(browser):
    source = browser.page("/settings").source
    for text in ("USD · UTC", "Gap limit 20", "shop"):
        assert text in source
    assert source.count("Not set up") == 4  # receipts, link, address, mail server
    for part, fields in STORED.items():
        browser.post(f"/settings/{part}", **fields)
    browser.post("/keys", scope="write", name="Shop")
    browser.post("/webhooks", url=HOOK)
    MerchantBrowser(browser.shop).log_in()
    source = browser.page("/settings").source
    values = re.findall(
        r'<span class="name">(.*?)</span> <span class="quiet">(.*?)</span>', source
    )
    shown = {name: re.sub("<.*?>", "", value) for name, value in values}
    assert shown == {
        "What customers see": LOOK["name"],
        "Currency and time": "EUR · Europe/Berlin",
        "Receipts": "Tax 7.7%",
        "Your wallet": "Gap limit 120",
        "Link back to your website": STORED["return"]["return_paid"],
        "Mail": STORED["mail"]["address"],
        "Mail server": "Not set up",
        "Devices": "2",
        "API keys": str(len(browser.shop.service.db.rows(stored_keys.ALL))),
        "Webhooks": "1",
        "Backup": "PostgreSQL" if browser.shop.service.db.is_server else "Never",
    }
    for path in re.findall(r'<a href="[./]*merchant(.*?)"><span class="name">', source):
        page = browser.page(path)
        assert 'class="back"' in page.source and 'merchant/settings"' in page.source


OF_CUSTOMERS = "branded"  # the class of what has the colour that customers see


def test_no_page_of_the_merchants_own_has_the_colour_that_customers_see(browser):
    browser.post("/settings/look", **LOOK)
    link = browser.shop.link()["id"]
    sale = browser.post("/till", amount="25").headers["Location"][-28:]
    for path in ("", "/till", "/settings", "/settings/counting", "/invoices", "/month"):
        assert OF_CUSTOMERS not in browser.page(path).source, path
    for path in (f"/till/{sale}", f"/links/{link}/card"):
        body = next(named for tag, named in browser.page(path).tags if tag == "body")
        assert OF_CUSTOMERS in body["class"].split(), path
    look = browser.page("/settings/look")
    body = next(named for tag, named in look.tags if tag == "body")
    assert OF_CUSTOMERS not in body["class"].split()
    assert look.attributes["preview"]["class"] == OF_CUSTOMERS


@pytest.mark.both_databases
def test_a_key_is_issued_once_a_press_shown_once_and_revoked(browser):
    shop = browser.shop
    fields = {"press": "p", "scope": "write", "name": "Shop"}
    shown = browser.post("/keys", **fields).text
    secret = shown.partition('id="secret" dir="ltr">')[2].partition("<")[0]
    caller = keys.caller_of(shop.service.db, secret, shop.clock())
    assert caller.scope == "write" and caller.merchant_id == shop.merchant_id
    again = browser.post("/keys", **fields)
    assert again.status_code == 303
    assert sum(row.name == "Shop" for row in shop.service.db.rows(stored_keys.ALL)) == 1
    assert secret not in browser.get("/keys?done=issued").text
    for wrong in ({"scope": "all"}, {"name": "a" * 61}):
        assert browser.post("/keys", **fields | wrong).status_code == 400
    for _ in range(2):
        assert browser.post(f"/keys/{caller.key_id}/revoke").status_code == 303
    assert keys.caller_of(shop.service.db, secret, shop.clock()) is None
    assert browser.post("/keys/key_nobodys/revoke").status_code == 404


@pytest.mark.both_databases
def test_a_webhook_is_added_once_a_press_tried_sent_what_waits_and_removed(
    browser, receiver
):
    shop = browser.shop
    db = browser.shop.service.db
    cut = "http://" + "u" * 1984 + "@localhost.evil.example/"
    unfit = (
        f"{receiver.url}\r\nX: y",
        f"{receiver.url}\0",
        f"{receiver.url}?{'a' * 50_000}",
    )
    for wrong in ("", "shop.example.com", "https://a\\b", cut, *unfit):
        answer = browser.post("/webhooks", url=wrong)
        assert answer.status_code == 400 and 'id="url-problem"' in answer.text
    fields = {"press": "p", "url": receiver.url}
    shown = browser.post("/webhooks", **fields).text
    assert "whsec_" in shown
    assert browser.post("/webhooks", **fields).status_code == 303
    (row,) = db.rows(receivers.LIST)
    id = row.id
    assert "whsec_" not in browser.get("/webhooks?done=added").text
    assert "was accepted" in browser.post(f"/webhooks/{id}/test").text
    receiver.instead = lambda _message: say(b"", 500)
    assert "was not accepted: 500" in browser.post(f"/webhooks/{id}/test").text
    shop.invoice()
    later = shop.clock().timestamp() * 1000 + 3_600_000
    db.run(deliveries.WAITING_NOW, receiver_id=id, next_ms=int(later))
    assert browser.post(f"/webhooks/{id}/send").status_code == 303
    until = int(shop.clock().timestamp() * 1000)
    assert len(db.rows(deliveries.DUE, receiver_id=id, until=until, limit=9)) == 1
    assert browser.post(f"/webhooks/{id}/remove").status_code == 303
    assert db.rows(receivers.LIST) == []
    assert browser.post(f"/webhooks/{id}/remove").status_code == 404


def test_a_merchant_has_at_most_twenty_webhooks(browser):
    for number in range(20):
        assert browser.post("/webhooks", press=f"{number}", url=HOOK).status_code == 200
    answer = browser.post("/webhooks", press="20", url=HOOK)
    assert answer.status_code == 400 and 'id="url-problem"' in answer.text
    assert "There are already 20" in answer.text
