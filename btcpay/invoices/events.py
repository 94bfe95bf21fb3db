"""Invoices' history, their end, and their need for attention."""

import json
import logging
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from datetime import datetime
from typing import Any, NamedTuple

from btcpay import hooks
from btcpay.invoices.part_work import Work, guard
from btcpay.invoices.status import beside_sats, figures, invoice_of, verdict_on
from btcpay.merchants.account import dust_limit_of
from btcpay.notify.kinds import EventKind
from btcpay.notify.publish import NewEvent, News, publish
from btcpay.settings.settings import Settings
from btcpay.settlement.attention import Happening, reason_for, stake_sats
from btcpay.settlement.values import Verdict
from btcpay.values.errors import BadRow, Refused
from btcpay.values.money import stored_amount, to_minor, value_of
from btcpay.values.statuses import InvoiceStatus
from btcpay.values.times import to_ms
from storage import at_once
from storage.database import Database, Values, grouped
from storage.models import Event, Invoice
from storage.queries import attentions, blocks, events, invoices, payments
from storage.queries.events import Kind

log = logging.getLogger(__name__)

_ATTENTION = News(EventKind.INVOICE_ATTENTION)
_REFUNDED = (Kind.REFUND_SENT, Kind.REFUND_AGAIN, Kind.REFUND_UNDONE)


class End(NamedTuple):
    """An invoice's end: `tx_hash` and `paid_at` of a paid one.

    `detail`, for the history, has the `reason`, and as `settled_reason` the owner's.
    """

    row: Invoice
    status: InvoiceStatus
    detail: dict[str, Any]
    tx_hash: str | None = None
    paid_at: int | None = None


def finish(db: Database, ends: Sequence[End], now: datetime) -> None:
    """Ends invoices that still have the status of their rows, and records why.

    Raises Refused (`changed`), which undoes the transaction, when a status has changed since.
    """
    ended: list[Values] = [
        {
            "tx_hash": one.tx_hash,
            "paid_at": one.paid_at,
            "settled_reason": one.detail.get("settled_reason"),
            "status": one.status,
            "finished_at": to_ms(now),
            "id": one.row.id,
            "from_status": one.row.status,
        }
        for one in ends
    ]
    if at_once.run(db, invoices.FINISH, ended) != len(ended):
        row = ends[0].row  # of several, any
        raise Refused(
            "changed", f"invoice {row.id} is not {row.status} any more; try again"
        )
    told = [
        history_entry(one.row.id, Kind(one.status), one.detail, now) for one in ends
    ]
    at_once.run(db, events.RECORD, told)


def history_entry(
    invoice_id: str, kind: Kind, detail: dict[str, Any], now: datetime
) -> Values:
    """An entry for `events.RECORD`. Raises ValueError for a kind that is not declared."""
    return {
        "invoice_id": invoice_id,
        "kind": Kind(kind).value,
        "detail": json.dumps(detail),
        "happened_at": to_ms(now),
    }


def record(
    db: Database, invoice_id: str, kind: Kind, detail: dict[str, Any], now: datetime
) -> None:
    """Adds to the invoice's history, as `history_entry` has it."""
    db.run(events.RECORD, **history_entry(invoice_id, kind, detail, now))


def update_attention(
    db: Database,
    settings: Settings,
    invoice_id: str,
    now: datetime,
    news: Sequence[News] = (),
) -> str | None:
    """`update_attentions` of one invoice; returns the reason, or None."""
    return update_attentions(db, settings, {invoice_id: news}, now)[invoice_id]


def update_attentions(
    db: Database, settings: Settings, news: Mapping[str, Sequence[News]], now: datetime
) -> dict[str, str | None]:
    """Decides again whether invoices need attention; the reasons by their ids, None for no reason.

    Those whose excess depends on these are decided again too.
    Stores the amounts received for pages, and publishes each one's `news` and a new reason with the
    final state. Call it in the transaction of the change, behind the balance's lock. Raises BadRow.
    """
    rows = _with_related(
        db, at_once.rows(db, invoices.WHOLE, [{"id": id} for id in news])
    )
    ids: list[Values] = [{"invoice_id": row.id} for row in rows]
    outputs = grouped(at_once.rows(db, payments.ALIVE, ids), lambda one: one.invoice_id)
    histories = grouped(
        at_once.rows(db, events.OF_MONEY, ids), lambda one: one.invoice_id
    )
    before = {
        row.invoice_id: row.reason
        for row in at_once.rows(db, attentions.OF_INVOICE, ids)
    }
    tip_height = blocks.tip_height(db) or 0
    verdicts = [
        (row, verdict_on(outputs[row.id], settings, row, now, tip_height))
        for row in rows
    ]
    at_once.run(db, invoices.KEEP, [figures(*one, tip_height) for one in verdicts])
    reasons: dict[str, str | None] = {}
    wanted: list[Values] = []
    told: list[NewEvent] = []
    for row, verdict in verdicts:
        history = histories[row.id]
        reason, at_stake_sats = _decided(db, row, verdict, history, now, len(rows) == 1)
        reasons[row.id] = reason
        if reason:
            wanted.append(_wanted(row, reason, at_stake_sats, now))
        is_new = reason is not None and before.get(row.id) != reason
        state = _state(row, verdict, reason)
        told += [
            NewEvent(row, each, state)
            for each in (*news.get(row.id, ()), *[_ATTENTION] * is_new)
        ]
    cleared: list[Values] = [{"invoice_id": id} for id in before if reasons[id] is None]
    at_once.run(db, attentions.CLEAR, cleared)
    at_once.run(db, attentions.WANT, wanted)
    publish(db, told, now)
    return reasons


