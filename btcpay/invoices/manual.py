"""The owner's decisions about an invoice: to cancel, to settle, to dismiss attention.

Each is one transaction, which first locks the merchant's balance.
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

    Raises ChangeRefused with the code `not_open`. Unless `force`, raises it with
    `on_its_way` if money for the invoice was already seen.
    """
    with _lock(db, settings, invoice_id, now, EventKind.INVOICE_CANCELED) as row:
        if row.status != InvoiceStatus.OPEN:
            raise ChangeRefused(
                "not_open",
                f"the invoice is {row.status}; only an open one can be canceled",
            )
        if row.received_sats and not force:
            message = f"{row.received_sats} satoshis are on their way to this invoice"
            raise ChangeRefused("on_its_way", f"{message}; --force cancels it")
        finish(
            db, [End(row, InvoiceStatus.CANCELED, {"reason": f"canceled {where}"})], now
        )


def settle(
    db: Database,
    settings: Settings,
    invoice_id: str,
    reason: str,
    now: datetime,
) -> None:
    """Accepts the confirmed payments, late or short, as full payment of the invoice.

    The invoice gets the transaction and the time of the last payment. Raises
    TextRefused. Raises ChangeRefused with the code `no_reason`, `paid` or
    `nothing_came`.
    """
    reason = _checked_reason(reason)
    with _lock(db, settings, invoice_id, now, EventKind.INVOICE_PAID) as row:
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
        detail = {"reason": f"settled by hand: {reason}", "settled_reason": reason}
        last = received[-1]
        finish(
            db,
            [End(row, InvoiceStatus.PAID, detail, last.tx_hash, last.created_ms)],
            now,
        )


def dismiss(
    db: Database,
    settings: Settings,
    invoice_id: str,
    reason: str,
    now: datetime,
    below_minor: int | None = None,
) -> str:
    """Removes an invoice from those that need attention, until something new happens to it.

    Returns the former reason as part of a sentence. If `below_minor` is given, less
    than that must be at stake, in smallest units of the currency. Raises TextRefused.
    Raises ChangeRefused with the code `no_reason`, `nothing_wanted` or `at_stake`.
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
    """Returns the owner's reason on one line; "" if it is blank. Raises TextRefused."""
    return line_of("reason", text, MAX_REASON_CHARACTERS)


def _checked_reason(text: str) -> str:
    """Returns the reason on one line. Raises ChangeRefused (`no_reason`), TextRefused."""
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
    """Locks the merchant's balance, and yields the invoice's row.

    After the block it decides again whether the invoice needs attention. If `kind` is
    given, it publishes an event of this kind.
    """
    with db.write():
        balances.lock(db, find_invoice(db, invoice_id).merchant_id)
        yield find_invoice(db, invoice_id)
        news = []
        if kind:
            news.append(News(kind))
        update_attention(db, settings, invoice_id, now, news)
