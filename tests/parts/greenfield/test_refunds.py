"""A plug-in's refunds: of an order in each variant, or of a sum; its page is in the answer."""

import pytest

from tests.support.builders import pay
from tests.support.paths import GONE
from tests.support.payer import Page
from tests.support.plug_in import GreenfieldShop

pytestmark = pytest.mark.skipif("refunds" in GONE, reason="the part was deleted")
SATS = 41_667  # of 25 dollars at 60,000 for a bitcoin, rounded up


@pytest.fixture
def paid(greenfield):
    """An order of 25 dollars that was paid 1,000 satoshis too much, when they were worth double."""
    order = greenfield.order()
    pay(greenfield.shop, {"id": order["id"]}, SATS + 1_000)
    greenfield.shop.sql("UPDATE invoice SET price = '120000', price_usd = '120000'")
    return f"/stores/STORE/invoices/{order['id']}/refund"


def ask(greenfield, path, **fields):
    return greenfield.ask("POST", path, fields)


@pytest.mark.parametrize(
    ("fields", "sats"),
    [
        ({"refundVariant": "RateThen"}, SATS + 1_000),
        ({"refundVariant": "OverpaidAmount"}, 1_000),
        ({"refundVariant": "CurrentRate"}, 2 * (SATS + 1_000)),
        ({"refundVariant": "Fiat", "subtractPercentage": 50}, SATS + 1_000),
        ({"refundVariant": "RateThen", "subtractPercentage": "10"}, 38_400),
        (
            {"refundVariant": "Custom", "customAmount": "9", "customCurrency": "USD"},
            15_000,
        ),
        (
            {"refundVariant": "Custom", "customAmount": 700, "customCurrency": "SATS"},
            700,
        ),
        ({"refundVariant": "Custom", "customAmount": "0.00002"}, 2_000),
    ],
)
def test_each_variant_has_its_sum(greenfield, paid, fields, sats):
    answer = ask(greenfield, paid, name="Order 27", paymentMethod="BTC", **fields)
    assert answer.status_code == 200, answer.text
    made = answer.json
    assert (made["currency"], made["amount"]) == ("BTC", f"0.{sats:08d}")
    assert (made["name"], made["autoApproveClaims"]) == ("Order 27", False)
    page = made["viewLink"].removeprefix(greenfield.shop.service.settings.base_url)
    assert greenfield.shop.client.get(page).status_code == 200
    assert greenfield.ask("GET", f"/pull-payments/{made['id']}").json == made


@pytest.mark.parametrize(
    ("fields", "worth"),
    [
        ({"refundVariant": "Custom", "customAmount": "9", "customCurrency": "USD"}, "$9.00"),
        ({"refundVariant": "Custom", "customAmount": "9", "customCurrency": "USD",
          "subtractPercentage": 50}, "$4.50"),
        ({"refundVariant": "CurrentRate"}, "$51.20"),
        ({"refundVariant": "Fiat", "subtractPercentage": 50}, "$25.60"),
        ({"refundVariant": "RateThen"}, "$51.20"),
        ({"refundVariant": "OverpaidAmount"}, "$1.20"),
    ],
)  # fmt: skip
def test_the_customer_reads_the_money_that_the_plug_in_asked_for(
    greenfield, paid, fields, worth
):
    """Not its satoshis at the order's price, which had halved since."""
    answer = ask(greenfield, paid, **fields)
    assert page_of(greenfield, answer.json).texts["amount"] == worth


def page_of(greenfield, made):
    path = made["viewLink"].removeprefix(greenfield.shop.service.settings.base_url)
    return Page(greenfield.shop.client.get(path).text)


@pytest.mark.parametrize(
    ("currency", "worth"),
    [("USD", "$5.00"), ("BTC", None), ("SATS", None)],
)
def test_a_pull_payment_shows_its_customer_the_money_that_was_asked_for(
    greenfield, currency, worth
):
    amount = {"USD": "5", "BTC": "0.0001", "SATS": "10000"}[currency]
    path = "/stores/STORE/pull-payments"
    made = ask(greenfield, path, name="x", amount=amount, currency=currency).json
    page = page_of(greenfield, made)
    assert page.texts["amount"] == (worth or "0.00010000 BTC")
    assert ("bitcoin" in page.texts) is bool(worth)


@pytest.mark.parametrize(
    ("fields", "path"),
    [
        ({}, "refundVariant"),
        ({"refundVariant": "All"}, "refundVariant"),
        ({"refundVariant": "Custom"}, "customAmount"),
        (
            {"refundVariant": "RateThen", "subtractPercentage": 101},
            "subtractPercentage",
        ),
        (
            {"refundVariant": "RateThen", "paymentMethod": "BTC-LightningNetwork"},
            "paymentMethod",
        ),
        (
            {"refundVariant": "Custom", "customAmount": 1, "customCurrency": "BTC"},
            "refundVariant",
        ),
        (
            {"refundVariant": "Custom", "customAmount": 1, "customCurrency": "XYZ"},
            "currency",
        ),
    ],
)
def test_what_cannot_be_is_refused_with_its_field(greenfield, paid, fields, path):
    answer = ask(greenfield, paid, **fields)
    assert answer.status_code == 422 and [one["path"] for one in answer.json] == [path]


