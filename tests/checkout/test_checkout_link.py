"""The page of a payment link: what it offers and refuses, and the way back to one's invoice."""

import hashlib
import re
import threading
from typing import Any

import pytest
from builders import Clock, Shop, TickerServer, dump, open_shop
from databases import raw
from itsdangerous import URLSafeSerializer
from payer import Page, count, made, press
from werkzeug.test import TestResponse

from btcpay.checkout.amounts import parse_usd
from btcpay.money import btc_shown
from storage.database import open_database
from storage.queries import invoices, links, meta


def test_a_fixed_link_shows_title_description_price_and_one_button(shop: Shop) -> None:
    link = shop.link(amount_usd=1200, title="Membership", description="One year")
    page = Page(shop.client.get(f"/link/{link['id']}").text)
    assert page.texts["title"] == "Membership" and page.texts["description"] == "One year"
    assert page.texts["amount"] == "1,200.00 USD"
    assert [tag for tag, _ in page.tags].count("button") == 1 and "amount_usd" not in page.texts


@pytest.mark.parametrize(
    ("script_type", "least"), [("p2wpkh", 294), ("p2sh-p2wpkh", 540), ("p2pkh", 546)]
)
def test_a_price_below_what_can_be_sent_is_said_before_the_payer_tries(
    shop: Shop, script_type: str, least: int
) -> None:
    shop.sql(f"UPDATE merchant SET script_type = '{script_type}'")  # noqa: S608
    low, enough = (shop.link(amount_usd=sats * 0.0006) for sats in (least - 1, least))
    told = Page(shop.client.get(f"/link/{low['id']}").text).texts["dust"]
    assert f"least that can be sent: {btc_shown(least)} BTC" in told
    assert "dust" not in Page(shop.client.get(f"/link/{enough['id']}").text).texts
    invoice = made(press(shop.client, low))
    page = Page(shop.client.get(f"/pay/{invoice}").text)
    assert page.texts["amount-btc"] == btc_shown(least) and "dust" in page.texts


def test_a_link_that_is_sent_has_a_title_and_a_preview(open_shops) -> None:
    shop = open_shops(BTCPAY_BASE_URL="https://pay.example/till")
    link = shop.link(amount_usd=1200, title="Tea & cake", description="One\nyear")
    page = Page(shop.client.get(f"/link/{link['id']}").text)
    assert "<title>Tea &amp; cake \u00b7 shop</title>" in page.source
    told = {one["property"]: one["content"] for tag, one in page.tags if "property" in one}
    assert told == {
        "og:type": "website",
        "og:url": f"https://pay.example/till/link/{link['id']}",
        "og:site_name": "shop",
        "og:title": "Tea & cake",
        "og:description": "1,200.00 USD \u00b7 One year",
    }


def test_without_a_price_a_link_is_shown_all_the_same(shop: Shop, ticker: TickerServer) -> None:
    link = shop.link(amount_usd=0.01)
    ticker.status = 500
    page = Page(shop.client.get(f"/link/{link['id']}").text)
    assert "dust" not in page.texts and "submit" in page.texts


def test_a_price_that_is_no_dust_is_not_compared(shop: Shop, ticker: TickerServer) -> None:
    link = shop.link(amount_usd=5)
    asked = ticker.asked
    shop.client.get(f"/link/{link['id']}")
    assert ticker.asked == asked


def test_a_flexible_link_has_an_amount_field_with_its_bounds(shop: Shop) -> None:
    link = shop.link(min_amount_usd=5, max_amount_usd=50)
    page = Page(shop.client.get(f"/link/{link['id']}").text)
    field = page.attributes["amount_usd"]
    assert field["aria-describedby"] == "amount-bounds" and "aria-invalid" not in field
    assert page.texts["amount-bounds"] == "From 5.00 USD to 50.00 USD"
    assert page.texts["title"] == "Payment"


