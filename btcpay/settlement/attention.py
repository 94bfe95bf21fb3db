"""Determines why an invoice needs a human's attention, by its state and history. Pure.

docs/developers/settlement.md explains the rules in full.
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

# A phrase for each reason, by the reason's name in metrics, JSON and database.
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
    """Returns why an invoice needs attention, as a key of REASONS; None if it does not.

    1. Only events since the last human decision count: a manual settlement, a dismissal
       or a cancellation.
    2. A payment that a reorganisation undid needs attention until it is confirmed
       again, or until the invoice is paid.
    3. Otherwise confirmed payments need attention if their sum differs from the
       invoice's amount. A difference below `dust_limit_sats`, the minimum output to the
       address, is ignored.
    4. A refund covers payments before it: the refunded part of an overpayment, or all
       payments to an unpaid invoice. A payment that was refunded twice needs attention.
    5. An expired invoice needs attention if its full amount was once seen, since the
       shop may have handed the goods over. At a till the shop has certainly done so:
       there an open invoice needs attention as soon as its payment vanishes, until
       somebody dismisses the invoice.
    6. An invoice of a bill needs attention only for payments that came late or exceed
       the bill. For the rest, the bill makes another invoice.
    7. A paid invoice needs attention if an output that may be older than the invoice
       settled it, until a refund is sent. The customer may have sent nothing.
    8. Outputs that are certainly older than the invoice are ignored, unless a human has
       accepted them.
    """
    verdict, history = _without_older(verdict, history)
    since = events_since(history)
    if undone_txids(since):
        return "reorganised"
    if any(happening.kind == SENT_AGAIN for happening in since):
        return "refunded_twice"
    if invoice.status == InvoiceStatus.PAID:
        return _reason_if_paid(invoice, verdict, since, dust_limit_sats)
    since_refund = events_since(since, SENT_BACK)
    kinds = {happening.kind for happening in since_refund}
    if invoice.status == InvoiceStatus.CANCELED:
        if "payment" in kinds:
            return "after_cancellation"
        return None
    has_news = bool(kinds & {"payment", "expired"})
    was_covered = _was_covered(invoice, history)
    if was_covered and _has_vanished(invoice, verdict, has_news):
        return "vanished"
    if not verdict.receipts or not has_news:
        return None
    return _reason_if_unpaid(invoice, verdict, dust_limit_sats)


def _has_vanished(invoice: Invoice, verdict: Verdict, has_news: bool) -> bool:
    """True if the payment has vanished after the shop may have handed the goods over.

    Call it for an invoice whose full amount was once seen. There are two cases:

    1. An open invoice at a till, if a part of the amount is missing now.
    2. An expired invoice without payments, if `has_news`: if a payment or the expiry
       followed the last human decision and the last refund.
    """
    if invoice.status == InvoiceStatus.OPEN:
        return invoice.at_till and verdict.missing_sats > 0
    is_expired = invoice.status == InvoiceStatus.EXPIRED
    return is_expired and has_news and not verdict.receipts


def _reason_if_paid(
    invoice: Invoice,
    verdict: Verdict,
    since: Sequence[Happening],
    dust_limit_sats: int,
) -> str | None:
    """Returns the reason for a paid invoice; None if there is none.

    `since` are the events since the last human decision.
    """
    since_refund = events_since(since, SENT_BACK)
    if _older_receipts(verdict, since_refund):
        return "older_coin"
    if _overpaid_sats(invoice, verdict, since) >= dust_limit_sats:
        return "too_much"
    return None


def _reason_if_unpaid(
    invoice: Invoice,
    verdict: Verdict,
    dust_limit_sats: int,
) -> str | None:
    """Returns the reason for an open or expired invoice; None if there is none.

    Call it if a payment or the expiry followed the last human decision.
    """
    if invoice.status == InvoiceStatus.EXPIRED and _came_late(verdict):
        return "paid_late"
    # The bill makes another invoice for what is missing.
    if invoice.of_bill and invoice.overpaid_sats < dust_limit_sats:
        return None
    if invoice.status == InvoiceStatus.EXPIRED:
        return "short"
    is_dust_missing = 0 < verdict.missing_sats < dust_limit_sats
    if is_dust_missing and not verdict.unconfirmed_sats:
        return "dust_missing"
    return None


def _was_covered(invoice: Invoice, history: Sequence[Happening]) -> bool:
    """True if outputs of the full amount were once seen.

    At a till, the result is False again once somebody has dismissed the invoice.
    """
    if not invoice.covered_at:
        return False
    if not invoice.at_till:
        return True
    return all(happening.kind != "dismissed" for happening in history)


def stake_sats(
    reason: str,
    invoice: Invoice,
    verdict: Verdict,
    history: Sequence[Happening],
) -> int:
    """Returns the amount that the reason for attention is about, in satoshis.

    `reason` is a key of REASONS. The result is, by reason:

    - "too_much": the overpayment
    - "older_coin": the sum of the payments that may be older
    - "vanished", "reorganised": the invoice's amount
    - "refunded_twice": the sum of the second refunds
    - other reasons: the sum of what was received and not refunded
    """
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
    received_sats = sum(receipt.amount_sats for receipt in verdict.receipts)
    refunded_sats = sum_of(SENT_BACK, without_undone_refunds(history))
    return max(0, received_sats - refunded_sats)


def _without_older(
    verdict: Verdict,
    history: Sequence[Happening],
) -> tuple[Verdict, Sequence[Happening]]:
    """Returns the verdict and the history without payments older than the invoice.

    Older payments that a human has accepted for the invoice are kept.
    """
    receipts = tuple(receipt for receipt in verdict.receipts if receipt.came_for_it)
    older = {receipt.txid for receipt in verdict.receipts if not receipt.came_for_it}
    happenings = [happening for happening in history if happening.txid not in older]
    return replace(verdict, receipts=receipts), happenings


def _came_late(verdict: Verdict) -> bool:
    """True if payments to an expired invoice came late, or were found late.

    They were found late if they came in time and are enough, but no mempool showed them
    before the invoice expired.
    """
    paid_sats = sum(receipt.amount_sats for receipt in verdict.receipts)
    in_time_sats = verdict.received_sats - verdict.unconfirmed_sats
    came_late = paid_sats > in_time_sats
    is_enough = not verdict.missing_sats and not verdict.unconfirmed_sats
    return came_late or is_enough


def _older_receipts(verdict: Verdict, since: Sequence[Happening]) -> list[Receipt]:
    """Returns the payments that settle the invoice, but may be older than it.

    Only payments that are events in `since` are returned.
    """
    txids = payment_txids(since)
    return [
        receipt
        for receipt in verdict.receipts
        if receipt.settles and receipt.may_be_older and receipt.txid in txids
    ]


def _overpaid_sats(
    invoice: Invoice,
    verdict: Verdict,
    since: Sequence[Happening],
) -> int:
    """Returns the satoshis that exceed the invoice's amount and were not refunded.

    Only payments in `since` count, and only refunds after the first of these payments.
    `since` are the events since the last human decision.
    """
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
    # A refund that was sent before the first of these payments returned earlier payments.
    from_first_payment = dropwhile(lambda event: event.kind != "payment", since)
    return max(0, excess_sats - sum_of(SENT_BACK, from_first_payment))
