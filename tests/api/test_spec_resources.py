"""Specification, sections 2 and 3: the fields of every resource, and how an invoice gets paid."""

import re
from datetime import timedelta

import pytest

from btcpay.values.times import iso
from tests.support.builders import pay

TEXT = (str,)
NUMBER = (int, float)
WHOLE = (int,)
NULL = type(None)
MOMENT = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z")


def of(types, names):
    return dict.fromkeys(names.split(), types)


# The tables of section 2: the types that each field may have.
INVOICE = (
    of(TEXT, "object id status asset pay_url created_at")
    | of(WHOLE, "amount_sats")
    | of((*NUMBER, NULL), "amount_usd_quote")
    | of(
        (*TEXT, NULL),
        "description customer_email deposit_address tx_hash payment_link_id",
    )
    | of((*TEXT, NULL), "expires_at paid_at")
)
PAYMENT_LINK = (
    of(TEXT, "object id status amount_mode asset link_url created_at")
    | of((*TEXT, NULL), "title description")
    | of((*NUMBER, NULL), "amount_usd min_amount_usd max_amount_usd")
)
PAYMENT = (
    of(TEXT, "object id asset created_at")
    | of(WHOLE, "amount_sats")
    | of((*TEXT, NULL), "invoice_id tx_hash")
    | of((*NUMBER, NULL), "amount_usd_at_receipt")
)
BALANCE = of(TEXT, "object asset") | of(WHOLE, "confirmed_sats total_sats")
BALANCE |= of((*NUMBER, NULL), "confirmed_usd")
EVERYTHING = {
    "description": "Tea for two",
    "customer_email": "ada@example.com",
    "expires_in_hours": 2,
}


def assert_has_exactly(resource, table):
    assert set(resource) == set(table)
    for name, types in table.items():
        assert type(resource[name]) in types, name
        if name.endswith("_at") and resource[name] is not None:
            assert MOMENT.fullmatch(resource[name]), name


def paid(shop):
    invoice = shop.invoice(30)
    pay(shop, invoice)
    return shop.get(f"/invoices/{invoice['id']}").json


def link_invoice(shop):
    link = shop.link(amount_usd=5)
    assert shop.client.post(f"/link/{link['id']}").status_code == 303
    return shop.get("/invoices").json["data"][0]


# 2.1
@pytest.mark.parametrize(
    "make",
    [
        pytest.param(lambda shop: shop.invoice(), id="new with nothing but an amount"),
        pytest.param(
            lambda shop: shop.invoice(0.01, **EVERYTHING), id="new with everything"
        ),
        pytest.param(paid, id="paid"),
        pytest.param(link_invoice, id="made through a payment link"),
    ],
)
def test_an_invoice_has_exactly_the_documented_fields(shop, make):
    invoice = make(shop)
    assert_has_exactly(invoice, INVOICE)
    assert (invoice["object"], invoice["asset"]) == ("invoice", "BTC")


@pytest.mark.parametrize(
    ("field", "form"),
    [("id", "inv_[0-9A-Za-z]+"), ("deposit_address", "bcrt1q[0-9a-z]{38}")],
)
def test_every_invoice_has_an_id_and_an_address_of_its_own(shop, field, form):
    made = {shop.invoice()[field] for _ in range(5)}
    assert len(made) == 5 and all(re.fullmatch(form, one) for one in made)


def test_a_new_invoice_is_open_and_has_what_the_merchant_said_or_null(shop):
    invoice = shop.invoice()
    full = shop.invoice(**EVERYTHING)
    assert invoice["status"] == "open"
    texts = "description", "customer_email", "tx_hash", "payment_link_id"
    unsaid = [*texts, "expires_at", "paid_at"]
    assert [invoice[name] for name in unsaid] == [None] * 6
    assert (full["description"], full["customer_email"]) == (
        "Tea for two",
        "ada@example.com",
    )


@pytest.mark.parametrize(
    ("amount_usd", "amount_sats"),
    [
        pytest.param(60000, 100_000_000, id="the price of a bitcoin is a bitcoin"),
        pytest.param(0.0006, 1, id="exactly one satoshi"),
        pytest.param(0.00060001, 2, id="a little more than one satoshi is rounded up"),
        pytest.param(25, 41_667, id="41,666.67 satoshis are rounded up"),
        pytest.param(1_000_000, 1_666_666_667, id="the largest amount"),
    ],
)
def test_an_invoices_amount_due_is_the_usd_amount_at_the_live_rate(
    shop, amount_usd, amount_sats
):
    assert shop.invoice(amount_usd)["amount_sats"] == amount_sats


@pytest.mark.parametrize(
    "text", ["25", "25.10", "0.01", "1000000", "0.1000000000000000055511151"]
)
def test_an_invoices_usd_quote_is_the_amount_as_it_was_sent(shop, text):
    response = shop.post(
        "/invoices", data=f'{{"amount_usd":{text}}}', content_type="application/json"
    )
    assert f'"amount_usd_quote":{text},' in response.text


@pytest.mark.parametrize(
    ("hours", "life"),
    [
        pytest.param(1, timedelta(hours=1), id="an hour"),
        pytest.param(0.5, timedelta(minutes=30), id="half an hour"),
        pytest.param(8760, timedelta(days=365), id="the longest, a year"),
        pytest.param(0.0000003, timedelta(milliseconds=1), id="about a millisecond"),
    ],
)
def test_an_invoices_expires_at_is_so_many_hours_after_its_creation(shop, hours, life):
    assert shop.invoice(expires_in_hours=hours)["expires_at"] == iso(
        shop.clock() + life
    )