@pytest.mark.parametrize("method", ["GET", "HEAD"])
def test_looking_at_a_link_writes_nothing(shop: Shop, method: str) -> None:
    link = shop.link(amount_usd=5)
    before = dump(shop)
    for _ in range(3):
        response = shop.client.open(f"/link/{link['id']}", method=method)
        assert response.status_code == 200 and "Set-Cookie" not in response.headers
    assert dump(shop) == before


def test_pressing_makes_the_invoice_and_leads_to_it(shop: Shop) -> None:
    link = shop.link(title="Tip jar", min_amount_usd=1)
    invoice_id = made(press(shop.client, link, "12.50"))
    invoice = shop.get(f"/invoices/{invoice_id}").json
    assert (invoice["amount_usd_quote"], invoice["payment_link_id"]) == (12.5, link["id"])
    assert invoice["description"] == "Tip jar" and invoice["expires_at"] is not None


@pytest.mark.parametrize(
    ("typed", "usd"),
    [
        pytest.param("25", "25", id="whole dollars"),
        pytest.param(" 19.90 ", "19.90", id="a point"),
        pytest.param("19,90", "19.90", id="a comma before cents"),
        pytest.param("\uff12\uff15", "25", id="full-width digits"),
        pytest.param("0.001", "0.001", id="less than a cent"),
        pytest.param("1,000", None, id="a comma before three digits means two things"),
        pytest.param("1.000", None, id="and so does a point"),
        pytest.param("1,000.00", None, id="grouping"),
        pytest.param("", None, id="nothing"),
        pytest.param("-5", None, id="a negative amount"),
        pytest.param("1e3", None, id="an exponent"),
        pytest.param("NaN", None, id="not a number"),
        pytest.param("$5", None, id="a dollar sign"),
        pytest.param("5.", None, id="a point and nothing"),
        pytest.param("\u0665", None, id="digits of another script"),
        pytest.param("9" * 10_000, None, id="ten thousand digits"),
    ],
)
def test_what_a_visitor_types_is_read_as_dollars_or_not_at_all(typed: str, usd: str | None) -> None:
    amount = parse_usd(typed)
    assert (None if amount is None else str(amount)) == usd


@pytest.mark.parametrize(
    ("typed", "reason"),
    [
        pytest.param("", "Enter an amount such as 25 or 19.90.", id="nothing"),
        pytest.param('"><b>5', "Enter an amount such as 25 or 19.90.", id="markup"),
        pytest.param("4.99", "Enter an amount from 5.00 USD to 50.00 USD.", id="too little"),
        pytest.param("50.01", "Enter an amount from 5.00 USD to 50.00 USD.", id="too much"),
    ],
)
def test_a_wrong_amount_comes_back_with_the_reason_beside_the_field(
    shop: Shop, typed: str, reason: str
) -> None:
    response = press(shop.client, shop.link(min_amount_usd=5, max_amount_usd=50), typed)
    page = Page(response.text)
    field = page.attributes["amount_usd"]
    assert response.status_code == 400 and count(shop) == 0
    assert field["aria-invalid"] == "true" and field["value"] == typed
    assert field["aria-describedby"] == "amount-bounds amount-problem"
    assert page.texts["amount-problem"] == reason
    assert "b" not in [tag for tag, _ in page.tags]


@pytest.mark.parametrize("typed", ["5", "50"])
def test_the_bounds_themselves_are_taken(shop: Shop, typed: str) -> None:
    made(press(shop.client, shop.link(min_amount_usd=5, max_amount_usd=50), typed))


def test_without_a_price_the_page_says_what_to_do(shop: Shop, ticker: TickerServer) -> None:
    ticker.status = 503
    response = press(shop.client, shop.link(), "7.50")
    page = Page(response.text)
    assert response.status_code == 503 and count(shop) == 0
    assert "exchange rate is not available" in page.texts["problem"]
    assert page.attributes["amount_usd"]["value"] == "7.50"  # nothing has to be typed again
    assert page.texts["submit"] == "Try again"


