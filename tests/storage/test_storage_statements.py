"""The number of statements on the hot paths, counted by SQLite itself."""

import pytest

from btcpay.merchants import account
from tests.support.merchant_browser import FROM_THIS_SITE, ON, MerchantBrowser
from tests.support.payer import Page
from tests.support.statements import statements


def test_a_read_runs_two_statements_and_writes_nothing_before_it_answers(shop):
    """For the key, and for what is asked for; the first time, and when everything is warm."""
    lists = ["/balance", "/invoices", "/payments", "/payment-links"]
    for path in 2 * [f"/invoices/{shop.invoice()['id']}", *lists]:
        with statements(shop) as run:
            assert shop.get(path).status_code == 200
        assert 1 <= len(run) <= 2 and all(one.startswith("SELECT") for one in run), run


def test_creating_an_invoice_is_one_transaction(shop):
    with statements(shop) as run:
        assert shop.post("/invoices", {"amount_usd": 25}).status_code == 201
    words = [statement.split()[0] for statement in run]
    assert words.count("BEGIN") == words.count("COMMIT") == 1
    assert words.count("UPDATE") == 1
    assert words.count("INSERT") == 2  # the invoice, and that others are told of it


def test_polling_the_checkout_page_runs_one_read(shop):
    invoice = shop.invoice()
    path = f"/pay/{invoice['id']}/status"
    with statements(shop) as run:
        assert shop.client.get(path).status_code == 200
    assert len(run) == 1 and all(statement.startswith("SELECT") for statement in run), (
        run
    )


def order_at_the_api(shop):
    assert shop.post("/invoices", {"amount_usd": 25}).status_code == 201


def press_of_a_link(shop):
    """The payer chooses the amount, so the least that can be sent is compared."""
    path = f"/link/{shop.link(amount_mode='flexible')['id']}"
    press = Page(shop.client.get(path).text).values["press"]

    def send(shop):
        fields = {"amount": "5", "press": press}
        answer = shop.client.post(path, data=fields, headers=FROM_THIS_SITE)
        assert answer.status_code == 303

    return send


def sale_at_the_till(shop):
    browser = MerchantBrowser(shop).log_in()
    token = browser.token()

    def send(_shop):
        assert browser.post("/till", token, amount="5", press="a").status_code == 303

    return send


ORDERS = {
    "at the API": lambda _shop: order_at_the_api,
    "by a link's button": press_of_a_link,
    "at the till": sale_at_the_till,
}


@pytest.mark.parametrize("prepare", ORDERS.values(), ids=ORDERS)
def test_an_order_reads_its_merchant_once_and_parses_the_account_once(
    open_shops, prepare
):
    """Beside it the merchant's row is locked, and its next index taken."""
    shop = open_shops(**ON)
    send = prepare(shop)
    account.stored_account.cache_clear()
    with statements(shop) as run:
        send(shop)
    of_merchant = [statement for statement in run if '"merchant"' in statement]
    lock = 'SELECT "t1"."id" FROM "merchant"'
    reads = [
        statement
        for statement in of_merchant
        if statement.startswith("SELECT") and not statement.startswith(lock)
    ]
    assert len(reads) <= 1, reads
    updates = [statement for statement in of_merchant if statement.startswith("UPDATE")]
    assert len(updates) == 1
    assert account.stored_account.cache_info().misses == 1


def test_each_way_to_order_runs_as_few_statements_as_it_needs(open_shops):
    shop = open_shops(**ON)
    found = {}
    for name, prepare in ORDERS.items():
        send = prepare(shop)
        with statements(shop) as run:
            send(shop)
        found[name] = len(run)
    assert found == {"at the API": 7, "by a link's button": 17, "at the till": 9}
