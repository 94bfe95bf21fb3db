"""A plug-in's Connect button: the merchant is asked, and the key is brought to that shop alone."""

from urllib.parse import urlencode

import pytest

from btcpay.languages.catalogs import LANGUAGES
from storage.queries import keys
from tests.support.merchant_browser import FROM_THIS_SITE, ON, MerchantBrowser
from tests.support.payer import Page

pytest.importorskip("btcpay.parts.merchant_pages")

REDIRECT = "https://shop.example/?blocktill-settings-callback"
ASKED = [
    "btcpay.store.canviewinvoices",
    "btcpay.store.cancreatepullpayments",
    "btcpay.store.webhooks.canmodifywebhooks",
]


@pytest.fixture
def shop(open_shops):
    return open_shops(**ON, BLOCKTILL_GREENFIELD="on")


@pytest.fixture
def browser(shop):
    return MerchantBrowser(shop).log_in()


def path(redirect=REDIRECT, **fields):
    asked = {"permissions": ASKED, "applicationName": "Woo <b>", "strict": "true"}
    return "/api-keys/authorize?" + urlencode(
        asked | {"redirect": redirect} | fields, doseq=True, safe=""
    )


def allow(browser, token, url=None, press="p", **headers):
    sent = FROM_THIS_SITE | headers
    fields = {"token": token, "press": press}
    return browser.client.post(url or path(), data=fields, headers=sent)


def brought(given):
    """The names and values that the page's button brings to the shop."""
    tags = [attributes for tag, attributes in Page(given.text).tags if tag == "input"]
    return [(each["name"], each["value"]) for each in tags if each["name"] != "token"]


def test_the_merchant_allows_a_key_and_it_goes_to_the_shop_alone(browser, shop):
    before = len(shop.service.db.rows(keys.ALL))
    for language in LANGUAGES:
        page = browser.client.get(path(lang=language))
        assert page.status_code == 200 and "https://shop.example:443" in page.text
        assert "Woo &lt;b&gt;" in page.text and page.text.count("<li>") == 2
        assert "form-action 'self';" in page.headers["Content-Security-Policy"]
    assert len(shop.service.db.rows(keys.ALL)) == before
    shopwares = path().replace("?", "/?", 1)
    assert browser.client.get(shopwares).status_code == 200
    given = allow(browser, browser.token(), shopwares)
    policy = given.headers["Content-Security-Policy"]
    assert (
        "form-action https://shop.example:443;" in policy
        and "frame-ancestors 'none'" in policy
    )
    form = [attributes for tag, attributes in Page(given.text).tags if tag == "form"][
        -1
    ]
    assert (form["action"], form["method"]) == (REDIRECT, "post")
    fields = brought(given)
    (_, secret), (_, user), *permissions = fields
    assert [name for name, _ in fields] == [
        "apiKey",
        "userId",
        "permissions[]",
        "permissions[]",
    ]
    store = permissions[0][1].partition(":")[2]
    assert [one for _, one in permissions] == [
        f"{ASKED[0]}:{store}",
        f"{ASKED[2]}:{store}",
    ]
    current = shop.client.get(
        "/api/v1/api-keys/current", headers={"Authorization": f"token {secret}"}
    ).json
    assert current["permissions"] == [one for _, one in permissions]
    assert (current["apiKey"], current["userId"]) == (secret, user)


@pytest.mark.both_databases
def test_a_press_that_comes_twice_makes_one_key_and_another_press_another(
    browser, shop
):
    other = path(permissions=ASKED[:1])
    token = browser.token()
    press = Page(browser.client.get(path()).text).values["press"]
    before = len(shop.service.db.rows(keys.ALL))
    first, again = (brought(allow(browser, token, press=press)) for _ in range(2))
    assert first == again
    assert len(shop.service.db.rows(keys.ALL)) == before + 1
    for given in (allow(browser, token), allow(browser, token, other, press)):
        assert brought(given)[0] != first[0]
    assert len(shop.service.db.rows(keys.ALL)) == before + 3


def test_loading_the_answer_again_shows_no_key_that_was_revoked(browser, shop):
    token = browser.token()
    fields = brought(allow(browser, token))
    secret = fields[0][1]
    rows = shop.service.db.rows(keys.ALL)
    (key,) = [row for row in rows if "Woo" in row.name]
    assert browser.post(f"/keys/{key.id}/revoke").status_code == 303
    answer = allow(browser, token)
    assert answer.status_code == 200 and secret not in answer.text
    page = Page(answer.text)
    assert "allow" in page.attributes and page.values["press"] not in ("", "p")
    anew = brought(allow(browser, token, press=page.values["press"]))
    assert anew[0][0] == "apiKey" and anew[0][1] != secret


def test_a_permission_that_nothing_honours_is_said_to_be_none(browser):
    wanted = ["btcpay.store.canmodifystoresettings"]
    for language in LANGUAGES:
        page = browser.client.get(path(permissions=wanted, lang=language)).text
        assert page.count("<li>") == 1
    text = Page(browser.client.get(path(permissions=wanted)).text).texts["permissions"]
    assert (
        "Change the settings of your shop (this permission has no effect here)" in text
    )


def test_nobody_else_and_no_other_site_allows_a_shops_key(browser, shop):
    before = len(shop.service.db.rows(keys.ALL))
    stranger = MerchantBrowser(shop)
    asked = stranger.client.get(path())
    assert asked.status_code == 401
    assert f'href="?{path().partition("?")[2]}"'.replace("&", "&amp;") in asked.text
    assert allow(stranger, browser.token()).status_code == 401
    assert allow(browser, "x").status_code == 403
    other = {"Sec-Fetch-Site": "cross-site"}
    assert allow(browser, browser.token(), **other).status_code == 403
    assert len(shop.service.db.rows(keys.ALL)) == before


def test_what_no_shop_asks_is_refused(browser):
    for fields in (
        {"redirect": ""},
        {"redirect": "javascript:alert(1)"},
        {"redirect": "https://a;script-src/"},
        {"permissions": ["btcpay.server.canmodifyserversettings"]},
        {"permissions": []},
    ):
        assert browser.client.get(path(**fields)).status_code == 400
        assert allow(browser, browser.token(), path(**fields)).status_code == 400


def test_on_public_networks_no_shop_is_on_a_machine_near_by(open_shops):
    shop = open_shops(**ON, BLOCKTILL_GREENFIELD="on", BLOCKTILL_NETWORK="signet")
    browser = MerchantBrowser(shop).log_in()
    for url, status in (
        ("http://127.0.0.1:9464/", 400),
        ("https://192.168.1.5/", 400),
        (REDIRECT, 200),
    ):
        assert browser.client.get(path(redirect=url)).status_code == status


@pytest.mark.both_databases
def test_the_shops_own_name_is_one_line_whatever_it_sends(browser, shop):
    for sent, shown in (
        ("My\0 shop\r\n", "My  shop"),
        ("\0", "https://shop.example:443"),
    ):
        asked = path(applicationName=sent)
        assert allow(browser, browser.token(), asked).status_code == 200
        assert shown in {row.name for row in shop.service.db.rows(keys.ALL)}


def test_there_is_nothing_when_either_is_off(open_shops):
    logged_in = MerchantBrowser(open_shops(**ON)).log_in().client
    for client in (logged_in, open_shops(BLOCKTILL_GREENFIELD="on").client):
        answers = client.get(path()), client.post(path(), headers=FROM_THIS_SITE)
        assert [answer.status_code for answer in answers] == [404, 404]