def test_an_inactive_link_answers_410_and_says_whom_to_ask(shop: Shop) -> None:
    link = shop.link(amount_usd=5)
    shop.service.db.run(links.SET_STATUS, id=link["id"], status="inactive")
    for response in (shop.client.get(f"/link/{link['id']}"), press(shop.client, link)):
        assert response.status_code == 410 and "<form" not in response.text
        assert "ask the seller" in response.text
    assert count(shop) == 0


def test_a_visitor_who_makes_too_many_is_told_when_to_come_back(open_shops) -> None:
    shop = open_shops(BTCPAY_LINK_INVOICES_PER_VISITOR="2")
    link = shop.link(amount_usd=5)
    for _ in range(2):
        made(press(shop.client, link))
    response = press(shop.client, link)
    assert response.status_code == 429 and "in an hour" in Page(response.text).texts["problem"]
    assert 1 <= int(response.headers["Retry-After"]) <= 3600
    made(press(shop.client, link, environ_base={"REMOTE_ADDR": "198.51.100.7"}))


def test_a_link_with_too_many_unpaid_invoices_makes_no_more(open_shops) -> None:
    shop = open_shops(BTCPAY_LINK_OPEN_INVOICES="1")
    link = shop.link(amount_usd=5)
    made(press(shop.client, link))
    response = press(shop.client, link)
    assert response.status_code == 429 and "unpaid invoices" in Page(response.text).texts["problem"]
    assert count(shop) == 1


def test_the_same_browser_comes_back_to_its_open_invoice(shop: Shop) -> None:
    link, client = shop.link(), shop.client
    first = made(press(client, link, "5"))
    assert made(press(client, link, "5.00")) == first
    second = made(press(client, link, "6"))
    assert second != first
    assert made(press(client, link, "5")) == first  # back and forth between amounts
    assert count(shop) == 2


def test_coming_back_needs_no_price_and_counts_for_no_limit(
    open_shops, ticker: TickerServer
) -> None:
    shop = open_shops(BTCPAY_LINK_INVOICES_PER_VISITOR="1", BTCPAY_PRICE_MAX_AGE_S="1")
    link, client = shop.link(amount_usd=5), shop.client
    first = made(press(client, link))
    ticker.status = 503
    assert [made(press(client, link)) for _ in range(3)] == [first] * 3


def test_another_browser_gets_an_invoice_of_its_own(shop: Shop) -> None:
    link = shop.link(amount_usd=5)
    assert made(press(shop.client, link)) != made(press(shop.client, link))


def test_a_finished_or_overdue_invoice_is_not_come_back_to(shop: Shop) -> None:
    link, client = shop.link(amount_usd=5), shop.client
    first = made(press(client, link))
    values = dict.fromkeys(("tx_hash", "paid_at", "settled_reason"))
    shop.service.db.run(
        invoices.FINISH, id=first, from_status="open", status="canceled", finished_at=1, **values
    )
    second = made(press(client, link))
    assert second != first
    shop.clock.move(minutes=60)
    assert made(press(client, link)) not in (first, second)


def test_the_cookie_is_for_this_link_alone_and_short_lived(open_shops) -> None:
    shop = open_shops(BTCPAY_BASE_URL="https://shop.example.com/till")
    link = shop.link(amount_usd=5)
    cookie = press(shop.client, link).headers["Set-Cookie"]
    parts = set(cookie.split("; ")[1:])
    path = f"Path=/till/link/{link['id']}"
    assert {"HttpOnly", "SameSite=Lax", "Secure", "Max-Age=3600", path} <= parts


def test_over_plain_http_the_cookie_can_be_sent(shop: Shop) -> None:
    assert "Secure" not in press(shop.client, shop.link(amount_usd=5)).headers["Set-Cookie"]


def cookie_key(shop: Shop) -> str:
    return meta.get(shop.service.db, meta.Key.COOKIE_KEY)


