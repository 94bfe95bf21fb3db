"""The owner's password: a way in that no lost cookie closes, and nobody can guess."""

import re
from collections import Counter

import pytest
import requests

from btcpay.merchants.first_run import start_url
from btcpay.merchants.owner_password import owner_password
from btcpay.merchants.sessions import (
    end_sessions_of_other_passwords,
    session_of,
    sessions_of,
)
from btcpay.parts.merchant_pages import session_queries
from btcpay.parts.merchant_pages.visit import Visit
from btcpay.web import rate_limits
from btcpay.web.pages.render import Pages
from storage.queries import merchants
from tests.support.builders import Live, at_once, new_xpub, open_shop
from tests.support.merchant_browser import FROM_THIS_SITE, ON, MerchantBrowser
from tests.support.payer import Page
from tests.support.playground import children_of
from tests.support.processes import command_of

pytestmark = pytest.mark.both_databases
PASSWORD = "Grüße vom Hafen 17"
SET = {**ON, "BLOCKTILL_OWNER_PASSWORD": PASSWORD}
TYPED = {"name": "Harbour Roasters", "currency": "EUR", "timezone": "Europe/Berlin",
    "language": "de", "key": new_xpub(), "script": "p2wpkh", "next_index": "0",
    "used_before": "0"}  # fmt: skip


@pytest.fixture
def shop(open_shops):
    return open_shops(**SET)


def enter(shop, password=PASSWORD, client=None, address="127.0.0.1", **more):
    """Sends the password's form, as the page does."""
    return (client or shop.client).post(
        "/merchant/login",
        data={"password": password, **more},
        headers=FROM_THIS_SITE,
        environ_base={"REMOTE_ADDR": address},
    )


def logged_in(shop):
    """A browser that the password has logged in."""
    browser = MerchantBrowser(shop)
    assert enter(shop, client=browser.client).status_code == 303
    return browser


def reopened(shop, open_shops, **environ):
    """The same shop after a start with these settings."""
    kept = {"BLOCKTILL_DATABASE_URL": shop.environ["BLOCKTILL_DATABASE_URL"]}
    again = open_shops(empty=True, **kept, **environ)
    again.merchant_id = shop.merchant_id
    return again


@pytest.mark.parametrize(
    "path", ["", "/login", "/login/x", "/login/logged-out", "/sessions"]
)
def test_whoever_is_not_logged_in_is_asked_for_the_owners_password(
    shop, open_shops, path
):
    page = Page(shop.client.get(f"/merchant{path}").text)
    field = page.attributes["password"]
    assert (field["type"], field["autocomplete"], field["name"]) == (
        "password",
        "current-password",
        "password",
    )
    form = page.attributes["password-login"]
    assert form["method"] == "post" and form["action"].endswith("merchant/login")
    assert "value" not in field and PASSWORD not in page.source
    without = open_shops(**ON)
    shown = without.client.get(f"/merchant{path}").text
    assert "password" not in Page(shown).attributes
    assert "blocktill merchant login" in shown


def test_the_owners_password_opens_what_a_login_link_opens(shop):
    client = shop.client
    answer = enter(shop, client=client)
    assert (answer.status_code, answer.headers["Location"]) == (303, "../merchant")
    cookie = answer.headers["Set-Cookie"]
    assert "HttpOnly" in cookie and "SameSite=Strict" in cookie
    for path in ("", "/settings", "/keys", "/till"):
        assert client.get(f"/merchant{path}").status_code == 200
    (row,) = sessions_of(shop.service.db, shop.merchant_id, shop.clock())
    assert not row.till_only
    former = client.get_cookie("merchant").value
    enter(shop, client=client)
    assert client.get_cookie("merchant").value != former
    assert len(sessions_of(shop.service.db, shop.merchant_id, shop.clock())) == 1


SAME = {
    "as it is": PASSWORD,
    "with the blank and the line break that copying adds": f" {PASSWORD}\r\n",
    "letters that a keyboard composes of two signs": "Gru\u0308ße vom Hafen 17",
}
OTHERS = {
    "nothing": "",
    "a blank": " ",
    "small letters": PASSWORD.lower(),
    "its beginning": PASSWORD[:-1],
    "more": f"{PASSWORD}7",
    "a very long text": PASSWORD * 500,
    "signs that are no UTF-8": b"\xff\xfe",
    "a zero": "\0",
}


