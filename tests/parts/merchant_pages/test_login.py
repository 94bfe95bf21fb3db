"""The way in to the merchant's pages: a link once, within ten minutes, and a session of its own."""

import re

import pytest

from btcpay.merchants.sessions import new_login, sessions_of
from btcpay.web import rate_limits
from tests.support.merchant_browser import FROM_THIS_SITE, ON, MerchantBrowser
from tests.support.payer import Page


def test_there_is_nothing_when_it_is_off(open_shops):
    shop = open_shops()
    assert shop.client.get("/merchant").status_code == 404
    assert shop.client.get("/merchant/login/x").status_code == 404


def test_a_link_opens_one_session(shop):
    secret = new_login(shop.service.db, shop.merchant_id, shop.clock())
    link = f"/merchant/login/{secret}"
    client = shop.client
    over = new_login(shop.service.db, shop.merchant_id, shop.clock())
    assert client.get(link).status_code == 200  # looked at by a messenger, twice
    assert client.get(link).status_code == 200
    answer = client.post(link, headers=FROM_THIS_SITE)
    assert answer.status_code == 303 and answer.headers["Location"] == "../../merchant"
    assert client.get("/merchant").status_code == 200
    again = shop.client
    assert again.get(link).status_code == again.post(link).status_code == 410
    assert again.get("/merchant").status_code == 401
    shop.clock.move(minutes=10)
    assert again.post(f"/merchant/login/{over}").status_code == 410


FIREFOX = "Mozilla/5.0 (Android 14; Mobile; rv:132.0) Gecko/132.0 Firefox/132.0"


def by(shop, user_agent):
    """A browser that says this of itself when it logs in."""
    browser = MerchantBrowser(shop)
    secret = new_login(shop.service.db, shop.merchant_id, shop.clock())
    headers = FROM_THIS_SITE | {"User-Agent": user_agent}
    assert (
        browser.client.post(f"/merchant/login/{secret}", headers=headers).status_code
        == 303
    )
    return browser


def ids(shop):
    return [
        row.id for row in sessions_of(shop.service.db, shop.merchant_id, shop.clock())
    ]


def test_each_is_called_by_its_name_and_this_one_stands_first(shop):
    here = by(shop, FIREFOX)
    shop.clock.move(minutes=5)
    by(shop, "curl/8 <b>"), by(shop, "")
    shown = here.get("/sessions").text
    assert shown.count("This device") == 1
    order = ["Firefox on Android", "This device", "5 minutes ago", "curl/8 &lt;b&gt;"]
    places = [shown.index(text) for text in [*order, "Unknown browser"]]
    assert places[:3] == sorted(places[:3]) and places[2] < min(places[3:])


def prepared(by):
    """The path of a link that logs in another device."""
    answer = by.post("/sessions")
    assert answer.status_code == 200
    return re.search("/merchant/login/[0-9A-Za-z]+", answer.text)[0]


def test_a_lost_one_is_logged_out_from_here_with_its_links_and_then_this_one(shop):
    other_link = new_login(shop.service.db, shop.add_merchant("other"), shop.clock())
    lost = MerchantBrowser(shop).log_in()
    (lost_id,) = ids(shop)
    here = MerchantBrowser(shop).log_in()
    link = prepared(lost)
    assert here.post("/sessions/ses_" + "0" * 24 + "/end").status_code == 404
    assert (
        shop.client.get(link).status_code == 200
    )  # nothing ended, so nothing was taken back
    answer = here.post(f"/sessions/{lost_id}/end")
    assert answer.status_code == 303
    assert answer.headers["Location"] == "../../../merchant/sessions?done=ended"
    assert "That browser is logged out" in here.get("/sessions?done=ended").text
    assert (lost.get().status_code, here.get().status_code) == (401, 200)
    assert shop.client.post(link, headers=FROM_THIS_SITE).status_code == 410
    assert here.post(f"/sessions/{lost_id}/end").status_code == 404
    cookie = here.client.get_cookie("merchant")
    link = prepared(here)
    answer = here.post(f"/sessions/{ids(shop)[0]}/end")
    assert answer.headers["Location"] == "../../../merchant/login/logged-out"
    assert "Logged out" in shop.client.get("/merchant/login/logged-out").text
    assert answer.status_code == 303 and "Max-Age=0" in answer.headers["Set-Cookie"]
    here.client.set_cookie("merchant", cookie.value)  # it ends in the database too
    assert here.get().status_code == 401
    assert shop.client.post(link, headers=FROM_THIS_SITE).status_code == 410
    assert shop.client.get(f"/merchant/login/{other_link}").status_code == 200


def test_all_others_and_links_that_wait_end_at_once_but_no_other_merchants(shop):
    other = MerchantBrowser(shop).log_in(shop.add_merchant("other"))
    lost = MerchantBrowser(shop).log_in()
    here = MerchantBrowser(shop).log_in()
    link = new_login(shop.service.db, shop.merchant_id, shop.clock())
    assert here.post("/sessions/end-others").status_code == 303
    assert [it.get().status_code for it in (lost, here, other)] == [401, 200, 200]
    assert shop.client.get(f"/merchant/login/{link}").status_code == 410
    assert "end-others" not in here.page("/sessions").attributes  # there is nobody else


@pytest.mark.slow
def test_where_addresses_mean_nothing_a_stranger_keeps_no_merchant_out(open_shops):
    client = open_shops(**ON, BLOCKTILL_VISITOR_ADDRESSES="off").client
    visits = (client.get("/merchant") for _ in range(rate_limits.VISITS.limit + 1))
    assert {answer.status_code for answer in visits} == {401}


def test_the_front_page_leads_to_the_merchants_pages_where_they_are_on(
    shop, open_shops
):
    asked = {"Accept": "text/html"}
    page = Page(shop.client.get("/?lang=de", headers=asked).text)
    links = [named["href"] for tag, named in page.tags if tag == "a"]
    assert "merchant?lang=de" in links
    assert shop.client.get("/merchant?lang=de").status_code == 401
    without = open_shops(BLOCKTILL_MERCHANT_PAGES="off")
    assert "merchant" not in without.client.get("/", headers=asked).text
