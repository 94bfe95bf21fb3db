"""Orders and stores as plug-ins read them: times in unix seconds, amounts as texts."""

import json
from decimal import Decimal
from typing import Any

from orjson import Fragment

from btcpay.greenfield.meanings import meaning_of
from btcpay.invoices.status import rules_for
from btcpay.settings.settings import Settings
from btcpay.settlement.decide import missing_sats
from btcpay.values.currencies import price_of
from btcpay.values.money import btc_shown
from schemas.greenfield import SPEEDS
from storage.database import Row

# The map of Greenfield 1.x: clients for PHP cannot read the list of 2.x.
METHODS = {
    "BTC": {
        "paymentMethodId": "BTC-CHAIN",
        "enabled": True,
        "cryptoCode": "BTC",
        "data": {},
    }
}
MONITORED_S = 7 * 24 * 3600  # after its end an invoice is watched for ever; plug-ins want a number


def order(row: Row, settings: Settings) -> dict[str, Any]:
    """An invoice, as ORDER of storage/queries/stores.py has it."""
    rules, asked = rules_for(settings, row), json.loads(row["checkout"])
    meaning, expires_s = meaning_of(row, rules), row["expires_at"] // 1000
    return {
        "id": row["id"],
        "storeId": row["store_id"],
        "amount": row["asked_amount"],
        "currency": row["asked_currency"],
        "type": "Standard",
        "checkoutLink": f"{settings.base_url}/pay/{row['id']}",
        "createdTime": row["created_at"] // 1000,
        "expirationTime": expires_s,
        "monitoringExpiration": expires_s + MONITORED_S,
        "status": meaning.status,
        "additionalStatus": meaning.additional,
        "availableStatusesForManualMarking": ["Invalid"] if row["status"] == "open" else [],
        "archived": row["archived_at"] is not None,
        "metadata": json.loads(row["metadata"] or "{}"),
        "checkout": {
            "speedPolicy": _speed(rules.confirmations),
            "paymentMethods": ["BTC"],
            "defaultPaymentMethod": "BTC",
            "expirationMinutes": (row["expires_at"] - row["created_at"]) // 60_000,
            "monitoringMinutes": MONITORED_S // 60,
            "paymentTolerance": Fragment(str(rules.tolerance_percent)),
            "redirectURL": asked.get("redirectURL"),
            "redirectAutomatically": asked.get("redirectAutomatically", False),
            "defaultLanguage": asked.get("defaultLanguage"),
        },
    }


def method(row: Row, outputs: list[Row], settings: Settings) -> dict[str, Any]:
    """How an order is paid; `outputs` are those of its address that have not vanished."""
    tolerance_percent = rules_for(settings, row).tolerance_percent
    received_sats, amount_sats = row["received_sats"], row["amount_sats"]
    came = btc_shown(sum(output["amount_sats"] for output in outputs))
    due_sats = missing_sats(row["status"], amount_sats, received_sats, tolerance_percent)
    return {
        "paymentMethod": "BTC",
        "paymentMethodId": "BTC-CHAIN",
        "cryptoCode": "BTC",
        "currency": "BTC",
        "activated": True,
        "destination": row["deposit_address"],
        "paymentLink": f"bitcoin:{row['deposit_address']}?amount={btc_shown(due_sats)}",
        "rate": "1" if row["asked_currency"] in ("BTC", "SATS") else str(price_of(row)),
        "amount": btc_shown(amount_sats),
        "due": btc_shown(due_sats),
        "totalPaid": came,
        "paymentMethodPaid": came,
        "networkFee": "0",
        "payments": [_payment(output, row["deposit_address"]) for output in outputs],
        "additionalData": {},
    }


def _payment(output: Row, address: str) -> dict[str, Any]:
    return {
        "id": f"{output['txid']}-{output['vout']}",
        "receivedDate": output["first_seen_at"] // 1000,
        "value": btc_shown(output["amount_sats"]),
        "fee": "0",
        "status": "Settled" if output["payment_id"] else "Processing",
        "destination": address,
    }


def store(row: Row, settings: Settings) -> dict[str, Any]:
    """A store, as BY_ID of storage/queries/stores.py has it."""
    return {
        "id": row["id"],
        "name": row["name"],
        "website": row["shop_url"],
        "defaultCurrency": row["currency"],
        "invoiceExpiration": settings.link_invoice_expiry_min * 60,
        "monitoringExpiration": MONITORED_S,
        "speedPolicy": _speed(settings.confirmations.for_usd(Decimal(0))),
        "paymentTolerance": Fragment(str(settings.underpayment_tolerance_percent)),
        "archived": False,
    }


def _speed(confirmations: int) -> str:
    """The name of so many confirmations, or of the next greater number that has one."""
    for name, asked in SPEEDS.items():
        if name != "HighSpeed" and asked >= confirmations:
            return name
    return "LowSpeed"
