"""A device that opens the till only: every path and form of the merchant's pages, as they are."""

import re
from urllib.parse import urljoin, urlsplit

import pytest
from test_till import invoice, lost, made, press

from btcpay import hooks
from btcpay.merchants.sessions import sessions_of
from tests.support.builders import dump, finish, pay
from tests.support.merchant_browser import FROM_THIS_SITE, ON, MerchantBrowser
from tests.support.merchant_paths import VARIABLE, filled
from tests.support.payer import Page

# Whatever else the service serves to who is logged in is refused: a new page by itself.
OPEN = {
    ("GET", "/merchant/till"),
    ("GET", "/merchant/till/manifest"),
    ("GET", "/merchant/till/tip"),
    ("GET", "/merchant/till/<id>"),
    ("POST", "/merchant/till"),
    ("POST", "/merchant/till/log-out"),
}


@pytest.fixture
def shop(open_shops):
    """With every part that brings pages for the merchant."""
    greenfield = {"BLOCKTILL_GREENFIELD": "on"} if hooks.of(hooks.MerchantViews) else {}
    return open_shops(**ON, **greenfield)


@pytest.fixture
def counter(shop):
    return MerchantBrowser(shop).log_in(till_only=True)


def served(shop):
    """The method and the rule of everything behind the login, and of what is not there."""
    return {("PUT", "/merchant/<rest:rest>")} | {
        (method, rule.rule)
        for rule in shop.app.url_map.iter_rules()
        if rule.endpoint.startswith("merchant.inside.")
        for method in rule.methods or ()
        if method in ("GET", "POST")
    }


def test_every_path_and_form_but_the_tills_is_refused_with_a_way_back(shop, counter):
    whole = MerchantBrowser(shop).log_in()
    token = counter.token()
    sold = invoice(whole)
    link = shop.link(title="Tip jar")
    ids = [sold["id"], link["id"], *(one.id for one in sessions(shop)), "look", "x"]
    before = dump(shop)
    refused = served(shop) - OPEN
    assert served(shop) > OPEN and len(refused) > 40
    for method, rule in sorted(refused):
        for path in filled(rule, ids if len(VARIABLE.findall(rule)) == 1 else ids[:1]):
            shop.clock.move(seconds=61)
            fields = {"data": {"token": token}} if method == "POST" else {}
            answer = counter.client.open(
                path, method=method, headers=FROM_THIS_SITE, **fields
            )
            assert answer.status_code == 403, f"{method} {path}"
            assert "This device opens the till only" in answer.text, f"{method} {path}"
            (back,) = [
                urljoin(path, it["href"]) for it in links(answer) if "button" in str(it)
            ]
            assert counter.client.get(back).status_code == 200, path
    assert dump(shop) == before


def links(answer):
    return [
        named
        for tag, named in Page(answer.text).tags
        if tag == "a" and named.get("href")
    ]


def sessions(shop):
    return sessions_of(shop.service.db, shop.merchant_id, shop.clock())


def test_a_tills_pages_lead_nowhere_else_whatever_has_happened(shop, counter):
    taken_back = lost(counter)["id"]
    sold = invoice(counter, amount="30")
    waiting = invoice(counter, amount="31")
    ended = invoice(counter, amount="32")
    pay(shop, sold)
    finish(shop, ended, "expired")
    rules = [re.compile(VARIABLE.sub("[^/]+", rule)) for _, rule in OPEN]
    for id in ("", taken_back, *(one["id"] for one in (sold, waiting, ended))):
        answer = counter.get(f"/till/{id}".rstrip("/"))
        page = Page(answer.text)
        url = f"/merchant/till/{id}".rstrip("/")
        led = [named.get("href") or named.get("action") for _, named in page.tags]
        paths = {urlsplit(urljoin(url, to)).path for to in led if to}
        own = {path for path in paths if path.startswith("/merchant")}
        assert (
            own
            and [path for path in own if not any(r.fullmatch(path) for r in rules)]
            == []
        )
        assert "inbox" not in page.attributes and "percents" not in page.attributes
    assert "taken back" in counter.page("/till").texts["alarms"]


def test_a_till_device_sells_and_shows_its_sales_and_no_other_invoice(shop, counter):
    id = made(press(counter))
    pay(shop, shop.get(f"/invoices/{id}").json)
    page = counter.page(f"/till/{id}")
    assert page.state == "paid" and "receipt-code" in page.attributes
    owner = MerchantBrowser(shop).log_in()
    assert owner.get(f"/till/{id}").status_code == 200
    for browser in (counter, owner):
        assert browser.get(f"/till/{shop.invoice()['id']}").status_code == 404


def test_a_till_device_logs_itself_out_and_no_other(shop, counter):
    other = MerchantBrowser(shop).log_in()
    answer = counter.post("/till/log-out")
    assert answer.status_code == 303 and answer.headers["Clear-Site-Data"] == '"cache"'
    assert (counter.get("/till").status_code, other.get().status_code) == (401, 200)
    assert len(sessions(shop)) == 1


@pytest.mark.parametrize("opens", ["till", "everything", "", "else"])
def test_a_device_is_added_for_the_till_unless_everything_is_said(shop, opens):
    owner = MerchantBrowser(shop).log_in()
    added = MerchantBrowser(shop)
    checked = [named for _, named in owner.page("/sessions").tags if "checked" in named]
    assert [named["value"] for named in checked] == ["till"]
    answer = owner.post("/sessions", **({"opens": opens} if opens else {}))
    login = re.search("/merchant/login/[0-9A-Za-z]+", answer.text)[0]
    is_whole = opens == "everything"
    assert login not in owner.get("/sessions").text  # it is shown once
    assert ("It opens the till only" in added.client.get(login).text) is not is_whole
    led_to = urljoin(
        login, added.client.post(login, headers=FROM_THIS_SITE).headers["Location"]
    )
    assert led_to == ("/merchant" if is_whole else "/merchant/till")
    assert added.get("/settings").status_code == (200 if is_whole else 403)
    shown = owner.get("/sessions").text
    assert shown.count('class="badge">Till only') == (0 if is_whole else 1)
    assert shown.count('class="badge">Everything') == (2 if is_whole else 1)