@pytest.mark.parametrize(
    "variant", ["OverpaidAmount", "RateThen", "CurrentRate", "Fiat"]
)
@pytest.mark.parametrize("percent", [0, 10])
def test_money_goes_back_once_however_often_it_is_asked_for(
    greenfield, paid, variant, percent
):
    """As by a shop whose request ran out of time, and which asks again."""
    asked = {"refundVariant": variant, "subtractPercentage": percent}
    answers = [ask(greenfield, paid, **asked) for _ in range(2)]
    assert [one.status_code for one in answers] == [200, 422]


@pytest.mark.parametrize(
    ("fields", "status"),
    [
        pytest.param({"refundVariant": "RateThen"}, 422, id="all that came"),
        pytest.param({"refundVariant": "OverpaidAmount"}, 422, id="the excess"),
        pytest.param(
            {"refundVariant": "Custom", "customAmount": "0.00002"}, 200, id="a said sum"
        ),
    ],
)
def test_after_a_refund_was_sent_twice_only_a_said_sum_goes_back(
    greenfield, paid, fields, status
):
    greenfield.shop.sql("DELETE FROM attention")
    greenfield.shop.sql(
        "INSERT INTO attention (invoice_id, merchant_id, reason, since_ms, stake_minor)"
        " SELECT id, merchant_id, 'refunded_twice', 1, 1 FROM invoice"
    )
    assert ask(greenfield, paid, **fields).status_code == status


@pytest.mark.parametrize(
    ("texts", "shown", "reason"),
    [
        ({"name": "Order 27"}, ("Order 27", ""), "Order 27"),
        ({"name": "Order 27", "description": "a mug broke"}, ("Order 27", "a mug broke"),
            "a mug broke"),
        ({"name": "", "description": "a mug"}, ("", "a mug"), "a mug"),
        ({}, ("", ""), None),
    ],
)  # fmt: skip
def test_name_and_description_are_answered_as_they_were_given(
    greenfield, paid, texts, shown, reason
):
    made = ask(greenfield, paid, refundVariant="OverpaidAmount", **texts).json
    assert (made["name"], made["description"]) == shown
    assert greenfield.ask("GET", f"/pull-payments/{made['id']}").json == made
    assert greenfield.shop.sql("SELECT reason FROM refund").fetchall() == [(reason,)]


def test_empty_texts_are_absent_and_words_are_in_any_case(greenfield, paid):
    """Invoice Ninja sends an empty paymentMethod."""
    absent = dict.fromkeys(
        ("paymentMethod", "payoutMethodId", "customAmount", "description"), ""
    )
    absent |= {"customCurrency": "", "subtractPercentage": ""}
    made = ask(greenfield, paid, RefundVariant="overpaidamount", **absent)
    assert (made.status_code, made.json["amount"]) == (200, "0.00001000"), made.text
    again = {"Amount": "700", "currency": "sats", "paymentMethods": ["btc-chain"]}
    again |= {"autoApproveClaims": ""}
    pulled = ask(greenfield, "/stores/STORE/pull-payments", **again)
    assert (pulled.status_code, pulled.json["amount"]) == (200, "0.00000700"), (
        pulled.text
    )
    wrong = ask(greenfield, paid, refundVariant="")
    assert (wrong.status_code, wrong.json[0]["path"]) == (422, "refundVariant")


def test_an_order_that_nobody_paid_has_no_refund(greenfield):
    path = f"/stores/STORE/invoices/{greenfield.order()['id']}/refund"
    assert ask(greenfield, path, refundVariant="RateThen").status_code == 422


def test_a_pull_payment_is_a_refund_of_a_sum(greenfield):
    asked = {
        "name": "Order 27",
        "amount": "30.00",
        "currency": "USD",
        "paymentMethods": ["BTC"],
    }
    made = ask(greenfield, "/stores/STORE/pull-payments", **asked).json
    assert (made["amount"], made["currency"]) == ("0.00050000", "BTC")
    for fields in (
        {"autoApproveClaims": True},
        {"amount": "0"},
        {"amount": 2_000_000},
        {"paymentMethods": ["BTC-LN"]},
    ):
        answer = ask(greenfield, "/stores/STORE/pull-payments", **asked | fields)
        assert answer.status_code == 422, fields


def test_a_shop_with_a_webhook_is_told_of_its_orders_alone(greenfield, paid):
    greenfield.ask("POST", "/stores/STORE/webhooks", {"url": f"{greenfield.url}/hook"})
    made = ask(greenfield, paid, refundVariant="OverpaidAmount")
    assert made.status_code == 200, made.text
    assert greenfield.shop.sql("SELECT about FROM delivery").fetchall() == []
    pay(greenfield.shop, {"id": greenfield.order()["id"]}, SATS)
    assert greenfield.shop.sql("SELECT about FROM delivery").fetchall()


def test_a_refund_is_of_the_shops_own_order_and_needs_the_permission(greenfield, paid):
    made = ask(greenfield, paid, refundVariant="OverpaidAmount").json
    other = GreenfieldShop(greenfield.shop, url="https://other.example")
    assert other.ask("GET", f"/pull-payments/{made['id']}").status_code == 404
    magento = GreenfieldShop(greenfield.shop, "magento")
    refused = magento.ask(
        "POST", "/stores/STORE/pull-payments", {"amount": 1, "currency": "USD"}
    )
    assert refused.status_code == 403
    assert magento.ask("POST", paid, {"refundVariant": "RateThen"}).status_code == 403
    assert greenfield.ask("GET", "/pull-payments/x").status_code == 404
