"""Attacks on the merchant's pages: from another site, another merchant, the network.

Where a case is about every path, the paths come from the service itself.
"""

from functools import partial

import pytest
import requests

from btcpay.merchants import sessions as merchant_sessions
from btcpay.merchants.sessions import new_login, session_of
from btcpay.notify import receivers
from btcpay.values.times import to_ms
from btcpay.web import rate_limits
from storage.queries.sessions import BY_SECRET
from tests.support.builders import Live, at_once, dump, pay, until
from tests.support.merchant_browser import FROM_THIS_SITE, ON, MerchantBrowser
from tests.support.merchant_paths import filled, rules
from tests.support.payer import Page

HOSTILE = (
    "=1+1\"'><script>alert(1)</script><img src=x onerror=alert(1)> javascript:alert(1)"
)


@pytest.fixture
def shop(open_shops):
    """With the pages on, and a frame that the checkout pages would allow."""
    return open_shops(**ON, BLOCKTILL_FRAME_ANCESTORS="https://evil.example")


def belongings(shop, merchant_id, text):
    """One of everything that has an id, of this merchant, with this text; the ids."""
    key = shop.issue("write", merchant_id)
    fields = {
        "amount_usd": 25,
        "description": text,
        "customer_email": "customer@example.com",
    }
    invoice, late = (shop.post("/invoices", fields, key).json for _ in range(2))
    link = shop.post("/payment-links", {"title": text, "description": text}, key).json
    pay(shop, invoice)
    pay(shop, late, 1000)
    pay(shop, invoice, 5000)  # more than was asked for: it wants attention
    (payment, *_) = shop.get("/payments", key).json["data"]
    hook = receivers.add(
        shop.service.db, merchant_id, "https://x.example/", None, [], shop.clock()
    )
    MerchantBrowser(shop).log_in(merchant_id)
    (session, *_) = merchant_sessions.sessions_of(
        shop.service.db, merchant_id, shop.clock()
    )
    made = [it["id"] for it in (invoice, late, link, payment)]
    return [*made, session.id, shop.key_ids[key], hook.id]


def new_minute(shop):
    """So that no window is full."""
    shop.clock.move(seconds=61)


# The rest of what browsers say of other sites: tests/checkout/test_link_presses.
FOREIGN = ({"Sec-Fetch-Site": "cross-site"}, {"Origin": "https://evil.example"})


def test_no_form_is_taken_from_another_page_or_without_the_token_of_its_session(
    shop, browser
):
    own = browser.token()
    other = MerchantBrowser(shop).log_in(shop.add_merchant("other"))
    cases = {
        "another site": (FOREIGN[0], own),
        "another origin": (FOREIGN[1], own),
        "no token": (FROM_THIS_SITE, ""),
        "a token that somebody made up": (FROM_THIS_SITE, "0" * 64),
        "letters that no token has": (FROM_THIS_SITE, "\u20ac"),
        "that of another session of the merchant": (
            FROM_THIS_SITE,
            MerchantBrowser(shop).log_in().token(),
        ),
        "of another merchant": (FROM_THIS_SITE, other.token()),
    }
    ids = [session.id for session in sessions(shop)]
    before = dump(shop)
    paths = [path for rule in rules(shop, "POST") for path in filled(rule, ids[:1])]
    assert "/keys" in paths and f"/sessions/{ids[0]}/end" in paths
    for path in (*paths, f"/sessions/end-others?token={own}"):
        for name, (headers, token) in cases.items():
            new_minute(shop)
            data = {"token": token}
            answer = browser.client.post(f"/merchant{path}", data=data, headers=headers)
            refused = (
                answer.status_code == 403
                and "did not come from this page" in answer.text
            )
            assert refused, (path, name)
    assert dump(shop) == before
    assert browser.get().status_code == 200


def sessions(shop):
    return merchant_sessions.sessions_of(
        shop.service.db, shop.merchant_id, shop.clock()
    )


def test_whoever_is_not_logged_in_gets_nothing_and_changes_nothing(shop):
    ids = belongings(shop, shop.merchant_id, "Tea of mine")
    client = shop.client
    before = dump(shop)
    for method in ("GET", "POST"):
        for path in (
            path for rule in rules(shop, method) for path in filled(rule, ids)
        ):
            answer = client.open(
                f"/merchant{path}", method=method, headers=FROM_THIS_SITE
            )
            assert answer.status_code == 401, path
            assert "Tea of mine" not in answer.text and ids[0] not in answer.text
            assert "Set-Cookie" not in answer.headers
    assert dump(shop) == before