def forge(key: str, salt: str, ids: Any) -> str:
    return str(
        URLSafeSerializer(key, salt=salt, signer_kwargs={"digest_method": hashlib.sha256}).dumps(
            ids
        )
    )


def press_with(shop: Shop, link: dict[str, Any], cookie: str) -> TestResponse:
    headers = {"Cookie": f"invoices={cookie}".encode().decode("latin-1")}
    return press(shop.app.test_client(use_cookies=False), link, headers=headers)


@pytest.mark.parametrize(
    "kind", ["another key", "another link", "garbage", "cut", "no list of ids"]
)
def test_a_cookie_that_is_not_ours_for_this_link_is_nothing(shop: Shop, kind: str) -> None:
    link, other = shop.link(amount_usd=5), shop.link(amount_usd=5)
    victim = made(press(shop.client, link))
    good = forge(cookie_key(shop), link["id"], [victim])
    forged = {
        "another key": forge("x" * 43, link["id"], [victim]),
        "another link": forge(cookie_key(shop), other["id"], [victim]),
        "garbage": "\u00e9;.." * 500,
        "cut": good[:-1],
        "no list of ids": forge(cookie_key(shop), link["id"], ["../../etc", "inv_'"]),
    }[kind]
    assert made(press_with(shop, link, forged)) != victim
    assert made(press_with(shop, link, good)) == victim


def test_an_invoice_of_another_link_is_not_come_back_to_even_if_signed(shop: Shop) -> None:
    link, other = shop.link(amount_usd=5), shop.link(amount_usd=5)
    foreign = made(press(shop.client, other))
    cookie = forge(cookie_key(shop), link["id"], [foreign])
    assert made(press_with(shop, link, cookie)) != foreign


def test_the_key_of_the_cookies_is_made_once_whoever_comes_first(shop: Shop) -> None:
    url = shop.environ["BTCPAY_DATABASE_URL"]
    barrier, kept = threading.Barrier(8), []

    def keep(number: int) -> None:
        db = open_database(url)
        barrier.wait()
        kept.append(meta.keep(db, meta.Key.COOKIE_KEY, f"key {number}"))
        db.close()

    threads = [threading.Thread(target=keep, args=[number]) for number in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(kept) == 8 and set(kept) == {cookie_key(shop)}


def test_a_restart_knows_the_cookies_from_before(shop: Shop) -> None:
    link, client = shop.link(amount_usd=5), shop.client
    first = press(client, link)
    with raw(shop.environ["BTCPAY_DATABASE_URL"]) as connection:
        row = connection.execute("SELECT value FROM meta WHERE name = 'cookie_key'").fetchone()
    key = row["value"]
    assert len(key) == 43 and key not in first.headers["Set-Cookie"]


def test_two_databases_have_two_keys(tmp_path, ticker: TickerServer, clock: Clock) -> None:
    found = set()
    for name in ("one", "two"):
        (tmp_path / name).mkdir()
        with open_shop(tmp_path / name, ticker.url, clock) as shop:
            press(shop.client, shop.link(amount_usd=5))
            found.add(cookie_key(shop))
    assert len(found) == 2


@pytest.mark.parametrize(
    "text", ["<script>alert(1)</script>", '"><img src=x>', "{{ 7 * 7 }}", "\u202egnorw"]
)
def test_title_and_description_are_text_and_never_markup(shop: Shop, text: str) -> None:
    link = shop.link(title=text, description=text)
    page = Page(shop.client.get(f"/link/{link['id']}").text)
    assert page.texts["title"] == text and page.texts["description"] == text
    assert page.attributes["title"]["dir"] == page.attributes["description"]["dir"] == "auto"
    assert not {"img"} & {tag for tag, _ in page.tags}
    assert not {"<", "\u202e"} & set(re.search("<title>(.*?)</title>", page.source)[1])
    assert not re.search(r"<meta[^>]*\u202e", page.source)
