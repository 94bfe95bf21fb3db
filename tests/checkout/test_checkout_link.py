"""The page of a payment link: what it offers and refuses, and the way back to one's invoice."""

import hashlib
import re
from decimal import Decimal

import pytest
from itsdangerous import URLSafeSerializer

from btcpay.invoices.links import new_link
from btcpay.values.errors import CommandError
from btcpay.values.ids import new_id
from btcpay.values.money import CENT, full_btc_text
from storage.database import open_database
from storage.queries import links, meta
from storage.statement import as_dict
from tests.support.accounts import ACCOUNTS
from tests.support.builders import at_once, dump, finish
from tests.support.payer import Page, count, made, press


def test_a_fixed_link_shows_title_price_and_one_button_and_a_preview_where_it_is_sent(
    open_shops,
):
    shop = open_shops(BLOCKTILL_BASE_URL="https://pay.example/till")
    link = shop.link(amount_usd=1200, title="Tea & cake", description="One\nyear")
    page = Page(shop.client.get(f"/link/{link['id']}").text)
    assert (
        page.texts["title"] == "Tea & cake" and page.texts["description"] == "One\nyear"
    )
    assert page.texts["price"] == "$1,200.00"
    assert [tag for tag, _ in page.tags].count(
        "button"
    ) == 1 and "amount" not in page.texts
    assert "<title>Tea &amp; cake \u00b7 shop</title>" in page.source
    preview = {
        one["property"]: one["content"] for tag, one in page.tags if "property" in one
    }
    assert preview == {
        "og:type": "website",
        "og:url": f"https://pay.example/till/link/{link['id']}",
        "og:site_name": "shop",
        "og:title": "Tea & cake",
        "og:description": "$1,200.00 \u00b7 One year",
    }


@pytest.mark.parametrize(
    ("form", "least_usd"),
    [
        ("p2wpkh", "0.18"),
        ("p2sh", "0.33"),
        ("p2pkh", "0.33"),
        ("p2tr", "0.20"),
        ("p2wsh", "0.20"),
    ],
)
def test_a_price_below_what_can_be_sent_is_raised_and_a_typed_one_refused(
    shop, form, least_usd
):
    descriptor, least = ACCOUNTS[form]
    shop.sql(f"UPDATE merchant SET descriptor = '{descriptor}'")  # noqa: S608
    low = shop.link(amount_usd=(least - 1) * 0.0006)
    flexible = shop.link()
    no_more = shop.link(max_amount_usd=0.1)
    refused = press(shop.client, flexible, str(Decimal(least_usd) - CENT))
    assert refused.status_code == 400 and count(shop) == 0
    assert f"at least ${least_usd}" in Page(refused.text).texts["amount-problem"]
    made(press(shop.client, no_more, "0.1"))  # the seller allows no more than dust
    page = Page(shop.client.get(f"/pay/{made(press(shop.client, low))}").text)
    assert page.texts["amount-btc"] == full_btc_text(least) and "dust" in page.texts
    page = Page(
        shop.client.get(f"/pay/{made(press(shop.client, flexible, least_usd))}").text
    )
    assert "dust" not in page.texts


def test_looking_at_a_link_writes_nothing(shop):
    link = shop.link(amount_usd=5)
    before = dump(shop)
    for method in ("GET", "HEAD"):
        headers = {
            "Cookie": "invoices=IkEi.B"
        }  # as if signed, before anything ever was
        response = shop.client.open(
            f"/link/{link['id']}", method=method, headers=headers
        )
        assert response.status_code == 200 and "Set-Cookie" not in response.headers
    assert dump(shop) == before


def test_pressing_makes_the_invoice_and_leads_to_it(shop):
    link = shop.link(title="Tip jar", min_amount_usd=1)
    invoice_id = made(press(shop.client, link, "12.50"))
    invoice = shop.get(f"/invoices/{invoice_id}").json
    assert (invoice["amount_usd_quote"], invoice["payment_link_id"]) == (
        12.5,
        link["id"],
    )
    assert invoice["description"] == "Tip jar" and invoice["expires_at"] is not None


NO_AMOUNT = "such as 25 or 19.90."
OUTSIDE = "from $5.00 to $50.00."
WRONG = {"": NO_AMOUNT, '"><b>5': NO_AMOUNT, "4.99": OUTSIDE, "50.01": OUTSIDE}


