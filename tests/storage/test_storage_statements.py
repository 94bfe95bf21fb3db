"""How many statements the hot paths run: counted by SQLite itself."""

import pytest
from databases import about_sqlite
from merchant_browser import ON, MerchantBrowser
from statements import statements

pytestmark = about_sqlite  # its driver tells what runs; the statements are the same ones


@pytest.mark.parametrize(
    ("path", "limit"),
    [
        pytest.param("/invoices/{id}", 2, id="get-invoice: the key and the invoice"),
        pytest.param("/balance", 2, id="get-balance: the key and the sum"),
        pytest.param("/invoices", 2, id="list-invoices: the key and the list"),
        pytest.param("/payments", 2, id="list-payments: the key and the list"),
        pytest.param("/payment-links", 2, id="list-payment-links: the key and the list"),
    ],
)
def test_a_read_runs_at_most_two_statements(shop, path, limit):
    path = path.format(id=shop.invoice()["id"])
    for _ in range(2):  # the first time, and when everything is warm
        with statements(shop) as run:
            assert shop.get(path).status_code == 200
        assert 1 <= len(run) <= limit, run


def test_a_read_writes_nothing_before_it_answers(shop):
    path = f"/invoices/{shop.invoice()['id']}"
    with statements(shop) as run:
        shop.get(path)
    assert all(statement.startswith("SELECT") for statement in run), run


def test_creating_an_invoice_is_one_transaction(shop):
    with statements(shop) as run:
        assert shop.post("/invoices", {"amount_usd": 25}).status_code == 201
    words = [statement.split()[0] for statement in run]
    assert words.count("BEGIN") == words.count("COMMIT") == 1
    assert words.count("UPDATE") == 1
    assert words.count("INSERT") == 2  # the invoice, and that others are told of it


def test_polling_the_checkout_page_runs_a_handful_of_reads(shop):
    invoice = shop.invoice()
    path = f"/pay/{invoice['id']}/status"
    with statements(shop) as run:
        assert shop.client.get(path).status_code == 200
    assert len(run) <= 4 and all(statement.startswith("SELECT") for statement in run), run


@pytest.mark.parametrize(
    ("path", "limit"),
    [
        pytest.param("/till?last={invoice}", 2, id="the till: session, the invoice before"),
        pytest.param("/till/{invoice}", 6, id="its code: session, brand, and what a poll reads"),
        pytest.param("/links", 2, id="links: session, a page with what came through each"),
        pytest.param("/links/{link}", 3, id="a link: session, link, a page of invoices"),
        pytest.param("/links/{link}/card", 3, id="its card: session, link, brand"),
    ],
)
def test_a_page_of_the_merchant_runs_a_handful_of_reads(open_shops, path, limit):
    shop = open_shops(**ON)
    browser = MerchantBrowser(shop).log_in()
    path = path.format(invoice=shop.invoice()["id"], link=shop.link()["id"])
    with statements(shop) as run:
        browser.page(path)
    assert len(run) == limit and all(one.startswith("SELECT") for one in run), run
