"""The way back to the shop: which page has which link, and which addresses it may have."""

from functools import partial

import pytest

from btcpay.merchants import branding
from btcpay.values.errors import CommandError
from tests.support.builders import finish, pay
from tests.support.payer import Page

PAID = "https://shop.example/thanks?order={invoice}"
UNPAID = "https://shop.example/cart/{invoice}"
OWN = "https://shop.example/order/10442?a=b&invoice={invoice}"


@pytest.fixture
def shop(till):
    return till.shop


def page_of(shop, invoice, query=""):
    response = shop.client.get(f"/pay/{invoice['id']}{query}")
    assert response.status_code == 200  # and no redirect, whatever has become of it
    return Page(response.text)


def overdue(shop, _):
    shop.clock.move(hours=2)


def expired_and_paid_late(shop, invoice):
    finish(shop, invoice, "expired")
    pay(shop, invoice)


def paid(shop):
    pay(shop, invoice := shop.invoice())
    return invoice


# An event of an invoice, and where its page then leads.
STATES = {
    "a paid one gives thanks": (pay, PAID, "Back to the shop"),
    "one that waits has no thanks": (
        lambda *_: None,
        UNPAID,
        "Back to the shop without paying",
    ),
    "one whose time is over does too": (overdue, UNPAID, "Back to the shop"),
    "an expired one too": (
        partial(finish, status="expired"),
        UNPAID,
        "Back to the shop",
    ),
    "and one that was then paid too late": (
        expired_and_paid_late,
        UNPAID,
        "Back to the shop",
    ),
    "a canceled one too": (
        partial(finish, status="canceled"),
        UNPAID,
        "Back to the shop",
    ),
    "a part asks for the rest first": (partial(pay, amount_sats=1_000), None, ""),
    "money that waits for its block leads nowhere": (
        partial(pay, confirmed=False),
        None,
        "",
    ),
}


@pytest.mark.parametrize("case", STATES)
def test_each_state_has_its_own_way_back_and_an_invoices_own_stands_before_it(
    case, shop, blocktill
):
    happens, url, text = STATES[case]
    blocktill.run("merchant", "return", "shop", "--paid", PAID, "--unpaid", UNPAID)
    words = (
        "invoice",
        "create",
        "shop",
        "--usd",
        "25",
        "--expires-in-hours",
        "1",
        "--return",
        OWN,
    )
    invoice = shop.invoice(expires_in_hours=1)
    with_own = blocktill.json(*words)
    for one in (invoice, with_own):
        happens(shop, one)
    page = page_of(shop, invoice)
    href = page.attributes.get("return", {}).get("href")
    assert href == (url and url.replace("{invoice}", invoice["id"]))
    assert page.texts.get("return", "") == text
    assert UNPAID.partition("{")[0] not in page.source or url == UNPAID
    assert PAID.partition("{")[0] not in page.source or url == PAID
    page = page_of(shop, with_own)
    assert page.attributes["return"]["href"] == OWN.replace("{invoice}", with_own["id"])
    assert page.texts["return"] == (text or "Back to the shop")


def test_only_the_merchants_own_pages_have_a_link_and_their_policy_stays(
    shop, blocktill
):
    waiting = page_of(shop, invoice := shop.invoice())
    assert "return" not in {*waiting.attributes, *page_of(shop, paid(shop)).attributes}
    before = shop.client.get(f"/pay/{invoice['id']}").headers["Content-Security-Policy"]
    blocktill.run("merchant", "return", "shop", "--paid", PAID)
    assert "return" not in page_of(shop, invoice).attributes
    pay(shop, invoice)
    assert invoice["id"] in page_of(shop, invoice).attributes["return"]["href"]
    after = shop.client.get(f"/pay/{invoice['id']}").headers["Content-Security-Policy"]
    assert after == before and "shop.example" not in after
    other = shop.add_merchant("other")
    theirs = shop.post("/invoices", {"amount_usd": 5}, shop.issue("write", other)).json
    pay(shop, theirs)
    assert "return" not in page_of(shop, theirs).attributes


def test_the_return_link_is_shown_changed_and_taken_away(blocktill):
    def row(*words):
        (shown,) = blocktill.json("merchant", "return", "shop", *words)
        return [shown["return_paid"], shown["return_unpaid"]]

    assert row() == [None, None]
    assert row("--paid", PAID, "--unpaid", UNPAID) == [PAID, UNPAID] == row()
    assert row("--paid", UNPAID) == [UNPAID, None] == row()
    assert row("off") == [None, None] == row()