def test_an_amount_has_its_bounds_and_a_wrong_one_comes_back_with_the_reason_beside_it(
    shop,
):
    link = shop.link(min_amount_usd=5, max_amount_usd=50)
    page = Page(shop.client.get(f"/link/{link['id']}").text)
    field = page.attributes["amount"]
    assert field["aria-describedby"] == "amount-bounds" and "aria-invalid" not in field
    assert page.texts["amount-bounds"] == "From $5.00 to $50.00"
    assert page.texts["title"] == "Payment"
    for typed, reason in WRONG.items():
        response = press(shop.client, link, typed)
        page = Page(response.text)
        field = page.attributes["amount"]
        assert response.status_code == 400 and count(shop) == 0
        assert field["aria-invalid"] == "true" and field["value"] == typed
        assert field["aria-describedby"] == "amount-bounds amount-problem"
        assert page.texts["amount-problem"] == f"Enter an amount {reason}"
        assert "b" not in [tag for tag, _ in page.tags]
    made(press(shop.client, link, "5")), made(press(shop.client, link, "50"))


def test_suggested_amounts_are_buttons_of_a_form_of_their_own(shop):
    """The field's form has one button: Enter in the field pays what was typed."""
    link = suggesting(shop, "5", "19.90", min_amount_usd=1)
    page = Page(shop.client.get(f"/link/{link['id']}").text)
    offered = [
        tag["value"] for name, tag in page.tags if name == "button" and "value" in tag
    ]
    assert offered == ["5", "19.90"]
    assert page.texts["suggested"].split() == ["$5.00", "$19.90"]
    assert page.source.partition('id="pay"')[2].count("<button") == 1
    invoice = shop.get(f"/invoices/{made(press(shop.client, link, '19.90'))}").json
    assert invoice["amount_usd_quote"] == 19.9


def suggesting(shop, *amounts, **fields):
    mode = "fixed" if "amount_usd" in fields else "flexible"
    wanted = {"amount_mode": mode, "suggested": list(map(Decimal, amounts))} | fields
    with shop.service.db.write():
        return as_dict(
            new_link(shop.service.db, shop.clock(), shop.merchant_id, wanted)
        )


NOT_SUGGESTED = {
    "of a fixed link": ({"amount_usd": 5}, ["5"], "fixed price"),
    "below its least": ({"min_amount_usd": 5}, ["4.99"], "bounds"),
    "above its most": ({"max_amount_usd": 5}, ["5.01"], "bounds"),
    "nothing": ({}, ["0"], "bounds"),
    "twice": ({}, ["5", "5.00"], "each once"),
    "too many": ({}, list("1234567"), "at most 6"),
}


@pytest.mark.parametrize("case", NOT_SUGGESTED)
def test_amounts_that_a_link_cannot_take_are_not_suggested(shop, case):
    fields, amounts, reason = NOT_SUGGESTED[case]
    with pytest.raises(CommandError, match=reason):
        suggesting(shop, *amounts, **fields)


def test_the_page_is_told_the_price_and_how_long_it_is_one(shop, ticker):
    path = f"/link/{shop.link()['id']}/price"
    asked = ticker.asked
    shop.client.get(path.removesuffix("/price"))
    assert ticker.asked == asked  # the page itself waits for no ticker
    rates = [shop.client.get(path).json for _ in range(3)]
    assert {one["price"] for one in rates} == {"60000.00"} and ticker.asked == asked + 1
    assert 110_000 < rates[-1]["good_for_ms"] <= rates[0]["good_for_ms"] <= 120_000
    assert shop.client.get(f"/link/{new_id('lnk')}/price").status_code == 404


def test_without_a_price_the_page_says_what_to_do(shop, ticker):
    link = shop.link()
    ticker.status = 503
    price = shop.client.get(f"/link/{link['id']}/price")
    nothing = {"price": None, "good_for_ms": 0}
    assert (price.status_code, price.json) == (200, nothing)
    response = press(shop.client, link, "7.50")
    page = Page(response.text)
    assert response.status_code == 503 and count(shop) == 0
    assert "There is no exchange rate right now" in page.texts["problem"]
    assert page.attributes["amount"]["value"] == "7.50"  # nothing has to be typed again
    assert page.texts["submit"] == "Try again"


def test_an_inactive_link_answers_410_and_says_whom_to_ask(shop):
    link = shop.link(amount_usd=5)
    shop.service.db.run(links.SET_STATUS, id=link["id"], status="inactive")
    for response in (shop.client.get(f"/link/{link['id']}"), press(shop.client, link)):
        assert response.status_code == 410 and "<form" not in response.text
        assert "ask the seller" in response.text
    assert count(shop) == 0


