"""The way back to the shop: which page has which link, and which addresses it may have."""

from typing import Any

import pytest
from builders import pay
from payer import Page

from storage.queries import invoices

PAID, UNPAID = "https://shop.example/thanks?order={invoice}", "https://shop.example/cart/{invoice}"
Json = dict[str, Any]


@pytest.fixture
def shop(till):
    return till.shop


def page_of(shop, invoice, query=""):
    response = shop.client.get(f"/pay/{invoice['id']}{query}")
    assert response.status_code == 200  # and no redirect, whatever has become of it
    return Page(response.text)


def finish(shop, invoice, status):
    ended = dict.fromkeys(("tx_hash", "paid_at", "settled_reason")) | {"finished_at": 1}
    statement = {"id": invoice["id"], "from_status": "open", "status": status}
    assert shop.service.db.run(invoices.FINISH, **statement, **ended) == 1


def waiting(shop):
    return shop.invoice()


def partial(shop):
    invoice = shop.invoice()
    pay(shop, invoice, 1_000)
    return invoice


def seen(shop):
    invoice = shop.invoice()
    pay(shop, invoice, confirmed=False)
    return invoice


def overdue(shop):
    invoice = shop.invoice(expires_in_hours=1)
    shop.clock.move(hours=2)
    return invoice


def paid(shop):
    invoice = shop.invoice()
    pay(shop, invoice)
    return invoice


def ended(status):
    def make(shop):
        invoice = shop.invoice()
        finish(shop, invoice, status)
        return invoice

    return make


def expired_and_paid_late(shop):
    invoice = ended("expired")(shop)
    pay(shop, invoice)
    return invoice


STATES = {
    "a paid one gives thanks": (paid, PAID, "Back to the shop"),
    "one that waits leads back without thanks": (
        waiting,
        UNPAID,
        "Back to the shop without paying",
    ),
    "one whose time is over leads back without thanks": (overdue, UNPAID, "Back to the shop"),
    "an expired one leads back without thanks": (ended("expired"), UNPAID, "Back to the shop"),
    "an expired one that was paid too late is not thanked for": (
        expired_and_paid_late,
        UNPAID,
        "Back to the shop",
    ),
    "a canceled one leads back without thanks": (ended("canceled"), UNPAID, "Back to the shop"),
    "one that is paid in part asks for the rest first": (partial, None, ""),
    "one whose money waits for its block leads nowhere yet": (seen, None, ""),
}


@pytest.mark.parametrize("case", STATES)
def test_each_state_has_its_own_way_back(case, shop, btcpay):
    make, url, text = STATES[case]
    btcpay.run("merchant", "return", "shop", "--paid", PAID, "--unpaid", UNPAID)
    invoice = make(shop)
    page = page_of(shop, invoice)
    assert page.attributes.get("return", {}).get("href") == (
        url and url.replace("{invoice}", invoice["id"])
    )
    assert page.texts.get("return", "") == text
    assert UNPAID.partition("{")[0] not in page.source or url == UNPAID
    assert PAID.partition("{")[0] not in page.source or url == PAID


def test_without_one_set_no_page_has_a_link(shop):
    for make in (waiting, paid, overdue):
        assert "return" not in page_of(shop, make(shop)).attributes


def test_the_link_comes_when_the_payment_does(shop, btcpay):
    btcpay.run("merchant", "return", "shop", "--paid", PAID)
    invoice = shop.invoice()
    assert "return" not in page_of(shop, invoice).attributes
    pay(shop, invoice)
    assert invoice["id"] in page_of(shop, invoice).attributes["return"]["href"]


TEXTS = {
    "es": ("Volver a la tienda", "Volver a la tienda sin pagar"),
    "de": ("Zur\u00fcck zum Shop", "Zur\u00fcck zum Shop, ohne zu bezahlen"),
    "fr": ("Retour \u00e0 la boutique", "Retour \u00e0 la boutique sans payer"),
    "pt": ("Voltar \u00e0 loja", "Voltar \u00e0 loja sem pagar"),
    "ja": (
        "\u30b7\u30e7\u30c3\u30d7\u306b\u623b\u308b",
        "\u652f\u6255\u308f\u305a\u306b\u30b7\u30e7\u30c3\u30d7\u306b\u623b\u308b",
    ),
}


