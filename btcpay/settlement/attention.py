"""The reason why an invoice needs a human, from its state and its history. Pure.

docs/developers/settlement.md has the reasons in full.
"""

from collections.abc import Sequence
from dataclasses import replace
from itertools import dropwhile

from btcpay.settlement.history import (
    SENT_AGAIN,
    SENT_BACK,
    Happening,
    events_since,
    payment_txids,
    sum_of,
    undone_txids,
    without_undone_refunds,
)
from btcpay.settlement.values import Invoice, Receipt, Verdict
from btcpay.values.statuses import InvoiceStatus

# Each reason as part of a sentence, by its name in metrics, JSON and database.
REASONS = {
    "reorganised": "taken back by a reorganisation",
    "paid_late": "paid late",
    "short": "short at its end",
    "too_much": "paid too much",
    "after_cancellation": "paid after cancellation",
    "dust_missing": "short by less than can be sent",
    "vanished": "seen in full and taken back",
    "refunded_twice": "sent back twice",
    "older_coin": "paid by a coin that may be older than the invoice",
}


def reason_for(
    invoice: Invoice,
    verdict: Verdict,
    history: Sequence[Happening],
    dust_limit_sats: int,
) -> str | None:
    """The key in REASONS; None when the invoice needs no human.

    1. Only events since a human's last word count: a settlement by hand, a dismissal, a
       cancellation.
    2. A payment that a reorganisation took back needs attention until it counts again, or until the
       invoice is paid.
    3. Otherwise confirmed money needs attention when it is not the sum that the invoice asks for. A
       difference below `dust_limit_sats`, the least that can be sent to the address, is ignored.
    4. A refund deals with money that came before it: with the part of too much that it sent back,
       and with all that came to an unpaid invoice. Money that was sent back twice needs attention.
    5. So does an invoice that ended unpaid although the whole sum was once seen: somebody may
       have handed goods over. At a till they have, so there it does so at once, until dismissed.
    6. A bill's invoice needs attention only for money that came late or beyond the bill: the bill
       itself asks for the rest.
    7. A paid invoice needs attention if money that may be older has settled it, until a refund is
       sent: it may have come before the invoice was made, and the customer sent nothing.
    8. Money that is older than the invoice does not answer it, and needs no attention.
    """
    verdict, history = _without_older(verdict, history)
    since = events_since(history)
    if undone_txids(since):
        return "reorganised"
    if any(happening.kind == SENT_AGAIN for happening in since):
        return "refunded_twice"
    if invoice.status == InvoiceStatus.PAID:
        return _reason_if_paid(invoice, verdict, since, dust_limit_sats)
    since = events_since(since, SENT_BACK)
    kinds = {happening.kind for happening in since}
    if invoice.status == InvoiceStatus.CANCELED:
        if "payment" in kinds:
            return "after_cancellation"
        return None
    was_covered = _was_covered(invoice, history)
    is_open_at_till = invoice.at_till and invoice.status == InvoiceStatus.OPEN
    if was_covered and is_open_at_till and verdict.missing_sats:
        return "vanished"
    if not kinds & {"payment", "expired"}:
        return None
    if not verdict.receipts:
        if invoice.status == InvoiceStatus.EXPIRED and was_covered:
            return "vanished"
        return None
    return _reason_if_unpaid(invoice, verdict, dust_limit_sats)


def _reason_if_paid(
    invoice: Invoice,
    verdict: Verdict,
    since: Sequence[Happening],
    dust_limit_sats: int,
) -> str | None:
    since_refund = events_since(since, SENT_BACK)
    if _older_receipts(verdict, since_refund):
        return "older_coin"
    if _overpaid_sats(invoice, verdict, since) >= dust_limit_sats:
        return "too_much"
    return None


