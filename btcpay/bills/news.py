"""News of a bill: events, and the mails that its customer will get."""

from collections.abc import Mapping
from datetime import datetime

from btcpay.bills import queries
from btcpay.bills.kinds import STATE, BillKind
from btcpay.notify.publish import News, Told, publish
from storage.database import Database
from storage.models import Bill
from storage.queries import deliveries, receivers


def tell(db: Database, bill_id: str, kind: BillKind, now: datetime) -> Bill:
    """Adds an event about the row as it is now, and returns the row. Call it in `db.write()`."""
    row = db.only(queries.BY_ID, id=bill_id)
    state = {name: getattr(row, name) for name in STATE}
    publish(db, [Told(row, News(kind), state)], now)
    return row


def send_later(db: Database, bill: Bill, at_ms: Mapping[str, int]) -> None:
    """Adds mails by name, each to be sent once at its time, if the bill has an address."""
    if not bill.customer_email:
        return
    own = bill.merchant_id, (), bill.created_at
    id = receivers.add_mailbox(db, receivers.BILL, receivers.BILL, *own)
    for name, ms in at_ms.items():
        db.run(deliveries.ADD_MAIL, receiver_id=id, about=f"{bill.id} {name}", created_at=ms)
