"""The owner's last word on an invoice: cancel it, accept what came, set aside what it wants.

Each is one transaction behind the lock of the merchant's balance, which whoever counts money holds.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from datetime import datetime

from btcpay.invoices.events import BY_HAND, finish, record
from btcpay.invoices.status import find_invoice, verdict_of
from btcpay.invoices.update_attention import heed
from btcpay.notify.events.kinds import EventKind
from btcpay.notify.events.publish import News
from btcpay.settings.settings import Settings
from btcpay.values.errors import Refused
from storage.database import Database, Row
from storage.queries import attentions, balances, payments
from storage.queries.events import Kind


def cancel(
    db: Database,
    settings: Settings,
    invoice_id: str,
    now: datetime,
    force: bool = False,
    where: str = "on the command line",
) -> None:
    """Ends an open invoice; what still comes is a payment without invoice.

    Raises Refused for one that is not open (`not_open`); without `force` also while money is on its
    way (`on_its_way`).
    """
    with _locked(db, settings, invoice_id, now, EventKind.INVOICE_CANCELED) as row:
        if row["status"] != "open":
            raise Refused(
                "not_open", f"the invoice is {row['status']}; only an open one can be canceled"
            )
        received_sats = verdict_of(db, settings, row, now).received_sats
        if received_sats and not force:
            raise Refused(
                "on_its_way",
                f"{received_sats} satoshis are on their way to this invoice; --force cancels it",
            )
        finish(db, row, now, status="canceled", reason=f"canceled {where}")


def settle(db: Database, settings: Settings, invoice_id: str, reason: str, now: datetime) -> None:
    """Accepts what came, late or short, as payment; the last transaction completes it.

    Raises Refused without a reason (`no_reason`), for a paid invoice (`paid`), and where nothing
    came (`nothing_came`).
    """
    if not reason.strip():
        raise Refused("no_reason", "a settlement by hand needs a reason: --reason TEXT")
    with _locked(db, settings, invoice_id, now, EventKind.INVOICE_PAID) as row:
        if row["status"] == "paid":
            raise Refused("paid", f"the invoice is paid already{_or_dismiss(invoice_id)}")
        received = db.rows(payments.OF_ADDRESS, invoice_id=invoice_id)
        if not received:
            raise Refused(
                "nothing_came",
                "no confirmed payment has come to this invoice; nothing to accept"
                f"{_or_dismiss(invoice_id)}",
            )
        for payment in received:
            db.run(payments.SETTLE, invoice_id=invoice_id, tx_hash=payment["tx_hash"])
        finish(
            db,
            row,
            now,
            status="paid",
            tx_hash=received[-1]["tx_hash"],
            paid_at=received[-1]["created_at"],
            settled_reason=reason,
            reason=BY_HAND + reason,
        )


def _or_dismiss(invoice_id: str) -> str:
    return (
        f"; if it wants attention, `btcpay invoice dismiss {invoice_id} --reason TEXT` takes it off"
        " the list"
    )


def dismiss(db: Database, settings: Settings, invoice_id: str, reason: str, now: datetime) -> str:
    """Sets aside why an invoice wants attention, until something new happens; what that was.

    Raises Refused without a reason (`no_reason`), and where nothing wants attention
    (`nothing_wanted`).
    """
    if not reason.strip():
        raise Refused("no_reason", "a dismissal needs a reason: --reason TEXT")
    with _locked(db, settings, invoice_id, now):
        wanted = db.row(attentions.OF_INVOICE, invoice_id=invoice_id)
        if wanted is None:
            raise Refused("nothing_wanted", "nothing about this invoice wants attention")
        detail = {"attention": wanted["reason"], "reason": reason}
        record(db, invoice_id, Kind.DISMISSED, detail, now)
    return wanted["reason"]


@contextmanager
def _locked(
    db: Database,
    settings: Settings,
    invoice_id: str,
    now: datetime,
    news: EventKind | None = None,
) -> Iterator[Row]:
    """Yields the row as it is behind the lock; afterwards decides anew what wants attention.

    Then `news` is told.
    """
    with db.write():
        balances.lock(db, find_invoice(db, invoice_id)["merchant_id"])
        yield find_invoice(db, invoice_id)
        heed(db, settings, invoice_id, now, [News(news)] if news else [])