def test_the_brand_and_the_way_back_are_changed_apart(shop, blocktill):
    blocktill.run("merchant", "brand", "shop", "--name", "Harbour Roasters")
    blocktill.run("merchant", "return", "shop", "--paid", PAID)
    assert page_of(shop, shop.invoice()).texts["brand"].strip() == "Harbour Roasters"
    blocktill.run("merchant", "brand", "shop", "--clear")
    assert "return" in page_of(shop, paid(shop)).attributes
    blocktill.run("merchant", "brand", "shop", "--name", "Roasters")
    blocktill.run("merchant", "return", "shop", "off")
    assert blocktill.json("merchant", "brand", "shop")[0]["name"] == "Roasters"


TAKEN = {
    "http, for a network of one's own": "http://shop.local:8080/thanks",
    "a query and a fragment": "https://shop.example/?a=b&c={invoice}#{invoice}",
    "quotes, which the page encodes": "https://shop.example/it's",
    "an address of IPv6": "https://[::1]/",
    "letters of another script, encoded": "https://xn--kaffee-bua.example/%C3%A9",
    "as long as may be": "https://shop.example/" + "a" * 1979,
}


def test_a_host_of_other_letters_is_taken_as_browsers_read_it():
    assert branding.checked_url("https://straße.de/a") == "https://xn--strae-oqa.de/a"


def test_an_address_is_taken_and_shown(shop, blocktill):
    for case, address in TAKEN.items():
        assert branding.checked_url(address) == address, case
    invoice = paid(shop)
    address = TAKEN["a query and a fragment"]
    blocktill.run("merchant", "return", "shop", "--paid", address)
    href = page_of(shop, invoice).attributes["return"]["href"]
    assert href == address.replace("{invoice}", invoice["id"])


REFUSED = {
    "a script": "javascript:alert(1)",
    "a script with capitals": "JavaScript://%0aalert(1)",
    "data": "data:text/html,hello",
    "a file": "file:///etc/passwd",
    "a path": "/thanks",
    "no scheme": "//shop.example/",
    "no host": "https:///thanks",
    "a host that the invoice makes up": "https://{invoice}.example/",
    "a password": "https://me:secret@shop.example/",
    "another host behind a user": "https://shop.example@evil.example/",
    "a backslash, which browsers read as a slash": "https://shop.example\\@evil.example/",
    "a space": "https://shop.example/a b",
    "a new line": "https://shop.example/\na",
    "a letter that is not ASCII": "https://shop.example/caf\u00e9",
    "another word in braces": "https://shop.example/{order}",
    "a quotation mark": 'https://shop.example/"onclick="',
    "a port that is no number": "https://shop.example:http/",
    "a port that cannot be": "https://shop.example:70000/",
    "brackets without an address": "https://[/",
    "any host": "https://*.example/",
    "the end of a policy": "https://a;script-src",
    "this machine in another spelling": "http://2130706433/",
    "too long": "https://shop.example/" + "a" * 1980,
}


def test_an_address_for_the_return_link_is_refused(blocktill):
    for case, address in REFUSED.items():
        with pytest.raises(CommandError) as refused:
            branding.checked_url(address)
        assert len(str(refused.value).splitlines()) == 1, case
    for option in ("--paid", "--unpaid"):
        words = {"--paid": PAID, option: REFUSED["a script"]}
        said = blocktill.run(
            "merchant", "return", "shop", *sum(words.items(), ()), status=1
        )[1]
        assert said.startswith("blocktill: ") and len(said.splitlines()) == 1
    assert blocktill.json("merchant", "return", "shop")[0]["return_paid"] is None


def test_words_that_do_not_go_together_are_wrong_use(blocktill):
    """Thanks for nobody, off and on, another word."""
    for words in (
        f"--unpaid {UNPAID}",
        f"off --paid {PAID}",
        f"off --unpaid {UNPAID}",
        "on",
    ):
        blocktill.run("merchant", "return", "shop", *words.split(), status=2)


def test_nor_does_the_database_take_anything_but_a_web_address(shop, blocktill):
    blocktill.run("merchant", "return", "shop", "--paid", PAID)
    for column in ("return_paid", "return_unpaid"):
        with pytest.raises(Exception, match=r"(?i)check"):
            shop.sql(f"UPDATE brand SET {column} = 'javascript:alert(1)'")  # noqa: S608
