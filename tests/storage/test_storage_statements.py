"""The number of statements on the hot paths, counted by SQLite itself."""

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