def test_timestamps_carry_milliseconds_and_a_trailing_z(shop):
    shop.clock.move(milliseconds=7)
    created_at = shop.invoice()["created_at"]
    assert created_at == iso(shop.clock()) and created_at.endswith(".007Z")


# 2.2
@pytest.mark.parametrize(
    "fields",
    [
        pytest.param({}, id="with no field at all"),
        pytest.param(
            {"amount_mode": "fixed", "amount_usd": 9.5, "title": "Tea"}, id="fixed"
        ),
        pytest.param(
            {"amount_mode": "flexible", "min_amount_usd": 1, "max_amount_usd": 2},
            id="flexible",
        ),
    ],
)
def test_a_payment_link_has_exactly_the_documented_fields(shop, fields):
    assert_has_exactly(shop.link(**fields), PAYMENT_LINK)


def test_a_new_payment_link_is_active_and_has_what_the_merchant_said_or_null(shop):
    link = shop.link()
    full = shop.link(title="Tea", description="Green")
    assert (link["object"], link["status"], link["asset"]) == (
        "payment_link",
        "active",
        "BTC",
    )
    assert re.fullmatch("lnk_[0-9A-Za-z]+", link["id"])
    assert link["created_at"] == iso(shop.clock())
    assert (link["title"], link["description"]) == (None, None)
    assert (full["title"], full["description"]) == ("Tea", "Green")


@pytest.mark.parametrize("amounts", [(9.5, None, None), (None, 1.25, 200)])
def test_a_fixed_link_has_amount_usd_and_a_flexible_one_bounds(shop, amounts):
    names = ("amount_usd", "min_amount_usd", "max_amount_usd")
    mode = "fixed" if amounts[0] else "flexible"
    link = shop.link(amount_mode=mode, **dict(zip(names, amounts, strict=True)))
    assert (link["amount_mode"], *(link[name] for name in names)) == (mode, *amounts)


def test_every_payment_through_a_link_generates_its_own_invoice_and_address(shop):
    link = shop.link(amount_usd=5)
    for _ in range(3):
        shop.client.post(f"/link/{link['id']}")
    made = shop.get("/invoices").json["data"]
    assert len({invoice["id"] for invoice in made}) == 3
    assert len({invoice["deposit_address"] for invoice in made}) == 3
    assert {invoice["payment_link_id"] for invoice in made} == {link["id"]}


# 2.3
def test_a_payment_has_exactly_the_documented_fields(shop):
    paid(shop)
    pay(shop, shop.invoice(), 1000)
    settling_and_partial = shop.get("/payments").json["data"]
    assert [each["invoice_id"] is None for each in settling_and_partial] == [
        True,
        False,
    ]
    for payment in settling_and_partial:
        assert_has_exactly(payment, PAYMENT)
        assert (payment["object"], payment["asset"]) == ("payment", "BTC")
        assert re.fullmatch("pay_[0-9A-Za-z]+", payment["id"])


def test_a_payment_shows_what_came_its_worth_and_its_transaction(shop):
    invoice = shop.invoice(30)
    tx_hash = pay(shop, invoice, 60_000)
    (payment,) = shop.get("/payments").json["data"]
    assert payment["amount_sats"] == 60_000
    assert payment["amount_usd_at_receipt"] == 36
    assert payment["tx_hash"] == tx_hash and re.fullmatch("[0-9a-f]{64}", tx_hash)
    assert payment["invoice_id"] == invoice["id"]


def test_a_payment_recorded_long_after_its_block_has_no_usd_value(shop):
    invoice = shop.invoice(30)
    shop.clock.move(hours=5)
    pay(shop, invoice, mined_at=shop.clock() - timedelta(hours=2))
    assert shop.get("/payments").json["data"][0]["amount_usd_at_receipt"] is None


def test_a_new_merchants_balance_is_zero(shop):
    assert shop.get("/balance").json == {
        "object": "balance",
        "asset": "BTC",
        "confirmed_sats": 0,
        "total_sats": 0,
        "confirmed_usd": 0,
    }


def test_the_total_adds_unconfirmed_incoming_credits_to_the_confirmed_balance(shop):
    pay(shop, shop.invoice(30))
    pay(shop, shop.invoice(30), 7_000, confirmed=False)
    balance = shop.get("/balance").json
    assert (balance["confirmed_sats"], balance["total_sats"]) == (50_000, 57_000)
    assert balance["confirmed_usd"] == 30


def test_the_confirmed_usd_value_is_null_when_the_live_price_is_unavailable(
    shop, ticker
):
    ticker.status = 500
    balance = shop.get("/balance").json
    assert balance["confirmed_usd"] is None
    assert balance["confirmed_sats"] == 0


@pytest.mark.parametrize(
    ("path", "table"),
    [("/invoices", INVOICE), ("/payment-links", PAYMENT_LINK), ("/payments", PAYMENT)],
)
def test_a_list_holds_whole_resources(shop, path, table):
    paid(shop)
    shop.link(amount_usd=1)
    (item,) = shop.get(path).json["data"]
    assert_has_exactly(item, table)


# 3.1
def test_an_open_invoice_becomes_paid_when_a_matching_payment_confirms(shop):
    invoice = shop.invoice()
    shop.clock.move(minutes=30)
    mined_at = shop.clock() - timedelta(minutes=10)
    tx_hash = pay(shop, invoice, mined_at=mined_at)
    shown = shop.get(f"/invoices/{invoice['id']}").json
    assert shown == invoice | {
        "status": "paid",
        "tx_hash": tx_hash,
        "paid_at": iso(mined_at),
    }
    (payment,) = shop.get(f"/payments?invoice_id={invoice['id']}").json["data"]
    assert (payment["tx_hash"], payment["created_at"]) == (tx_hash, iso(mined_at))
