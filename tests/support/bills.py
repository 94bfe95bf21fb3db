"""Bills for tests: one is made, its button pressed, and looked at again."""

from datetime import date
from decimal import Decimal
from typing import Any

from flask.testing import FlaskClient

from btcpay.invoices.orders import order_of
from btcpay.parts.bills import actions, queries
from btcpay.parts.bills.models import Bill
from tests.support.builders import Shop
from tests.support.payer import Page

EMAIL = "ada@example.com"


def new_bill(
    shop: Shop,
    amount: str = "100",
    due_days: int = 14,
    every: str | None = None,
    until: date | None = None,
    **details: Any,
) -> Bill:
    order = order_of(shop.merchant_id, {"amount": Decimal(amount), **details}, "USD")
    with shop.service.db.write():
        return actions.make(
            shop.service.db, order, actions.Terms(due_days, every, until), shop.clock()
        )


def bill_now(shop: Shop, bill: Bill) -> Bill:
    return shop.service.db.get(queries.BY_ID, id=bill.id)


def all_bills(shop: Shop) -> list[Bill]:
    """The oldest first."""
    return shop.service.db.rows(queries.NEWEST, limit=100_000)[::-1]


def page_of(client: FlaskClient, bill: Bill) -> Page:
    answer = client.get(f"/bill/{bill.id}")
    assert answer.status_code == 200, answer.text
    return Page(answer.text)


def pay_now(
    shop: Shop, bill: Bill, client: FlaskClient | None = None
) -> dict[str, Any]:
    """The invoice to which the bill's button leads this browser, or a new one."""
    client = client or shop.client
    press = page_of(client, bill).attributes["submit"]["value"]
    answer = client.post(f"/bill/{bill.id}", data={"press": press})
    assert answer.status_code == 303, answer.text
    id = answer.headers["Location"].removeprefix("../pay/")
    found: dict[str, Any] = shop.get(f"/invoices/{id}").json
    return found


def stands(shop: Shop, bill: Bill) -> tuple[str, str]:
    """Its status, and what was paid."""
    row = bill_now(shop, bill)
    return row.status, row.paid


def mails_of(shop: Shop) -> dict[str, int]:
    """When each mail of bills that waits is sent, by its name; the last of a name."""
    found = shop.sql(
        "SELECT about, next_ms FROM delivery WHERE substr(receiver_id, 1, 5) = 'bill_'"
    )
    return {about.partition(" ")[2]: at for about, at in found.fetchall()}