def test_what_another_merchant_has_is_not_found_on_any_path(shop, browser):
    ids = belongings(shop, shop.add_merchant("other"), "Tea of the other")
    token = browser.token()
    before = dump(shop)
    for method in ("GET", "POST"):
        for rule in (rule for rule in rules(shop, method) if "<" in rule):
            for path in filled(rule, ids):
                new_minute(shop)
                fields = {"token": token, "reason": "mine now", "amount": "5"}
                sent = (
                    {"data": fields, "headers": FROM_THIS_SITE}
                    if method == "POST"
                    else {}
                )
                answer = browser.client.open(f"/merchant{path}", method=method, **sent)
                assert answer.status_code == 404, f"{method} {path}"
                assert (
                    "Tea of the other" not in answer.text
                    and "customer@" not in answer.text
                )
    assert dump(shop) == before


@pytest.mark.slow
def test_no_list_or_search_shows_what_another_merchant_has(shop, browser):
    ids = belongings(shop, shop.add_merchant("other"), "Tea of the other")
    words = [*ids, "Tea of the other", "customer@example.com"]
    for rule in (rule for rule in rules(shop, "GET") if "<" not in rule):
        for names in (("q",), ("after", "older", "last", "merchant")):
            for word in words if names == ("q",) else ids:
                shop.clock.move(seconds=1)
                asked = dict.fromkeys(names, word)
                answer = browser.get(rule, query_string=asked)
                assert answer.status_code in (200, 303, 400, 404), f"{rule}?{asked}"
                rest = answer.text.replace(word, "")
                assert not any(other in rest for other in words if other not in word), (
                    rule
                )


def test_each_login_has_a_new_cookie_and_the_one_before_is_worth_nothing(shop):
    """Session fixation: the attacker knows the planted one."""
    browser = MerchantBrowser(shop)
    old = "planted" * 6
    browser.client.set_cookie("merchant", old)
    for _ in range(2):
        browser.log_in()
        new = browser.client.get_cookie("merchant").value
        assert (
            new != old
            and session_of(shop.service.db, BY_SECRET, old, shop.clock()) is None
        )
        old = new
    assert len(sessions(shop)) == 1


def test_of_many_who_press_one_links_button_at_once_one_gets_in(shop):
    db = shop.service.db
    secret = new_login(db, shop.merchant_id, shop.clock())

    def press(_):
        answer = shop.client.post(f"/merchant/login/{secret}", headers=FROM_THIS_SITE)
        db.close()
        return answer.status_code

    assert sorted(at_once(8, press)) == [303] + [410] * 7 and len(sessions(shop)) == 1


def test_a_session_lives_on_by_being_used_and_ends_after_thirty_days_without(
    shop, browser
):
    def is_noted(used_at):
        return sessions(shop)[0].last_used_ms == used_at

    shop.clock.move(days=-2)
    assert browser.get().status_code == 200  # a clock that went back logs nobody out
    shop.clock.move(days=2)
    for _ in range(2):
        shop.clock.move(days=29)
        assert browser.get().status_code == 200
        until(partial(is_noted, to_ms(shop.clock())), "the use to be noted")
    assert browser.client.get_cookie("merchant").max_age == 30 * 86_400
    shop.clock.move(days=30)
    assert browser.get().status_code == 401


@pytest.mark.parametrize(
    ("base_url", "name", "secure"),
    [
        ("https://pay.example.com", "__Host-merchant", True),
        ("http://127.0.0.1:8000", "merchant", False),
    ],
    ids=["over https", "over http, on this machine"],
)
def test_the_cookie_is_the_browsers_alone(base_url, name, secure, open_shops):
    shop = open_shops(**ON, BLOCKTILL_BASE_URL=base_url)
    secret = new_login(shop.service.db, shop.merchant_id, shop.clock())
    answer = shop.client.post(f"/merchant/login/{secret}", headers=FROM_THIS_SITE)
    value, *flags = answer.headers["Set-Cookie"].split("; ")
    assert value.startswith(f"{name}=") and len(value) == len(name) + 1 + 43
    assert {"HttpOnly", "SameSite=Strict", "Path=/", f"Max-Age={30 * 86_400}"} <= set(
        flags
    )
    assert ("Secure" in flags) is secure and not any(
        flag.startswith("Domain") for flag in flags
    )