def _with_related(db: Database, rows: Sequence[Invoice]) -> list[Invoice]:
    """These invoices, and those whose attention depends on what came to them."""
    known = {row.id for row in rows}
    related = {
        id for part in hooks.of(hooks.InvoiceSums) for id in part.related_ids(db, rows)
    }
    others: list[Values] = [{"id": id} for id in sorted(related - known)]
    return [*rows, *at_once.rows(db, invoices.WHOLE, others)]


def _decided(
    db: Database,
    row: Invoice,
    verdict: Verdict,
    events: Iterable[Event],
    now: datetime,
    is_alone: bool,
) -> tuple[str | None, int]:
    """The reason, and the satoshis at stake, after the parts have counted what was received."""
    overpaid_sats = sum(
        _recounted_sats(db, part, hook, row, now, is_alone)
        for part, hook in hooks.by_part(hooks.InvoiceSums).items()
    )
    invoice = replace(invoice_of(row), overpaid_sats=overpaid_sats)
    history = list(filter(None, map(_happening, events)))
    reason = reason_for(invoice, verdict, history, dust_limit_of(row.script))
    return reason, stake_sats(reason, invoice, verdict, history) if reason else 0


def _recounted_sats(
    db: Database,
    part: str,
    hook: hooks.InvoiceSums,
    row: Invoice,
    now: datetime,
    is_alone: bool,
) -> int:
    """The satoshis beyond what a part asked for, when it has counted what the invoice received.

    A part that fails keeps no invoice from its money: it counts again later. Of many invoices its
    error is raised, and the caller settles each half of them by itself, down to one that is alone.
    """

    def count() -> int:
        return hook.recount(db, row, now)

    work = Work(part, "money", invoice_id=row.id)
    if is_alone:
        return guard(db, work, now, count, 0)
    return count()


def _wanted(row: Invoice, reason: str, at_stake_sats: int, now: datetime) -> Values:
    value = value_of(at_stake_sats, stored_amount(row.price), row.currency)
    return {
        "invoice_id": row.id,
        "merchant_id": row.merchant_id,
        "reason": reason,
        "since_at": to_ms(now),
        "stake_minor": to_minor(value, row.currency),
    }


def _state(row: Invoice, verdict: Verdict, reason: str | None) -> dict[str, Any]:
    return {
        "status": row.status,
        "tx_hash": row.tx_hash,
        "paid_at": row.paid_at,
        "received_sats": verdict.received_sats,
        "unconfirmed_sats": verdict.unconfirmed_sats,
        "missing_sats": verdict.missing_sats,
        "beside_sats": beside_sats(verdict),
        "attention": reason,
    }


def try_update_attention(
    db: Database,
    settings: Settings,
    invoice_id: str,
    now: datetime,
    news: Sequence[News],
) -> None:
    """`update_attention` for a loop over invoices: a spoiled row stops none of the others."""
    try:
        update_attention(db, settings, invoice_id, now, news)
    except BadRow:
        log.exception(
            "the state of invoice %s is unknown: a row is damaged", invoice_id
        )


def _happening(event: Event) -> Happening | None:
    """None when a reorganisation took back an output that was no payment yet."""
    try:
        kind = event.kind
        detail = json.loads(event.detail)
    except ValueError:
        raise BadRow(f"{event.detail!r} is no detail of an event") from None
    if kind == Kind.REORGANISED:
        if "id" in detail:
            return Happening("undone", detail["txid"])
        return None
    if kind == Kind.PAID and "settled_reason" in detail:
        return Happening("settled")
    if kind in _REFUNDED:
        return Happening(
            kind, f"{detail['txid']}:{detail['vout']}", detail["amount_sats"]
        )
    return Happening(kind, detail.get("txid", ""))
