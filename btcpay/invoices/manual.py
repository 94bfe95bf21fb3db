"""The owner's decisions about an invoice: cancel, settle (mark as paid), or dismiss.

To dismiss means to remove the invoice from the list of those that need attention. Each
decision is one database transaction, which first locks the merchant's balance.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from datetime import datetime

from btcpay.invoices.attention import update_attention
from btcpay.invoices.history import End, finish, record
from btcpay.invoices.status import find_invoice
from btcpay.notify.kinds import EventKind
from btcpay.notify.publish import News
from btcpay.settings.settings import Settings
from btcpay.settlement.attention import REASONS
from btcpay.values.errors import ChangeRefused
from btcpay.values.statuses import InvoiceStatus
from btcpay.values.texts import line_of
from storage.database import Database
from storage.models import Invoice
from storage.queries import attentions, payments
from storage.queries.events import Kind
from storage.queries.totals import balances

MAX_REASON_CHARACTERS = 300


def cancel(
    db: Database,
    settings: Settings,
    invoice_id: str,
    now: datetime,
    force: bool = False,
    where: str = "on the command line",
) -> None:
    """Cancels an open invoice.

    Raises ChangeRefused with the code `not_open` if the invoice is not open, and with
    `on_its_way` if payments to it were already seen. If `force` is True, cancels the
    invoice despite such payments. `where` says in the invoice's history where the owner
    canceled it. Raises CommandError if there is no such invoice.
    """
    kind = EventKind.INVOICE_CANCELED
    with _lock(db, settings, invoice_id, now, kind=kind) as row:
        if row.status != InvoiceStatus.OPEN:
            raise ChangeRefused(
                "not_open",
                f"the invoice is {row.status}; only an open one can be canceled",
            )
        if row.received_sats and not force:
            message = f"{row.received_sats} satoshis are on their way to this invoice"
            raise ChangeRefused("on_its_way", f"{message}; --force cancels it")
        detail = {"reason": f"canceled {where}"}
        finish(db, [End(row, InvoiceStatus.CANCELED, detail)], now)


def settle(
    db: Database,
    settings: Settings,
    invoice_id: str,
    reason: str,
    now: datetime,
) -> None:
    """Marks the invoice as paid by its confirmed payments, even if late or too small.

    Stores the txid and the time of the last payment in the invoice. Raises TextRefused
    if the reason has a character that must not be shown, or is too long. Raises
    ChangeRefused with the code `no_reason` if the reason is blank, with `paid` if the
    invoice is already paid, and with `nothing_came` if it has no confirmed payment.
    """
    reason = _checked_reason(reason)
    kind = EventKind.INVOICE_PAID
    with _lock(db, settings, invoice_id, now, kind=kind) as row:
        if row.status == InvoiceStatus.PAID:
            raise ChangeRefused("paid", "the invoice is paid already")
        received = db.rows(payments.OF_ADDRESS, invoice_id=invoice_id)
        if not received:
            raise ChangeRefused(
                "nothing_came",
                "no confirmed payment has come to this invoice; nothing to accept",
            )
        for payment in received:
            db.run(payments.SETTLE, invoice_id=invoice_id, tx_hash=payment.tx_hash)
        last = received[-1]
        end = End(
            row,
            InvoiceStatus.PAID,
            detail={"reason": f"settled by hand: {reason}", "settled_reason": reason},
            tx_hash=last.tx_hash,
            paid_ms=last.created_ms,
        )
        finish(db, [end], now)


def dismiss(
    db: Database,
    settings: Settings,
    invoice_id: str,
    reason: str,
    now: datetime,
    below_minor: int | None = None,
) -> str:
    """Marks the invoice as needing no attention, until something new happens to it.

    Returns why it needed attention, as part of a sentence. If `below_minor` is given,
    the invoice is dismissed only if less than this amount is at stake, in the smallest
    unit of the invoice's currency (such as cents).

    Raises TextRefused if the reason has a character that must not be shown, or is too
    long. Raises ChangeRefused with the code `no_reason` if the reason is blank, with
    `nothing_wanted` if the invoice needs no attention, and with `at_stake` if the
    amount is not below `below_minor`.
    """
    reason = _checked_reason(reason)
    with _lock(db, settings, invoice_id, now):
        attention = db.get_or_none(attentions.OF_INVOICE, invoice_id=invoice_id)
        if attention is None:
            raise ChangeRefused(
                "nothing_wanted", "nothing about this invoice needs attention"
            )
        if below_minor is not None and attention.stake_minor >= below_minor:
            raise ChangeRefused("at_stake", "more is at stake by now")
        detail = {"attention": attention.reason, "reason": reason}
        record(db, invoice_id, Kind.DISMISSED, detail, now)
    return REASONS[attention.reason]


def read_reason(text: str) -> str:
    """Returns the owner's reason on one line; "" if it is blank.

    Raises TextRefused if it has a character that must not be shown, or is too long.
    """
    return line_of("reason", text, MAX_REASON_CHARACTERS)


def _checked_reason(text: str) -> str:
    """Returns the reason on one line.

    Raises ChangeRefused with the code `no_reason` if it is blank, and TextRefused if it
    has a character that must not be shown, or is too long.
    """
    reason = read_reason(text)
    if not reason:
        raise ChangeRefused(
            "no_reason", "a decision by hand needs a reason: --reason TEXT"
        )
    return reason


@contextmanager
def _lock(
    db: Database,
    settings: Settings,
    invoice_id: str,
    now: datetime,
    kind: EventKind | None = None,
) -> Iterator[Invoice]:
    """Locks the merchant's balance, and yields the invoice's row, in one transaction.

    When the `with` block ends, decides again whether the invoice needs attention, and
    publishes an event of `kind` unless that is None.
    """
    with db.write():
        balances.lock(db, find_invoice(db, invoice_id).merchant_id)
        # Loaded again, since another process may have changed it before the lock.
        yield find_invoice(db, invoice_id)
        news = []
        if kind:
            news.append(News(kind))
        update_attention(db, settings, invoice_id, now, news)