def test_too_many_invoices_of_a_visitor_or_of_a_link_are_refused_with_the_reason(
    open_shops,
):
    limits = {
        "BLOCKTILL_LINK_INVOICES_PER_VISITOR": "2",
        "BLOCKTILL_LINK_OPEN_INVOICES": "3",
    }
    shop = open_shops(**limits)
    link = shop.link(amount_usd=5)
    elsewhere = {"REMOTE_ADDR": "2001:db8:0:2::1"}
    network = [{"REMOTE_ADDR": f"2001:db8:0:1::{number}"} for number in range(3)]
    for address in network[:2]:
        made(press(shop.client, link, environ_base=address))
    response = press(shop.client, link, environ_base=network[2])
    assert (
        response.status_code == 429
        and "in an hour" in Page(response.text).texts["problem"]
    )
    assert 1 <= int(response.headers["Retry-After"]) <= 3600
    made(press(shop.client, link, environ_base=elsewhere))
    response = press(shop.client, link, environ_base=elsewhere)
    assert (
        response.status_code == 429
        and "open payments" in Page(response.text).texts["problem"]
    )
    assert count(shop) == 3


def test_the_page_leads_a_browser_on_to_an_open_invoice_that_it_has_not_paid(shop):
    link = shop.link()
    client = shop.client

    def page(query=""):
        return Page(client.get(f"/link/{link['id']}{query}").text)

    first = made(press(client, link, "12.50"))
    assert page("?lang=de").attributes["continue"]["href"] == f"../pay/{first}?lang=de"
    assert "12,50" in page("?lang=de").texts["unpaid"]
    assert "unpaid" not in Page(shop.client.get(f"/link/{link['id']}").text).texts
    finish(shop, {"id": first}, "canceled")
    assert "unpaid" not in page().texts
    made(press(client, link, "12.50"))
    assert "unpaid" in page().texts
    shop.clock.move(minutes=60)
    assert "unpaid" not in page().texts


def test_the_cookie_is_for_this_link_alone_and_short_lived(shop, open_shops):
    sent = press(shop.client, shop.link(amount_usd=5)).headers["Set-Cookie"]
    assert "Secure" not in sent and cookie_key(shop) not in sent
    shop = open_shops(BLOCKTILL_BASE_URL="https://shop.example.com/till")
    link = shop.link(amount_usd=5)
    parts = press(shop.client, link).headers["Set-Cookie"].split("; ")[1:]
    path = f"Path=/till/link/{link['id']}"
    assert {"HttpOnly", "SameSite=Lax", "Secure", "Max-Age=3600", path} <= set(parts)


def cookie_key(shop):
    return meta.get(shop.service.db, meta.Key.COOKIE_KEY)


def forge(key, salt, said):
    signer = URLSafeSerializer(
        key, salt=salt, signer_kwargs={"digest_method": hashlib.sha256}
    )
    return str(signer.dumps(said))


def led_to(shop, link, cookie):
    """True if the page leads on to an unpaid invoice of this cookie."""
    headers = {"Cookie": f"invoices={cookie}".encode().decode("latin-1")}
    client = shop.app.test_client(use_cookies=False)
    return (
        "unpaid" in Page(client.get(f"/link/{link['id']}", headers=headers).text).texts
    )


def test_a_cookie_that_is_not_ours_for_this_link_is_nothing(shop):
    link = shop.link(amount_usd=5)
    other = shop.link(amount_usd=5)
    victim = made(press(shop.client, link))
    foreign = made(press(shop.client, other))
    key = cookie_key(shop)
    good = forge(key, link["id"], victim)
    for case, forged in {
        "another key": forge("x" * 43, link["id"], victim),
        "another link": forge(key, other["id"], victim),
        "an invoice of another link": forge(key, link["id"], foreign),
        "garbage": "\u00e9;.." * 500,
        "cut": good[:-1],
        "no id": forge(key, link["id"], "../../etc"),
        "of an older version": forge(key, link["id"], [victim]),
    }.items():
        assert not led_to(shop, link, forged), case
    assert led_to(shop, link, good)


def test_the_key_of_the_cookies_is_made_once_whoever_comes_first(shop):
    def keep(number):
        db = open_database(shop.environ["BLOCKTILL_DATABASE_URL"])
        kept = meta.keep(db, meta.Key.COOKIE_KEY, f"key {number}")
        db.close()
        return kept

    assert set(at_once(8, keep)) == {cookie_key(shop)}


def test_title_and_description_are_text_and_never_markup(shop):
    for text in (
        "<script>alert(1)</script>",
        '"><img src=x>',
        "{{ 7 * 7 }}",
        "\u202egnorw",
    ):
        link = shop.link(title=text, description=text)
        page = Page(shop.client.get(f"/link/{link['id']}").text)
        assert page.texts["title"] == text and page.texts["description"] == text
        assert (
            page.attributes["title"]["dir"]
            == page.attributes["description"]["dir"]
            == "auto"
        )
        assert not {"img"} & {tag for tag, _ in page.tags}
        assert not {"<", "\u202e"} & set(
            re.search("<title>(.*?)</title>", page.source)[1]
        )
        assert not re.search(r"<meta[^>]*\u202e", page.source)