@pytest.mark.parametrize("case", SAME)
def test_the_same_password_is_taken(shop, case):
    assert enter(shop, SAME[case]).status_code == 303


@pytest.mark.parametrize("case", OTHERS)
def test_a_wrong_owners_password_is_refused_in_plain_words(shop, case):
    answer = enter(shop, OTHERS[case])
    page = Page(answer.text)
    assert answer.status_code == 401 and "Set-Cookie" not in answer.headers
    assert "not the owner's password" in page.texts["password-problem"]
    assert page.attributes["password"]["aria-invalid"] == "true"
    assert "value" not in page.attributes["password"]


def test_no_other_site_sends_the_owners_password(shop):
    for headers in (
        {"Sec-Fetch-Site": "cross-site"},
        {"Origin": "https://evil.example"},
    ):
        answer = shop.client.post(
            "/merchant/login", data={"password": PASSWORD}, headers=headers
        )
        assert answer.status_code == 403 and "Set-Cookie" not in answer.headers


def test_after_twenty_wrong_ones_a_visitor_waits_a_minute_and_others_do_not(shop):
    limit = rate_limits.FAILED_AUTH.limit
    assert limit == 20
    found = [enter(shop, f"guess {number}").status_code for number in range(limit + 1)]
    assert found == [401] * limit + [429]
    refused = enter(shop)  # whoever guesses does not learn that this one was right
    assert refused.status_code == 429 and int(refused.headers["Retry-After"]) <= 60
    assert "wait a minute" in refused.text
    assert enter(shop, address="198.51.100.7").status_code == 303
    shop.clock.move(seconds=61)
    assert enter(shop).status_code == 303


def test_after_sixty_wrong_ones_of_many_visitors_all_wait_a_minute(shop):
    limit = rate_limits.FAILED_PASSWORDS.limit
    assert limit == 60
    browser = logged_in(shop)
    for number in range(limit - 1):
        assert enter(shop, "a guess", address=f"198.51.100.{number}").status_code == 401
    assert enter(shop).status_code == 303
    assert enter(shop, "a guess", address="2001:db8::1").status_code == 401
    assert enter(shop, address="203.0.113.9").status_code == 429
    assert browser.get().status_code == 200  # whoever is in stays in
    # Whoever was in before gets in again, from wherever.
    assert enter(shop, client=browser.client, address="203.0.113.9").status_code == 303
    assert MerchantBrowser(shop).log_in().get().status_code == 200  # links open too
    shop.clock.move(seconds=61)
    assert enter(shop, address="203.0.113.9").status_code == 303


def test_a_browser_that_was_let_in_before_has_twenty_wrong_ones_of_its_own(shop):
    browser = logged_in(shop)
    browser.client.delete_cookie("merchant")  # its session has ended
    limit = rate_limits.FAILED_AUTH.limit
    assert limit == rate_limits.KNOWN_BROWSERS.limit == 20
    for number in range(limit):
        assert enter(shop, f"guess {number}").status_code == 401
    assert enter(shop).status_code == 429  # from its own address
    for number in range(limit):
        assert enter(shop, f"guess {number}", browser.client).status_code == 401
    assert enter(shop, client=browser.client).status_code == 429
    shop.clock.move(seconds=61)
    assert enter(shop, client=browser.client).status_code == 303


FORGED = {
    "made up": lambda known, other: "ImFiYyI.c2lnbmF0dXJl",
    "changed": lambda known, other: known[:-1],
    "of another password": lambda known, other: other,
}


@pytest.mark.parametrize("case", FORGED)
def test_no_forged_cookie_makes_a_browser_known(shop, open_shops, case):
    known = logged_in(shop).client.get_cookie("known").value
    environ = {**ON, "BLOCKTILL_OWNER_PASSWORD": f"{PASSWORD} and more"}
    changed = reopened(shop, open_shops, **environ)
    client = changed.client
    enter(changed, f"{PASSWORD} and more", client)
    other = client.get_cookie("known").value
    for number in range(20):
        enter(shop, f"guess {number}")
    client = shop.client
    client.set_cookie("known", FORGED[case](known, other))
    assert enter(shop, client=client).status_code == 429
    client.set_cookie("known", known)
    assert enter(shop, client=client).status_code == 303


def test_right_ones_are_not_counted(shop):
    found = {enter(shop).status_code for _ in range(70)}
    assert found == {303}


def test_guesses_at_the_same_time_are_no_more_than_one_after_another(shop):
    def guess(number):
        status = enter(shop, f"guess {number}").status_code
        shop.service.db.close()
        return status

    assert Counter(at_once(40, guess)) == {401: 20, 429: 20}


