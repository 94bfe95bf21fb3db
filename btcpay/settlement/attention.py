"""The reason why an invoice needs a human, from its state and its history. Pure.

docs/developers/settlement.md has the reasons in full.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import dropwhile, takewhile

from btcpay.settlement.values import Invoice, Receipt, Verdict
from btcpay.values.statuses import InvoiceStatus

# By its name in metrics, JSON and database, each reason as part of a sentence.
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
# A human's decisions; each deals with everything that happened before it.
LAST_WORDS = ("settled", "dismissed", "canceled")
SENT_BACK = "refund sent"
SENT_AGAIN = "refund sent again"
TAKEN_BACK = "refund undone"


@dataclass(frozen=True)
class Happening:
    """An event that may call for a human; `txid` is a payment's, or txid and vout of a refund's.

    `kind`: payment, undone (a payment, by a reorganisation), paid, expired, one of LAST_WORDS, or
    SENT_BACK, SENT_AGAIN, and TAKEN_BACK for either, of `amount_sats`.
    """

    kind: str
    txid: str = ""
    amount_sats: int = 0


def reason_for(
    invoice: Invoice,
    verdict: Verdict,
    history: Sequence[Happening],
    dust_limit_sats: int,
) -> str | None:
    """The key in REASONS; None when the invoice needs no human.

    1. Only what has happened since a human's last word counts: a settlement by hand, a dismissal,
       a cancellation.
    2. A payment that a reorganisation took back needs attention until it counts again, or until the
       invoice is paid.
    3. Otherwise confirmed money needs attention when it is not the sum that the invoice asks for. A
       difference below `dust_limit_sats`, the least that can be sent to the address, is ignored.
    4. Money that came before a refund was sent needs none: of too much, the part that was sent
       back; of an unpaid invoice, all. What was sent back twice needs attention.
    5. So does an invoice that ended unpaid although the whole sum was once seen: somebody may
       have handed goods over. At a till they have, so there it does so at once, until dismissed.
    6. Of a bill's invoice only what came late and what came beyond the bill needs one: the bill
       itself asks for the rest.
    7. A paid invoice needs attention when money that may be older than it has settled it, until a
       refund is sent: it may have come before the invoice was made, and the customer sent nothing.
    8. Money that is older than the invoice is nobody's answer to it, and needs none.
    """
    verdict, history = _without_older(verdict, history)
    since = _since(history)
    if _taken_back(since):
        return "reorganised"
    if any(one.kind == SENT_AGAIN for one in since):
        return "refunded_twice"
    if invoice.status == InvoiceStatus.PAID and _older(
        verdict, _since(since, SENT_BACK)
    ):
        return "older_coin"
    if invoice.status != InvoiceStatus.PAID:
        since = _since(since, SENT_BACK)
    happened = {happening.kind for happening in since}
    if invoice.status == InvoiceStatus.PAID:
        if _overpaid_sats(invoice, verdict, since) >= dust_limit_sats:
            return "too_much"
        return None
    if invoice.status == InvoiceStatus.CANCELED:
        if "payment" in happened:
            return "after_cancellation"
        return None
    is_dismissed = invoice.at_till and any(one.kind == "dismissed" for one in history)
    was_whole = invoice.covered_at and not is_dismissed
    if (
        was_whole
        and invoice.at_till
        and invoice.status == InvoiceStatus.OPEN
        and verdict.missing_sats
    ):
        return "vanished"
    if not happened & {"payment", "expired"}:
        return None
    if not verdict.receipts:
        if invoice.status == InvoiceStatus.EXPIRED and was_whole:
            return "vanished"
        return None
    if invoice.status == InvoiceStatus.EXPIRED and _came_late(verdict):
        return "paid_late"
    if invoice.of_bill and invoice.overpaid_sats < dust_limit_sats:
        return None
    if invoice.status == InvoiceStatus.EXPIRED:
        return "short"
    is_stuck = (
        0 < verdict.missing_sats < dust_limit_sats and not verdict.unconfirmed_sats
    )
    if is_stuck:
        return "dust_missing"
    return None


def stake_sats(
    reason: str, invoice: Invoice, verdict: Verdict, history: Sequence[Happening]
) -> int:
    """The satoshis to decide about: the excess, the sum that is gone, or all that came."""
    verdict, history = _without_older(verdict, history)
    if reason == "too_much":
        return _overpaid_sats(invoice, verdict, _since(history))
    if reason == "older_coin":
        return sum(receipt.amount_sats for receipt in _older(verdict, _since(history)))
    if reason in ("vanished", "reorganised"):
        return invoice.amount_sats
    if reason == "refunded_twice":
        return sum(one.amount_sats for one in _since(history) if one.kind == SENT_AGAIN)
    came_sats = sum(receipt.amount_sats for receipt in verdict.receipts)
    sent_sats = sum(
        one.amount_sats for one in _standing(history) if one.kind == SENT_BACK
    )
    return max(0, came_sats - sent_sats)


def _without_older(
    verdict: Verdict, history: Sequence[Happening]
) -> tuple[Verdict, Sequence[Happening]]:
    """Both without the money that is older than the invoice, unless a human has accepted it."""
    older = {one.txid for one in verdict.receipts if not one.came_for_it}
    receipts = tuple(one for one in verdict.receipts if one.came_for_it)
    happenings = [one for one in history if one.txid not in older]
    return replace(verdict, receipts=receipts), happenings


def _since(history: Sequence[Happening], *words: str) -> list[Happening]:
    """The events that still count, oldest first: since a human's last word, or one of `words`."""
    standing = reversed(_standing(history))
    latest_first = takewhile(
        lambda each: each.kind not in (words or LAST_WORDS), standing
    )
    return list(latest_first)[::-1]


