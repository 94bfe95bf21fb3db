"""Rules for every page of the merchant's, and for any page added later."""

from urllib.parse import quote

import pytest

from btcpay.languages.catalogs import LANGUAGES
from btcpay.notify import receivers
from tests.support.builders import pay
from tests.support.databases import about_sqlite
from tests.support.merchant_paths import filled, rules
from tests.support.payer import Page
from tests.support.statements import statements

MOST_STATEMENTS = 5
ODD = ("\x00", "%ED%A0%80", "%00", "9" * 40, "-1", "\u202e", "'", "a" * 3000)


FORMS = {
    "/till": "till amount keypad show note sales till-settings sound percents alarms",
    "/settings/look": "name accent contact logo-file preview save",
    "/settings/counting": "currency timezone save",
    "/settings/wallet": "wallet_gap_limit save",
    "/settings/mail": "address language save",
    "/settings/receipt": "business_address tax_number tax_percent save",
    "/settings/return": "return_paid return_unpaid save",
    "/sessions": "add-device",
    "/webhooks": "new-webhook url add",
    "/keys": "new-key scope name issue",
}


def paths(browser):
    """Each page, of a shop that has some of everything."""
    shop = browser.shop
    paid, late, waiting = (shop.invoice(description=f"Tea {n}") for n in range(3))
    pay(shop, paid)
    pay(shop, paid, 5000)
    pay(shop, late, 1000)
    pay(shop, waiting, 1000, confirmed=False)
    sold = browser.post("/till", amount="25").headers["Location"][-28:]
    hook = receivers.add(
        shop.service.db, shop.merchant_id, "https://x.example/", None, [], shop.clock()
    )
    ids = [
        shop.key_ids[shop.read_key],
        hook.id,
        paid["id"],
        late["id"],
        waiting["id"],
        shop.link(title="Tip jar")["id"],
        sold,
    ]
    found = [path for rule in rules(shop, "GET") for path in filled(rule, ids)]
    there = [path for path in found if browser.get(path).status_code == 200]
    assert len(there) >= 14
    return there


def test_the_till_and_each_page_of_the_settings_has_its_fields_and_the_sellers_name(
    browser,
):
    browser.post("/settings/look", name="Tea & Co")
    for path, ids in FORMS.items():
        page = browser.page(path)
        assert set(ids.split()) <= page.attributes.keys(), path
        assert "Tea & Co" in page.texts["shop"], path


SEARCHES = (
    "/invoices?q=Tea",
    "/invoices?q=12345678",  # which may begin a txid, or an old address
    "/payments?kind=loose&q=Tea",
)


@about_sqlite
def test_a_merchants_page_runs_at_most_five_statements_and_writes_nothing(browser):
    """A file is read in pieces: it writes nothing either."""
    shown = paths(browser)
    older = f"/invoices?older={shown[-1].rpartition('/')[2]}"
    for path in (*shown, *SEARCHES, older):
        browser.shop.clock.move(seconds=61)
        with statements(browser.shop) as run:
            assert browser.get(path).status_code == 200
        most = 99 if path.startswith("/downloads/") else MOST_STATEMENTS
        assert 1 <= len(run) <= most, f"{path}: {run}"
        assert all(statement.startswith(("SELECT", "WITH")) for statement in run), (
            f"{path}: {run}"
        )


@pytest.mark.slow
def test_a_page_is_there_in_every_language_and_has_one_heading(browser):
    for path in paths(browser):
        for language in LANGUAGES:
            browser.shop.clock.move(seconds=61)
            answer = browser.get(path, query_string={"lang": language})
            assert answer.status_code == 200, f"{path} {language}"
            if answer.mimetype == "text/html":
                page = Page(answer.text)
                assert page.tags[0][1]["lang"] == language
                assert [tag for tag, _ in page.tags].count("h1") == 1, path
                assert len(page.tags) < 3000


@pytest.mark.slow
@pytest.mark.both_databases
def test_odd_texts_break_no_page_and_no_form(browser):
    """Anything in a parameter or a field is answered, and never by a failure of ours."""
    shop = browser.shop
    token = browser.token()
    shown = paths(browser)
    names = [
        *("q", "status", "kind", "after", "older", "last", "from", "to"),
        *("done", "lang", "month"),
    ]
    fields = [
        "press",
        "reason",
        "note",
        "amount_usd",
        "min_amount_usd",
        "description",
        "title",
    ]
    ids = [path.rpartition("/")[2] for path in shown if path.count("/") > 1]
    for text in ODD:
        sent = (
            text if text.startswith("%") else quote(text)
        )  # as it is: no text that is encoded
        for path in shown:
            shop.clock.move(seconds=61)
            query = "&".join(f"{name}={sent}" for name in names)
            answer = browser.get(path, query_string=query)
            assert answer.status_code < 500, f"{path} {text!r}"
        for rule in set(rules(shop, "POST")) - {
            "/sessions/end-others",
            "/till/log-out",
        }:
            shop.clock.move(seconds=61)
            path = next(filled(rule, ids))
            answer = browser.post(path, token, **dict.fromkeys(fields, text))
            assert answer.status_code < 500, f"{path} {text!r}"
        for rule in (rule for rule in rules(shop, "GET") if "<" in rule):
            shop.clock.move(seconds=61)
            (path,) = filled(rule, [quote(text)])
            assert browser.get(path).status_code == 404, path
