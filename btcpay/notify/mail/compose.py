"""From a row of the outbox to the letter and its address, as things stand when it is sent."""

from datetime import datetime

from btcpay.notify.events.kinds import EventKind
from btcpay.notify.events.read import state_of
from btcpay.notify.mail import texts
from btcpay.notify.mail.letter import Letter
from btcpay.notify.mail.outbox import CUSTOMER, OVERDUE, unchecked_since
from btcpay.notify.mail.texts import Told
from btcpay.values.times import to_ms
from storage.database import Database, Row
from storage.queries import brands, invoices, mails, merchants


def compose(db: Database, base_url: str, mail: Row, now: datetime) -> tuple[str, Letter] | None:
    """The address as it was given, and the letter; None when nothing is to be said any more.

    That is so when the merchant wants no mail now, when the customer's address was erased, when an
    invoice is not paid any more, and when a check was complete meanwhile. Raises BadRow.
    """
    wanted = db.row(mails.WANTED_BY, merchant_id=mail["merchant_id"]) or mails.BLANK
    if mail["recipient"] == CUSTOMER:
        return _receipt(db, base_url, mail, wanted)
    if not wanted["address"]:
        return None
    if mail["invoice_id"] is None:
        since = _overdue_since(db, mail, now)
        return (wanted["address"], texts.overdue(since, wanted["language"])) if since else None
    say = texts.paid if mail["kind"] == EventKind.INVOICE_PAID else texts.attention
    return wanted["address"], say(_told(db, base_url, mail), wanted["language"])


def _receipt(db: Database, base_url: str, mail: Row, wanted: Row) -> tuple[str, Letter] | None:
    told = _told(db, base_url, mail)
    address = told.invoice["customer_email"]
    if not wanted["receipts"] or not address or told.invoice["status"] != "paid":
        return None
    return address, texts.receipt(told, wanted["language"], _seller(db, mail["merchant_id"]))


def _told(db: Database, base_url: str, mail: Row) -> Told:
    invoice = db.only(invoices.ANY_BY_ID, id=mail["invoice_id"])
    return Told(invoice, state_of(mail), f"{base_url}/pay/{invoice['id']}")


def _overdue_since(db: Database, mail: Row, now: datetime) -> int | None:
    """Milliseconds; None when a check was complete within the hour."""
    born_ms = db.only(merchants.BY_ID, id=mail["merchant_id"])["created_at"]
    since = unchecked_since(db, born_ms)
    return to_ms(since) if now - since >= OVERDUE else None


def _seller(db: Database, merchant_id: int) -> str:
    brand = db.row(brands.OF_MERCHANT, merchant_id=merchant_id) or brands.BLANK
    return brand["name"] or db.only(merchants.BY_ID, id=merchant_id)["name"]
