"""The way in to the merchant's pages: a link once, within ten minutes, and a session of its own."""

from merchant_browser import FROM_THIS_SITE, ON, MerchantBrowser

from btcpay.merchants.sessions import new_login


def test_there_is_nothing_when_it_is_off(open_shops):
    shop = open_shops()
    assert shop.client.get("/merchant").status_code == 404
    assert shop.client.get("/merchant/login/x").status_code == 404


def test_a_link_opens_one_session(open_shops):
    shop = open_shops(**ON)
    secret = new_login(shop.service.db, shop.merchant_id, shop.clock())
    link, client = f"/merchant/login/{secret}", shop.client
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


def test_a_session_ends_here_and_in_the_database(open_shops):
    browser = MerchantBrowser(open_shops(**ON)).log_in()
    cookie = browser.client.get_cookie("merchant")
    answer = browser.post("/logout")
    assert answer.status_code == 200 and answer.headers["Clear-Site-Data"] == '"cache"'
    browser.client.set_cookie("merchant", cookie.value)
    assert browser.get().status_code == 401
