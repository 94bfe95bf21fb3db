"""A wrong form or address is explained to the merchant: on top of a page, with a way on."""

import pytest

from btcpay.languages.catalogs import LANGUAGES, catalog
from tests.support.builders import dump, pay
from tests.support.merchant_browser import MerchantBrowser
from tests.support.paths import GONE
from tests.support.payer import Page

# Each form with a field that is wrong, and the id of the first such field.
WRONG = {
    "a name": ("/settings/look", {"name": "a" * 61, "contact": "b" * 201}, "name"),
    "a colour": ("/settings/look", {"name": "Tea", "accent": "#ffffff"}, "accent"),
    "how to reach it": (
        "/settings/look",
        {"name": "Tea", "contact": "a" * 201},
        "contact",
    ),
    "currency and time": (
        "/settings/counting",
        {"currency": "EUR", "timezone": "x"},
        "timezone",
    ),
    "no gap limit": ("/settings/wallet", {"wallet_gap_limit": "0"}, "wallet_gap_limit"),
    "a gap limit in words": (
        "/settings/wallet",
        {"wallet_gap_limit": "many"},
        "wallet_gap_limit",
    ),
    "its gap limit as a programmer writes it": (
        "/settings/wallet",
        {"wallet_gap_limit": "1_000"},
        "wallet_gap_limit",
    ),
    "mail": ("/settings/mail", {"address": "nobody", "language": "de"}, "address"),
    "its language": (
        "/settings/mail",
        {"address": "me@harbour-roasters.com", "language": "x"},
        "language",
    ),
    "the tax": ("/settings/receipt", {"tax_percent": "0"}, "tax_percent"),
    "an address of seven lines": (
        "/settings/receipt",
        {"business_address": "1\n2\n3\n4\n5\n6\n7"},
        "business_address",
    ),
    "the way back": ("/settings/return", {"return_unpaid": "x"}, "return_unpaid"),
    "a script": (
        "/settings/return",
        {"return_paid": "javascript:alert(1)"},
        "return_paid",
    ),
    "a key": ("/keys", {"scope": "read", "name": "a" * 61}, "name"),
    "a webhook": ("/webhooks", {"url": "nowhere"}, "url"),
    "the tips": ("/tips", {"tips": "51"}, "percents"),
    "a bill": ("/bills", {"amount": "25", "email": "a" * 321}, "email"),
    "a link": ("/links", {"title": "Tips", "amount": "x"}, "amount"),
    "what is set aside": ("/attention/set-aside", {"amount": "x"}, "below"),
}


@pytest.mark.parametrize(
    "form",
    [
        form
        for form, (path, _, _) in WRONG.items()
        if path != "/bills" or "bills" not in GONE
    ],
)
def test_a_form_that_is_not_taken_says_so_on_top_and_leads_to_its_first_wrong_field(
    browser, form
):
    path, fields, wrong_id = WRONG[form]
    if form == "what is set aside":
        late = browser.shop.invoice()
        pay(browser.shop, late)
        pay(browser.shop, late)  # too much
    before = dump(browser.shop)
    answer = browser.post(path, **fields)
    page = Page(answer.text)
    assert answer.status_code == 400 and "was not accepted" in page.texts["refused"]
    assert dump(browser.shop) == before
    chosen = {"scope", "language", "timezone"}  # from a list
    assert all(
        text in answer.text for name, text in fields.items() if name not in chosen
    )
    links = [named.get("href") for tag, named in page.tags if tag == "a"]
    assert f"#{wrong_id}" in links
    fields = [named for _, named in page.tags if named.get("aria-invalid") == "true"]
    assert fields[0]["id"] == wrong_id
    assert (
        "-problem" in fields[0]["aria-describedby"] and 'class="problem"' in answer.text
    )
    assert page.source.index('id="refused"') < page.source.index("<h1")


def test_the_till_says_it_at_the_amount_alone(browser):
    """Its field is the first thing on the page, and its button must stay in sight."""
    answer = browser.post("/till", amount="five")
    page = Page(answer.text)
    assert answer.status_code == 400 and "refused" not in page.texts
    assert page.attributes["amount"]["aria-invalid"] == "true"
    assert page.attributes["amount"]["aria-describedby"] == "amount-problem"
    assert page.values["amount"] == "five" and page.texts["amount-problem"].strip()


def test_a_page_without_a_wrong_field_says_nothing_of_it(browser):
    for path in ("/settings", "/till", "/keys", "/webhooks", "/links/new"):
        assert "refused" not in browser.page(path).texts, path


def test_what_is_not_there_or_asked_wrongly_is_answered_by_a_page_with_a_way_back(
    shop, browser
):
    for path in ("/nothing", "/till/", "/settings/mail/x", "/invoices/inv_x"):
        answer = browser.get(path)
        assert (answer.status_code, answer.mimetype) == (404, "text/html"), path
        assert (
            "There is nothing here" in answer.text
            and 'merchant">Back to “Today”' in answer.text
        )
    assert browser.post("/settings/nothing").status_code == 404
    for method, path in (
        ("POST", "/month"),
        ("GET", "/files"),
        ("PUT", "/till"),
    ):
        answer = browser.client.open(f"/merchant{path}", method=method)
        assert (answer.status_code, answer.mimetype) == (405, "text/html"), path
        assert (
            "This could not be read" in answer.text
            and 'merchant">Back to “Today”' in answer.text
        )
        assert answer.headers["Allow"] in ("GET, HEAD", "GET, HEAD, POST", "POST")
    answer = browser.post("/keys", scope="everything")
    assert (answer.status_code, answer.mimetype) == (400, "text/html")
    stranger = shop.client
    answer = stranger.get("/merchant/nothing")
    assert answer.status_code == 401 and "Please log in" in answer.text
    assert stranger.put("/merchant/login/x").mimetype == "text/html"


def test_a_form_that_is_too_large_is_refused_in_words_that_name_the_size(open_shops):
    shop = open_shops(BLOCKTILL_MERCHANT_PAGES="on", BLOCKTILL_MAX_BODY_BYTES="131072")
    browser = MerchantBrowser(shop).log_in()
    answer = browser.post("/till", amount="25", note="x" * 140_000)
    assert answer.status_code == 413 and "at most 128 KiB" in answer.text


def test_the_root_with_a_slash_leads_to_the_root_whoever_asks(shop, browser):
    for asks in (
        shop.client.get,
        lambda path: browser.get(path.removeprefix("/merchant")),
    ):
        answer = asks("/merchant/")
        assert (answer.status_code, answer.headers["Location"]) == (308, "../merchant")


@pytest.mark.parametrize("language", LANGUAGES)
def test_a_failure_of_ours_is_told_in_the_merchants_language(shop, browser, language):
    shop.sql("ALTER TABLE payment_link RENAME TO gone")
    answer = browser.get("/links", query_string={"lang": language})
    assert answer.status_code == 500
    main = answer.text.partition("<main")[2].partition("</main>")[0]
    assert catalog(language).gettext("Please try again in a minute.") in main
    assert f'<span class="code">{answer.headers["X-Request-Id"]}</span>' in main
    assert ("something went wrong on our side" in main.lower()) == (language == "en")
    assert "request id" not in main
