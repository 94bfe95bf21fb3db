"""What clients are shown is exactly what marshmallow's own dump makes of a row."""

from decimal import Decimal
from typing import Any

import orjson
import pytest
from marshmallow import Schema

from schemas.resources import Balance, Invoice, Payment, PaymentLink

ROOT = "https://pay.example.com"
MS = 1_700_000_000_123

INVOICE: dict[str, Any] = {
    "id": "inv_" + "A" * 24,
    "status": "paid",
    "amount_sats": 41_667,
    "amount_usd_quote": "25.00",
    "description": "Two pounds of tea \U0001f375",
    "customer_email": "",
    "deposit_address": "bcrt1q" + "0" * 38,
    "tx_hash": "ab" * 32,
    "payment_link_id": "lnk_" + "B" * 24,
    "expires_at": MS,
    "paid_at": MS + 877,
    "created_at": 0,
}
LINK: dict[str, Any] = {
    "seq": 7,  # a column that clients are not shown
    "id": "lnk_" + "B" * 24,
    "merchant_id": 1,
    "status": "active",
    "title": "Tea",
    "description": None,
    "amount_mode": "flexible",
    "amount_usd": None,
    "min_amount_usd": "0.1",
    "max_amount_usd": "1E+3",
    "created_at": MS,
}
PAYMENT: dict[str, Any] = {
    "id": "pay_" + "C" * 24,
    "invoice_id": None,
    "amount_sats": 2_100_000_000_000_000,
    "amount_usd_at_receipt": "1234567.89",
    "tx_hash": "cd" * 32,
    "created_at": 4_102_444_799_999,
}
BALANCE: dict[str, Any] = {"confirmed_sats": 0, "total_sats": 5, "confirmed_usd": Decimal("0.00")}

NULLS = dict.fromkeys(
    ("description", "customer_email", "tx_hash", "payment_link_id", "expires_at", "paid_at")
)
ROWS = [
    pytest.param(Invoice, INVOICE, id="a paid invoice with everything in it"),
    pytest.param(Invoice, INVOICE | NULLS | {"status": "open"}, id="an invoice with every null"),
    pytest.param(Invoice, INVOICE | {"merchant_id": 1, "seq": 7}, id="an invoice's other columns"),
    pytest.param(PaymentLink, LINK, id="a flexible payment link with columns not shown"),
    pytest.param(
        PaymentLink,
        LINK | {"amount_mode": "fixed", "amount_usd": "25", "title": None},
        id="a fixed payment link without a title",
    ),
    pytest.param(Payment, PAYMENT, id="a late payment of no invoice"),
    pytest.param(
        Payment,
        PAYMENT | {"invoice_id": INVOICE["id"], "amount_usd_at_receipt": None},
        id="a payment without a price",
    ),
    pytest.param(Balance, BALANCE, id="a balance with its worth"),
    pytest.param(Balance, BALANCE | {"confirmed_usd": None}, id="a balance without a price"),
]


@pytest.mark.parametrize(("resource", "row"), ROWS)
def test_a_row_is_shown_as_marshmallow_shows_it(resource, row):
    schema = resource(ROOT)
    shown = orjson.dumps(schema.dump(row))
    assert shown == orjson.dumps(Schema.dump(schema, row))
    assert list(orjson.loads(shown)) == list(schema.fields)


def test_a_column_that_is_missing_is_no_null():
    with pytest.raises(KeyError):
        Payment(ROOT).dump({name: PAYMENT[name] for name in PAYMENT if name != "tx_hash"})


@pytest.mark.parametrize(("resource", "row"), ROWS)
def test_a_list_is_shown_as_marshmallow_shows_it(resource, row):
    schema = resource(ROOT)
    for rows in ([], [row], [row, row | {"created_at": MS + 1}]):
        assert orjson.dumps(schema.dump(rows, many=True)) == orjson.dumps(
            Schema.dump(schema, rows, many=True)
        )
        assert orjson.dumps(resource(ROOT, many=True).dump(rows)) == orjson.dumps(
            schema.dump(rows, many=True)
        )