def _reason_if_unpaid(
    invoice: Invoice, verdict: Verdict, dust_limit_sats: int
) -> str | None:
    """The reason if money came to an open or expired invoice since a human's last word."""
    if invoice.status == InvoiceStatus.EXPIRED and _came_late(verdict):
        return "paid_late"
    if invoice.of_bill and invoice.overpaid_sats < dust_limit_sats:
        return None
    if invoice.status == InvoiceStatus.EXPIRED:
        return "short"
    is_dust_missing = 0 < verdict.missing_sats < dust_limit_sats
    if is_dust_missing and not verdict.unconfirmed_sats:
        return "dust_missing"
    return None


def _was_covered(invoice: Invoice, history: Sequence[Happening]) -> bool:
    """True if the whole sum was once seen; at a till, until somebody dismisses the invoice."""
    if not invoice.covered_at:
        return False
    if not invoice.at_till:
        return True
    return all(happening.kind != "dismissed" for happening in history)


def stake_sats(
    reason: str, invoice: Invoice, verdict: Verdict, history: Sequence[Happening]
) -> int:
    """The satoshis to decide about: the excess, the sum that is gone, or all that came."""
    verdict, history = _without_older(verdict, history)
    since = events_since(history)
    if reason == "too_much":
        return _overpaid_sats(invoice, verdict, since)
    if reason == "older_coin":
        older = _older_receipts(verdict, since)
        return sum(receipt.amount_sats for receipt in older)
    if reason in ("vanished", "reorganised"):
        return invoice.amount_sats
    if reason == "refunded_twice":
        return sum_of(SENT_AGAIN, since)
    came_sats = sum(receipt.amount_sats for receipt in verdict.receipts)
    sent_sats = sum_of(SENT_BACK, without_undone_refunds(history))
    return max(0, came_sats - sent_sats)


def _without_older(
    verdict: Verdict, history: Sequence[Happening]
) -> tuple[Verdict, Sequence[Happening]]:
    """Both without the money that is older than the invoice, unless a human has accepted it."""
    receipts = tuple(receipt for receipt in verdict.receipts if receipt.came_for_it)
    older = {receipt.txid for receipt in verdict.receipts if not receipt.came_for_it}
    happenings = [happening for happening in history if happening.txid not in older]
    return replace(verdict, receipts=receipts), happenings


def _came_late(verdict: Verdict) -> bool:
    """True if an expired invoice has money that came late, or the whole sum.

    If the whole sum came in time, it was unknown when the invoice ended: no mempool showed it.
    """
    came_sats = sum(receipt.amount_sats for receipt in verdict.receipts)
    in_time_sats = verdict.received_sats - verdict.unconfirmed_sats
    is_enough = not verdict.missing_sats and not verdict.unconfirmed_sats
    return came_sats > in_time_sats or is_enough


def _older_receipts(verdict: Verdict, since: Sequence[Happening]) -> list[Receipt]:
    """The receipts among these events that settle the invoice, and may be older than it."""
    txids = payment_txids(since)
    return [
        receipt
        for receipt in verdict.receipts
        if receipt.settles and receipt.may_be_older and receipt.txid in txids
    ]


def _overpaid_sats(
    invoice: Invoice, verdict: Verdict, since: Sequence[Happening]
) -> int:
    """Satoshis beyond the amount of a paid invoice that came since a human's last word."""
    txids = payment_txids(since)
    excess_sats = sum(
        receipt.amount_sats
        for receipt in verdict.receipts
        if receipt.txid in txids and not receipt.settles
    )
    if any(happening.kind == "paid" for happening in since):
        settled_sats = sum(
            receipt.amount_sats for receipt in verdict.receipts if receipt.settles
        )
        excess_sats += max(0, settled_sats - invoice.amount_sats)
        excess_sats += invoice.overpaid_sats
    # A refund that was sent before the first of these payments sent back earlier money.
    from_first_payment = dropwhile(lambda event: event.kind != "payment", since)
    return max(0, excess_sats - sum_of(SENT_BACK, from_first_payment))