def test_wrong_cookies_and_links_are_throttled_by_address_and_nobody_else_is(
    shop, browser
):
    stranger = shop.client
    limit = rate_limits.FAILED_AUTH.limit
    found = []
    for number in range(limit + 3):
        stranger.set_cookie("merchant", f"wrong{number}")
        found.append(stranger.get("/merchant").status_code)
    assert found == [401] * limit + [429] * 3
    assert browser.get().status_code == 200  # of the same address
    assert MerchantBrowser(shop).log_in().get().status_code == 200
    assert shop.get("/balance").status_code == 200
    new_minute(shop)
    for text in ("\x80\xff", "a" * 4000, "..%2f", "' OR 1=1 --", "\u202e", "=", ";;"):
        raw = text.encode("utf-8", "surrogateescape").decode("latin-1")
        answer = shop.client.get("/merchant", headers={"Cookie": f"merchant={raw}"})
        assert answer.status_code == 401, text
    new_minute(shop)
    statuses = [
        shop.client.post(f"/merchant/login/x{n}").status_code for n in range(limit + 2)
    ]
    assert statuses == [410] * limit + [429] * 2


def test_no_answer_may_be_kept_framed_or_run_what_a_customer_wrote(shop, browser):
    """Every answer to a GET that there is, of a merchant whose customers write what they like."""
    ids = belongings(shop, shop.merchant_id, HOSTILE)
    answers = {"unauthorized": shop.client.get("/merchant")}
    answers["gone"] = shop.client.get("/merchant/login/x")
    paths = [path for rule in rules(shop, "GET") for path in filled(rule, ids)]
    for path in (*paths, "/unknown", "/invoices/inv_unknown"):
        new_minute(shop)
        answers[path] = browser.get(path)
    for path, answer in answers.items():
        headers = answer.headers
        assert headers["Cache-Control"] == "no-store", path
        policy = headers["Content-Security-Policy"]
        assert (
            policy.endswith("frame-ancestors 'none'") and "default-src 'none'" in policy
        )
        assert headers["X-Content-Type-Options"] == "nosniff"
        assert headers["Cross-Origin-Resource-Policy"] == "same-origin"
        assert headers["Referrer-Policy"] in ("same-origin", "strict-origin")
        if answer.mimetype == "text/html":
            assert_is_text(answer.text, path)


def assert_is_text(html, path):
    for tag, named in Page(html).tags:
        assert tag not in ("style", "iframe", "object") and not {
            "style",
            "srcdoc",
        } & set(named)
        assert [name for name in named if name.startswith("on")] == [], path
        for name in ("href", "src", "action"):
            assert (
                not (named.get(name) or "").strip().startswith(("javascript:", "data:"))
            )
    assert "<script>alert" not in html and "<img src=x" not in html, path


def test_another_site_logs_nobody_in_to_a_shop_of_its_own(shop):
    """Anybody who then works there would work for the attacker."""
    secret = new_login(shop.service.db, shop.merchant_id, shop.clock())
    for headers in FOREIGN:
        answer = shop.client.post(f"/merchant/login/{secret}", headers=headers)
        assert answer.status_code == 403 and "Set-Cookie" not in answer.headers
    # still unused; nor is it sent along
    answer = shop.client.get(f"/merchant/login/{secret}")
    assert answer.status_code == 200 and secret not in answer.text
    assert answer.headers["Referrer-Policy"] == "strict-origin"


def test_no_secret_stands_in_a_log(shop, tmp_path):
    db = shop.service.db
    with Live(shop, tmp_path) as live:
        secret, unused = (
            new_login(db, shop.merchant_id, shop.clock()) for _ in range(2)
        )
        session = requests.Session()
        session.get(f"{live.url}/merchant/login/{unused}", timeout=60)
        session.post(
            f"{live.url}/merchant/login/{secret}", headers=FROM_THIS_SITE, timeout=60
        )
        cookie = session.cookies["merchant"]
        page = session.get(f"{live.url}/merchant/sessions", timeout=60).text
        token = Page(page).values["token"]
        end = f"{live.url}/merchant/sessions/end-others"
        session.post(end, data={"token": token}, timeout=60, allow_redirects=False)
        session.get(f"{live.url}/merchant/login/{secret}", timeout=60)
        log = live.log()
    assert log.count('"operation":"GET /merchant/login/<secret>"') == 2
    assert (
        log.count('"key_id":"ses_') == 3
    )  # who logged in, looked at the devices, logged others out
    assert not any(text in log for text in (secret, unused, cookie, token))
