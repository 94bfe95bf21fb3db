"""The events that follow from a scan or a reorganisation, in order. Pure."""

from collections.abc import Iterable, Sequence

from btcpay.notify.kinds import EventKind
from btcpay.notify.publish import News
from btcpay.settlement.settle import Change, Outcome
from storage.models import Payment

_SEEN, _VANISHED = ("seen", "seen again"), ("vanished",)


def news_of(outcome: Outcome, made: Sequence[Payment], status: str) -> list[News]:
    """The events of a scan that `made` payments, for an invoice of that status.

    An output that counts at once is not first announced as on its way.
    """
    counted = {payment.tx_hash for payment in made}
    on_its_way = [one for one in outcome.changes if one.after.txid not in counted]
    news = _of_transactions(EventKind.INVOICE_PAYMENT_SEEN, on_its_way, _SEEN)
    news += _of_transactions(EventKind.INVOICE_PAYMENT_VANISHED, outcome.changes, _VANISHED)
    found = {one.after.txid for one in outcome.changes if one.kind in _SEEN}
    for payment in made:
        one = _of_payment(EventKind.PAYMENT_RECEIVED, payment)
        news.append(News(one.kind, {**one.detail, "is_first_seen": payment.tx_hash in found}))
    ended = outcome.verdict.status
    return news + ([News(EventKind(f"invoice.{ended}"))] if ended != status else [])


def undone(rows: Iterable[Payment], reopened: bool) -> list[News]:
    news = [_of_payment(EventKind.PAYMENT_UNDONE, row) for row in rows]
    return news + ([News(EventKind.INVOICE_REOPENED)] if reopened else [])


def _of_transactions(
    kind: EventKind, changes: Iterable[Change], words: Sequence[str]
) -> list[News]:
    """One for each transaction, with the sum of its outputs to the address."""
    sums: dict[str, int] = {}
    for change in changes:
        if change.kind in words:
            txid = change.after.txid
            sums[txid] = sums.get(txid, 0) + change.after.amount_sats
    return [
        News(kind, {"transaction": {"tx_hash": txid, "amount_sats": amount_sats}})
        for txid, amount_sats in sums.items()
    ]


def _of_payment(kind: EventKind, row: Payment) -> News:
    return News(kind, {"payment": {one.name: getattr(row, one.name) for one in Payment.PUBLIC}})