def _standing(history: Sequence[Happening]) -> list[Happening]:
    """The history without refunds that a reorganisation took back."""
    found: list[Happening] = []
    for one in history:
        if one.kind == TAKEN_BACK:
            found = [each for each in found if each.txid != one.txid]
        else:
            found.append(one)
    return found


def _came_late(verdict: Verdict) -> bool:
    """True where an expired invoice has money that came late, or the whole sum.

    If the whole sum came in time, it was unknown when the invoice ended: no mempool showed it.
    """
    came_sats = sum(receipt.amount_sats for receipt in verdict.receipts)
    in_time_sats = verdict.received_sats - verdict.unconfirmed_sats
    is_enough = not verdict.missing_sats and not verdict.unconfirmed_sats
    return came_sats > in_time_sats or is_enough


def _older(verdict: Verdict, since: Sequence[Happening]) -> list[Receipt]:
    """The receipts among these events that settle the invoice, and may be older than it."""
    came = {happening.txid for happening in since if happening.kind == "payment"}
    return [
        receipt
        for receipt in verdict.receipts
        if receipt.settles and receipt.may_be_older and receipt.txid in came
    ]


def _taken_back(since: Sequence[Happening]) -> set[str]:
    """The transactions that were undone, and have neither come back nor been replaced."""
    gone: set[str] = set()
    for happening in since:
        if happening.kind == "undone":
            gone.add(happening.txid)
        elif happening.kind == "paid":
            gone.clear()
        elif happening.kind == "payment":
            gone.discard(happening.txid)
    return gone


def _overpaid_sats(
    invoice: Invoice, verdict: Verdict, since: Sequence[Happening]
) -> int:
    """Satoshis beyond the amount of a paid invoice that came since a human's last word."""
    came = {happening.txid for happening in since if happening.kind == "payment"}
    unapplied_sats = sum(
        receipt.amount_sats
        for receipt in verdict.receipts
        if receipt.txid in came and not receipt.settles
    )
    if any(happening.kind == "paid" for happening in since):
        settled_sats = sum(
            receipt.amount_sats for receipt in verdict.receipts if receipt.settles
        )
        unapplied_sats += (
            max(0, settled_sats - invoice.amount_sats) + invoice.overpaid_sats
        )
    # A refund before any money that came since sent back what had come earlier.
    after = dropwhile(lambda one: one.kind != "payment", since)
    return max(
        0,
        unapplied_sats - sum(one.amount_sats for one in after if one.kind == SENT_BACK),
    )
