"""A receipt that a payer asks for on the page of a paid invoice: once, where mail is set up."""

from datetime import datetime, timedelta

from btcpay.settings.settings import Settings
from btcpay.values.times import from_ms, to_ms
from storage.database import Database, Values
from storage.models import Invoice
from storage.queries import deliveries, invoices, receivers


def may_be_asked(settings: Settings, row: Invoice, now: datetime) -> bool:
    """True for a paid invoice without an address, unless one would be erased at once."""
    if row.status != "paid" or row.customer_email is not None or not settings.has_mail:
        return False
    kept = timedelta(days=settings.email_retention_days)
    return not kept or now < from_ms(row.finished_at or 0) + kept


def ask(db: Database, row: Invoice, address: str, now: datetime) -> None:
    """Stores the address and adds the mail, unless somebody has been faster."""
    at, own = to_ms(now), row.merchant_id
    # A receiver of its own: the merchant's, for every payment, may be switched off.
    new: Values = {"id": receivers.mail_id("asked", own), "merchant_id": own, "created_at": at}
    new |= {"transport": receivers.RECEIPT, "kinds": "[]"}
    with db.write():
        if db.run(invoices.GIVE_ADDRESS, id=row.id, customer_email=address):
            db.run(receivers.ADD, **new | {"url": None, "command": None, "secret": None})
            receiver_id = str(new["id"])
            db.run(deliveries.ADD_MAIL, receiver_id=receiver_id, about=row.id, created_at=at)