@pytest.mark.parametrize("language", TEXTS)
def test_the_link_is_in_the_pages_language(language, shop, btcpay):
    btcpay.run("merchant", "return", "shop", "--paid", PAID, "--unpaid", UNPAID)
    shown = [
        page_of(shop, make(shop), f"?lang={language}").texts["return"] for make in (paid, waiting)
    ]
    assert tuple(shown) == TEXTS[language]


def test_another_merchants_pages_do_not_have_it(shop, btcpay):
    btcpay.run("merchant", "return", "shop", "--paid", PAID, "--unpaid", UNPAID)
    other = shop.add_merchant("other")
    invoice = shop.post("/invoices", {"amount_usd": 5}, shop.issue("write", other)).json
    assert "return" not in page_of(shop, invoice).attributes


def test_it_is_shown_changed_and_taken_away(btcpay):
    def row(*words):
        (shown,) = btcpay.json("merchant", "return", "shop", *words)
        return [shown["return_paid"], shown["return_unpaid"]]

    assert row() == [None, None]
    assert row("--paid", PAID, "--unpaid", UNPAID) == [PAID, UNPAID] == row()
    assert row("--paid", UNPAID) == [UNPAID, None] == row()
    assert row("off") == [None, None] == row()


def test_the_brand_and_the_way_back_are_changed_apart(shop, btcpay):
    btcpay.run("merchant", "brand", "shop", "--name", "Harbour Roasters")
    btcpay.run("merchant", "return", "shop", "--paid", PAID)
    assert page_of(shop, waiting(shop)).texts["brand"].strip() == "Harbour Roasters"
    btcpay.run("merchant", "brand", "shop", "--clear")
    assert "return" in page_of(shop, paid(shop)).attributes
    btcpay.run("merchant", "brand", "shop", "--name", "Roasters")
    btcpay.run("merchant", "return", "shop", "off")
    assert btcpay.json("merchant", "brand", "shop")[0]["name"] == "Roasters"


TAKEN = {
    "http, for a network of one's own": "http://shop.local:8080/thanks",
    "a query and a fragment": "https://shop.example/?a=b&c={invoice}#{invoice}",
    "quotes, which the page encodes": "https://shop.example/it's",
    "an address of IPv6": "https://[::1]/",
    "letters of another script, encoded": "https://xn--kaffee-bua.example/%C3%A9",
    "as long as may be": "https://shop.example/" + "a" * 1987,
}


@pytest.mark.parametrize("case", TAKEN)
def test_an_address_is_taken(case, shop, btcpay):
    btcpay.run("merchant", "return", "shop", "--paid", TAKEN[case])
    invoice = paid(shop)
    page = page_of(shop, invoice)
    assert page.attributes["return"]["href"] == TAKEN[case].replace("{invoice}", invoice["id"])


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
    "too long": "https://shop.example/" + "a" * 1988,
}


@pytest.mark.parametrize("option", ["--paid", "--unpaid"])
@pytest.mark.parametrize("case", REFUSED)
def test_an_address_is_refused(case, option, btcpay):
    words = {"--paid": PAID, option: REFUSED[case]}
    said = btcpay.run("merchant", "return", "shop", *sum(words.items(), ()), status=1)[1]
    assert said.startswith("btcpay: ") and len(said.splitlines()) == 1
    assert btcpay.json("merchant", "return", "shop")[0]["return_paid"] is None


@pytest.mark.parametrize(
    "words",
    [["--unpaid", UNPAID], ["off", "--paid", PAID], ["off", "--unpaid", UNPAID], ["on"]],
    ids=["thanks for nobody", "off and on", "off, but unpaid", "another word"],
)
def test_words_that_do_not_go_together_are_wrong_use(words, btcpay):
    btcpay.run("merchant", "return", "shop", *words, status=2)


def test_nor_does_the_database_take_anything_but_a_web_address(shop, btcpay):
    btcpay.run("merchant", "return", "shop", "--paid", PAID)
    for column in ("return_paid", "return_unpaid"):
        with pytest.raises(Exception, match=r"(?i)check"):
            shop.sql(f"UPDATE brand SET {column} = 'javascript:alert(1)'")  # noqa: S608


def test_the_policy_of_a_page_is_the_same_with_and_without_it(shop, btcpay):
    invoice = paid(shop)
    before = shop.client.get(f"/pay/{invoice['id']}").headers["Content-Security-Policy"]
    btcpay.run("merchant", "return", "shop", "--paid", PAID)
    after = shop.client.get(f"/pay/{invoice['id']}").headers["Content-Security-Policy"]
    assert after == before and "shop.example" not in after
