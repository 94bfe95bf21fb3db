"""`merchant login`, `sessions` and `logout`: the merchant's pages from the server's side."""

from urllib.parse import urlsplit

from btcpay.values.times import utc_now
from tests.support.merchant_browser import FROM_THIS_SITE, MerchantBrowser


def press(till, url):
    return till.shop.client.post(urlsplit(url).path, headers=FROM_THIS_SITE)


def test_login_prints_a_link_that_works_once(till, blocktill):
    printed, _ = blocktill.run("merchant", "login", "shop")
    assert (
        printed.startswith("http://127.0.0.1:8000/merchant/login/")
        and printed.count("\n") == 1
    )
    assert press(till, printed.strip()).status_code == 303
    assert press(till, printed.strip()).status_code == 410
    link = blocktill.json("merchant", "login", "shop")
    assert (
        link.keys() == {"merchant", "opens", "url", "expires_at"}
        and link["merchant"] == "shop"
    )
    assert utc_now().isoformat()[:13] <= link["expires_at"] and link[
        "expires_at"
    ].endswith("Z")
    assert press(till, link["url"]).status_code == 303


def test_sessions_are_listed_and_ended_one_by_one_or_all_at_once(till, blocktill):
    first, second, third = (MerchantBrowser(till.shop).log_in() for _ in range(3))
    rows = blocktill.json("merchant", "sessions", "shop")
    assert len(rows) == 3 and rows[0].keys() >= {
        "id",
        "browser",
        "created_at",
        "last_used_at",
    }
    assert (
        blocktill.run("merchant", "sessions", "shop")[0]
        .splitlines()[1]
        .startswith("ses_")
    )
    assert {row["opens"] for row in rows} == {"everything"}
    ended = blocktill.run("merchant", "logout", "shop", "--session", rows[0]["id"])
    assert "logged out ses_" in ended[1]
    states = [it.get().status_code for it in (first, second, third)]
    assert sorted(states) == [200, 200, 401]
    link = blocktill.json("merchant", "login", "shop")["url"]
    assert "logged out 2 browsers" in blocktill.run("merchant", "logout", "shop")[1]
    assert {it.get().status_code for it in (first, second, third)} == {401}
    assert press(till, link).status_code == 410  # nor does a link that was sent log in
    assert blocktill.json("merchant", "sessions", "shop") == []


def test_of_another_merchant_nothing_is_ended(till, blocktill):
    till.shop.add_merchant("other")
    browser = MerchantBrowser(till.shop).log_in()
    (row,) = blocktill.json("merchant", "sessions", "shop")
    ended = blocktill.run(
        "merchant", "logout", "other", "--session", row["id"], status=1
    )
    assert "there is no session" in ended[1]
    assert "logged out 0 browsers" in blocktill.run("merchant", "logout", "other")[1]
    assert browser.get().status_code == 200


def test_while_the_pages_are_off_it_says_who_has_them_all_the_same(till, blocktill):
    off = {"BLOCKTILL_MERCHANT_PAGES": "off"}
    printed, said = blocktill.run(
        "merchant", "login", "shop", **off
    )  # beside the sandbox
    assert press(till, printed.strip()).status_code == 303
    assert "`serve` wants BLOCKTILL_MERCHANT_PAGES=on" in said
    blocktill.run("merchant", "logout", "shop", **off)
