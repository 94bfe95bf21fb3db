"""What an invoice's state is called in Greenfield. Pure."""

from collections.abc import Mapping
from typing import Any, NamedTuple

from btcpay.settlement.decide import missing_sats
from btcpay.settlement.values import Rules


class Meaning(NamedTuple):
    status: str
    additional: str


def meaning_of(row: Mapping[str, Any], rules: Rules) -> Meaning:
    """`row`: the invoice's. Money is late when it confirmed beside what came in time."""
    received_sats, status = row["received_sats"], row["status"]
    confirmed_sats = received_sats - row["unconfirmed_sats"]
    if status == "canceled":
        return Meaning("Invalid", "Marked")
    if status == "expired":
        if row["beside_sats"] > confirmed_sats:
            return Meaning("Expired", "PaidLate")
        return Meaning("Expired", "PaidPartial" if received_sats else "None")
    if status == "paid":
        came_sats = received_sats + row["beside_sats"]
        over = "PaidOver" if came_sats > row["amount_sats"] else "None"
        return Meaning("Settled", "Marked" if row["settled_reason"] else over)
    if missing_sats(status, row["amount_sats"], received_sats, rules.tolerance_percent):
        return Meaning("New", "PaidPartial" if received_sats else "None")
    return Meaning("Processing", "PaidOver" if received_sats > row["amount_sats"] else "None")


# The status of ours that an invoice has which is called so.
OURS = {
    "New": "open",
    "Processing": "open",
    "Settled": "paid",
    "Expired": "expired",
    "Invalid": "canceled",
}