CHANGED = {"another": f"{PASSWORD} and more", "none any more": ""}


@pytest.mark.parametrize("case", CHANGED)
def test_a_new_password_ends_what_the_former_one_opened_and_nothing_else(
    shop, open_shops, case
):
    by_password = logged_in(shop).client.get_cookie("merchant").value
    by_link = MerchantBrowser(shop).log_in().client.get_cookie("merchant").value

    def status(where, cookie):
        client = where.client
        client.set_cookie("merchant", cookie)
        return client.get("/merchant").status_code

    same = reopened(shop, open_shops, **SET)
    assert [status(same, cookie) for cookie in (by_password, by_link)] == [200, 200]
    environ = {**ON, "BLOCKTILL_OWNER_PASSWORD": CHANGED[case]}
    other = reopened(shop, open_shops, **environ)
    assert [status(other, cookie) for cookie in (by_password, by_link)] == [401, 200]
    # Nobody finds the ended one in the list of devices either.
    db = other.service.db
    end_sessions_of_other_passwords(db, other.service.owner_password.scrypt)
    assert len(sessions_of(db, shop.merchant_id, shop.clock())) == 1


def test_the_database_has_no_hash_that_can_be_guessed_at_quickly(shop):
    logged_in(shop)
    ((stored,),) = shop.sql("SELECT password_scrypt FROM merchant_session").fetchall()
    password = shop.service.owner_password
    assert stored == password.scrypt and password.sha256.hex() != stored
    again = owner_password(PASSWORD, shop.service.db)
    assert again == password
    assert PASSWORD not in repr(shop.service.settings) + repr(password)


RETURNS = {
    "a page with a filter": ("/links?after=lnk_1", "../merchant/links?after=lnk_1"),
    "the first page": ("", "../merchant"),
}


@pytest.mark.parametrize("case", RETURNS)
def test_the_page_that_was_asked_for_is_shown_after_the_login(shop, case):
    path, expected = RETURNS[case]
    asked = Page(shop.client.get(f"/merchant{path}").text)
    to = {"to": asked.values["to"]} if "to" in asked.values else {}
    wrong = Page(enter(shop, "a guess", **to).text)
    assert wrong.values.get("to") == to.get("to")
    assert enter(shop, **to).headers["Location"] == expected


@pytest.mark.parametrize(
    "to",
    [
        "//evil.example/",
        "https://evil.example/",
        "/\\evil.example",
        "javascript:alert(1)",
        "/../..//evil.example",
        "/a\r\nSet-Cookie: a=b",
        "x" * 9000,
    ],
)
def test_no_login_leads_to_another_site(shop, to):
    answer = enter(shop, to=to)
    assert answer.status_code == 303
    assert answer.headers["Location"].startswith("../")
    assert re.fullmatch(r"[\w./?=&%+-]+", answer.headers["Location"])


def leads_to_shops(browser):
    return 'href="../merchant/shops"' in browser.page("/till").source


def test_of_several_merchants_the_owner_chooses_one_and_can_go_to_another(shop):
    other_id = shop.add_merchant("other")
    browser = MerchantBrowser(shop)
    answer = enter(shop, client=browser.client)
    assert answer.headers["Location"] == "../merchant/shops"
    page = browser.page("/shops")
    shown = [named["value"] for tag, named in page.tags if named.get("name") == "shop"]
    assert shown == [str(shop.merchant_id), str(other_id)]
    assert leads_to_shops(browser)
    old_token = browser.token()
    assert browser.post("/shops", shop=str(other_id)).status_code == 303
    assert "<bdi>other</bdi>" in browser.page().source
    # A form that another tab still shows is of the first shop.
    made = browser.post("/keys", old_token, scope="read", name="x", press="1")
    assert made.status_code == 403
    assert sessions_of(shop.service.db, shop.merchant_id, shop.clock()) == []
    assert browser.post("/shops", shop="7000").status_code == 404
    assert browser.post("/shops", shop="x").status_code == 404


def test_a_merchants_own_session_learns_of_no_other_merchant(shop):
    other_id = shop.add_merchant("other")
    for till_only in (False, True):
        browser = MerchantBrowser(shop).log_in(till_only=till_only)
        refused = {browser.get("/shops").status_code}
        refused.add(browser.post("/shops", shop=str(other_id)).status_code)
        assert refused <= {403, 404}
        assert not leads_to_shops(browser)


