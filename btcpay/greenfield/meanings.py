"""What an invoice's state is called in Greenfield. Pure."""

from collections.abc import Mapping
from typing import Any, NamedTuple

from btcpay.settlement.decide import missing_sats
from btcpay.settlement.values import Rules


class Meaning(NamedTuple):
    status: str
    additional: str


def meaning_of(row: Mapping[str, Any], rules: Rules) -> Meaning:
    """`row`: the invoice's. It is paid late when all that confirmed is enough.

    OpenCart completes such an order by itself.
    """
    received_sats, beside_sats, status = row["received_sats"], row["beside_sats"], row["status"]
    amount_sats, percent = row["amount_sats"], rules.tolerance_percent
    if status == "canceled":
        return Meaning("Invalid", "Marked")
    if status == "expired":
        if not missing_sats(status, amount_sats, beside_sats, percent):
            return Meaning("Expired", "PaidLate")
        return Meaning("Expired", "PaidPartial" if received_sats or beside_sats else "None")
    if status == "paid":
        over = "PaidOver" if received_sats + beside_sats > amount_sats else "None"
        return Meaning("Settled", "Marked" if row["settled_reason"] else over)
    if missing_sats(status, amount_sats, received_sats, percent):
        return Meaning("New", "PaidPartial" if received_sats else "None")
    return Meaning("Processing", "PaidOver" if received_sats > amount_sats else "None")


# The status of ours that an invoice has which is called so.
OURS = {
    "New": "open",
    "Processing": "open",
    "Settled": "paid",
    "Expired": "expired",
    "Invalid": "canceled",
}
