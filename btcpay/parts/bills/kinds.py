"""The kinds of events about bills, and the JSON form of a bill in an event."""

from decimal import Decimal

import orjson

from btcpay import hooks
from btcpay.notify.kinds import Kind, PartResource, properties_beside
from btcpay.parts.bills import queries
from btcpay.parts.bills.models import Bill, BillStatus
from btcpay.values.money import round_money, stored_amount


class BillKind(Kind):
    CREATED = (
        "bill.created",
        "A bill was made: by the owner, or for the next period of a series.",
    )
    PAID = (
        "bill.paid",
        "The bill is paid: nothing is missing, or less than a wallet can send.",
    )
    REOPENED = (
        "bill.reopened",
        "The bill was paid and is open again: a reorganisation of the chain took a payment back.",
    )
    ENDED = ("bill.ended", "The owner ended the bill before it was paid.")


def _sums(row: Bill) -> dict[str, orjson.Fragment]:
    """Returns the amount, the paid sum and the missing sum as JSON numbers.

    Each number has all decimals of the currency. Raises BadRow if a stored amount is
    malformed.
    """
    amount = stored_amount(row.amount)
    paid = stored_amount(row.paid)
    missing = max(amount - paid, Decimal(0))
    if row.status == BillStatus.PAID:  # what is missing is less than a wallet can send
        missing = Decimal(0)
    sums = {"amount": amount, "paid": paid, "missing": missing}
    return {
        name: orjson.Fragment(f"{round_money(exact, row.currency):f}")
        for name, exact in sums.items()
    }


PROPERTIES = properties_beside(__file__)
STATE = ("status", "paid", "paid_ms")
RESOURCE = PartResource(
    name="bill",
    prefix="bil",
    kinds=BillKind,
    by_id=queries.BY_ID,
    state=STATE,
    properties=PROPERTIES,
    computed=_sums,
)


HOOK = hooks.EventKinds(resource=RESOURCE)