def test_with_one_merchant_nothing_is_chosen(shop):
    assert "shops-link" not in logged_in(shop).page().attributes


def is_owner(shop, browser):
    cookie = browser.client.get_cookie("merchant").value
    scrypt = shop.service.owner_password.scrypt
    now = shop.clock()
    row = session_of(shop.service.db, session_queries.SESSION, cookie, now, scrypt)
    return Visit(shop.service, Pages(shop.service), row, cookie, now).is_owner


OWNERS = {
    "the password": (logged_in, [True, True]),
    "a link": (lambda shop: MerchantBrowser(shop).log_in(), [True, False]),
    "a link of the till": (lambda shop: MerchantBrowser(shop).log_in(till_only=True),
        [False, False]),
}  # fmt: skip


@pytest.mark.parametrize("opened_by", OWNERS)
def test_a_session_is_the_owners_by_the_password_or_as_that_of_the_only_merchant(
    shop, opened_by
):
    open_it, expected = OWNERS[opened_by]
    browser = open_it(shop)
    alone = is_owner(shop, browser)
    shop.add_merchant("other")
    assert [alone, is_owner(shop, browser)] == expected


@pytest.fixture
def empty(tmp_path, ticker, clock):
    with open_shop(tmp_path, ticker.url, clock, empty=True, **SET) as shop:
        yield shop


def test_the_owners_password_takes_the_place_of_the_set_up_token(empty):
    db = empty.service.db
    client = empty.client
    assert "password" in Page(client.get("/merchant/start").text).attributes
    refused = enter(empty, "a guess", client)
    assert refused.status_code == 401 and "Location" not in refused.headers
    answer = enter(empty, client=client)
    path = answer.headers["Location"]
    assert answer.status_code == 303 and path.startswith("../merchant/start/")
    assert "Hafen" not in path and "Set-Cookie" not in answer.headers
    path = path.removeprefix("..")
    assert client.get(path).status_code == 200
    made = client.post(path, data={**TYPED, "same": "1"}, headers=FROM_THIS_SITE)
    assert made.status_code == 303 and len(db.rows(merchants.ALL)) == 1
    assert client.get("/merchant").status_code == 200
    cookie = client.get_cookie("merchant").value
    scrypt = empty.service.owner_password.scrypt
    assert session_of(db, session_queries.SESSION, cookie, empty.clock(), scrypt)
    assert not session_of(db, session_queries.SESSION, cookie, empty.clock(), "another")
    # From then on it opens that shop.
    assert enter(empty).headers["Location"] == "../merchant"


@pytest.mark.slow
def test_links_that_were_printed_before_end_where_it_is_set(empty, tmp_path):
    db = empty.service.db
    token = start_url(db, "").rpartition("/")[2]
    assert empty.client.get(f"/merchant/start/{token}").status_code == 200
    more = {"BLOCKTILL_SETUP_TOKEN": "a-token-of-the-platform"}
    with Live(empty, tmp_path, words=("run",), **more) as live:
        for text in (token, more["BLOCKTILL_SETUP_TOKEN"]):
            url = f"{live.url}/merchant/start/{text}"
            assert requests.get(url, timeout=60).status_code == 404
        said = "/merchant, with BLOCKTILL_OWNER_PASSWORD"
        assert "To begin, open " in live.log() and said in live.log()
        assert "/merchant/start/" not in live.log().partition("Starting")[0]


@pytest.mark.slow
def test_the_owners_password_is_in_no_log_and_in_no_list_of_processes(shop, tmp_path):
    password = "hunter2 and hunter2 again"
    file = tmp_path / "password"
    file.write_text(f"{password}\n", encoding="utf-8")
    environ = {name: text for name, text in shop.environ.items() if name not in SET}
    shop.environ = environ
    by_file = {"BLOCKTILL_OWNER_PASSWORD_FILE": str(file)}
    with Live(shop, tmp_path, words=("run",), **by_file) as live:
        url = f"{live.url}/merchant/login"
        for typed, status in (("hunter2", 401), (password, 200)):
            with requests.Session() as browser:
                answer = browser.post(url, data={"password": typed}, timeout=60)
                assert answer.status_code == status
        ids = [live.pid, *children_of(live.pid)]
        words = [word for pid in ids for word in command_of(pid)]
        assert "hunter2" not in live.log() + "".join(words)
        assert '"operation":"POST /merchant/login"' in live.log()
