"""The text that clients get of a row, to the last byte."""

from decimal import Decimal

import orjson
import pytest

from schemas.resources import Balance, Invoice, Payment, PaymentLink
from storage import models

ROOT = "https://pay.example.com"
MS = 1_700_000_000_123

INVOICE = dict.fromkeys(field.name for field in models.Invoice.PUBLIC) | {
    "id": "inv_" + "A" * 24, "status": "paid", "amount_sats": 41_667, "amount_usd_quote": "25.00",
    "description": "Two pounds of tea \U0001f375", "customer_email": "",
    "deposit_address": "bcrt1q" + "0" * 38, "tx_hash": "ab" * 32,
    "payment_link_id": "lnk_" + "B" * 24, "expires_ms": MS, "paid_ms": MS + 877, "created_ms": 0,
}  # fmt: skip
LINK = {
    "seq": 7,  # a column that clients are not shown
    "id": "lnk_" + "B" * 24, "merchant_id": 1, "status": "active", "title": "Tea",
    "description": None, "amount_mode": "flexible", "amount_usd": None, "min_amount_usd": "0.1",
    "max_amount_usd": "1E+3", "created_ms": MS,
}  # fmt: skip
PAYMENT = {
    "id": "pay_" + "C" * 24, "invoice_id": None, "amount_sats": 2_100_000_000_000_000,
    "amount_usd_at_receipt": "1234567.89", "tx_hash": "cd" * 32, "created_ms": 4_102_444_799_999,
}  # fmt: skip
BALANCE = {"confirmed_sats": 0, "total_sats": 5, "confirmed_usd": Decimal("0.00")}

NULLS = dict.fromkeys(
    (
        "description",
        "customer_email",
        "tx_hash",
        "payment_link_id",
        "expires_ms",
        "paid_ms",
    )
)
FIXED = {"amount_mode": "fixed", "amount_usd": "25", "title": None}
NO_PRICE = {"invoice_id": INVOICE["id"], "amount_usd_at_receipt": None}
ROWS = {
    "a paid invoice with everything in it": (Invoice, INVOICE),
    "an invoice with every null": (Invoice, INVOICE | NULLS | {"status": "open"}),
    "an invoice's other columns": (Invoice, INVOICE | {"merchant_id": 1, "seq": 7}),
    "a flexible payment link with columns not shown": (PaymentLink, LINK),
    "a fixed payment link without a title": (PaymentLink, LINK | FIXED),
    "a late payment of no invoice": (Payment, PAYMENT),
    "a payment without a price": (Payment, PAYMENT | NO_PRICE),
    "a balance with its worth": (Balance, BALANCE),
    "a balance without a price": (Balance, BALANCE | {"confirmed_usd": None}),
}


TIMES = {
    0: "1970-01-01T00:00:00.000Z",
    MS: "2023-11-14T22:13:20.123Z",
    MS + 877: "2023-11-14T22:13:21.000Z",
    4_102_444_799_999: "2099-12-31T23:59:59.999Z",
}
HOSTED = {
    "pay_url": f"{ROOT}/pay/{INVOICE['id']}",
    "link_url": f"{ROOT}/link/{LINK['id']}",
}


def written(name, row):
    """A field in JSON: an amount of money is a number, as it is stored."""
    if name.endswith("_at"):
        stored_ms = row[f"{name.removesuffix('_at')}_ms"]
        return orjson.dumps(TIMES.get(stored_ms)).decode()
    stored = row.get(name, HOSTED.get(name, "BTC"))
    if "_usd" in name and stored is not None:
        return str(stored)
    return orjson.dumps(stored).decode()


@pytest.mark.parametrize("case", ROWS)
def test_rows_and_lists_are_shown_as_they_are_stored(case):
    resource, row = ROWS[case]
    schema = resource(ROOT)
    kind = {"PaymentLink": "payment_link"}.get(resource.__name__)
    fields = row | {"object": kind or resource.__name__.lower()}
    whole = ",".join(f'"{name}":{written(name, fields)}' for name in schema.fields)
    assert orjson.dumps(schema.serialize(row)).decode() == f"{{{whole}}}"
    packed = orjson.dumps([*row.values()], default=str).decode()
    listed = schema.envelope((*row,), [packed, packed])
    assert orjson.dumps(listed["data"]).decode() == f"[{{{whole}}},{{{whole}}}]"


def test_a_column_that_is_missing_is_no_null():
    known = {name: PAYMENT[name] for name in PAYMENT if name != "tx_hash"}
    with pytest.raises(KeyError):
        Payment(ROOT).serialize(known)
