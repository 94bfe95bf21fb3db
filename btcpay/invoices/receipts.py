"""A receipt that a payer asks for on the page of a paid invoice: once, where mail is set up."""

from datetime import datetime, timedelta

from btcpay.settings.settings import Settings
from btcpay.values.times import from_ms, to_ms
from storage.database import Database
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
    at = to_ms(now)
    with db.write():
        if db.run(invoices.GIVE_ADDRESS, id=row.id, customer_email=address):
            # A receiver of its own: the merchant's, for every payment, may be switched off.
            own = receivers.add_mailbox(db, "asked", receivers.RECEIPT, row.merchant_id, (), at)
            db.run(deliveries.ADD_MAIL, receiver_id=own, about=row.id, created_at=at)
