"""Decides whether invoices need the owner's attention, after their payments change."""

import logging
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from datetime import datetime
from functools import partial
from typing import Any, NamedTuple

from btcpay import hooks
from btcpay.invoices.happenings import happenings_of
from btcpay.invoices.part_work import Work, isolate
from btcpay.invoices.status import figures, invoice_of, unapplied_sats, verdict_on
from btcpay.merchants.account import dust_limit_of
from btcpay.notify.kinds import EventKind
from btcpay.notify.publish import NewEvent, News, publish
from btcpay.settings.settings import Settings
from btcpay.settlement.attention import reason_for, stake_sats
from btcpay.settlement.values import Verdict
from btcpay.values.errors import BadRow
from btcpay.values.money import stored_amount, to_minor, value_of
from btcpay.values.times import to_ms
from storage import at_once
from storage.database import Database, Values, group_by
from storage.models import Event, Invoice
from storage.queries import attentions, blocks, events, invoices, payments

log = logging.getLogger(__name__)

_ATTENTION = News(EventKind.INVOICE_ATTENTION)
# Why each invoice needs attention, by its id; None if it needs none.
Reasons = dict[str, str | None]


class _Case(NamedTuple):
    """An invoice, the verdict on its outputs, and its events that concern money.

    The verdict says how much was received, and what is still missing.
    """

    row: Invoice
    verdict: Verdict
    history: list[Event]


class _Decision(NamedTuple):
    """An invoice, and why it needs attention; the reason is None if it needs none.

    `at_stake_sats` is the amount that the reason is about.
    """

    case: _Case
    reason: str | None
    at_stake_sats: int


def update_attention(
    db: Database,
    settings: Settings,
    invoice_id: str,
    now: datetime,
    news: Sequence[News] = (),
) -> str | None:
    """Calls `update_attentions` for one invoice; `news` are what has happened to it.

    Returns the reason why the invoice needs attention; None if it needs none. Raises
    BadRow if a stored value is invalid.
    """
    return update_attentions(db, settings, {invoice_id: news}, now)[invoice_id]


def try_update_attention(
    db: Database,
    settings: Settings,
    invoice_id: str,
    now: datetime,
    news: Sequence[News],
) -> None:
    """Calls `update_attention`, and logs a BadRow instead of raising it.

    So an invalid stored value does not stop a loop over invoices.
    """
    try:
        update_attention(db, settings, invoice_id, now, news)
    except BadRow:
        log.exception(
            "the state of invoice %s is unknown: a row is damaged", invoice_id
        )


def update_attentions(
    db: Database,
    settings: Settings,
    news: Mapping[str, Sequence[News]],
    now: datetime,
) -> Reasons:
    """Decides whether invoices need attention, and publishes their events.

    `news` maps the id of each invoice to what has happened to it, perhaps nothing.

    1. Adds other invoices whose attention depends on these.
    2. Stores the received amounts that pages show.
    3. Decides and stores why each invoice needs attention, if it does.
    4. Publishes the events in `news`, and one more for each invoice that needs
       attention for a new reason. All of them contain the invoice's state after step 3.

    Returns the reason of each invoice by its id; None if it needs no attention. Call
    this function in the database transaction that changes the payments or the status,
    after you lock the merchants' balances. Raises BadRow if a stored value is invalid.
    """
    own_rows = at_once.rows(db, invoices.WHOLE, [{"id": id} for id in news])
    rows = _with_related(db, own_rows)
    ids: list[Values] = [{"invoice_id": row.id} for row in rows]
    stored = at_once.rows(db, attentions.OF_INVOICE, ids)
    former_reasons = {attention.invoice_id: attention.reason for attention in stored}
    tip_height = blocks.tip_height(db) or 0
    cases = _read_cases(db, settings, rows, now, tip_height)
    page_figures = [figures(case.row, case.verdict, tip_height) for case in cases]
    at_once.run(db, invoices.KEEP, page_figures)
    decisions = [_decide(db, case, now, is_alone=len(cases) == 1) for case in cases]
    _store(db, decisions, former_reasons, now)
    publish(db, _new_events(decisions, former_reasons, news), now)
    return {decision.case.row.id: decision.reason for decision in decisions}


def _new_events(
    decisions: Iterable[_Decision],
    former_reasons: Mapping[str, str],
    news: Mapping[str, Sequence[News]],
) -> list[NewEvent]:
    """Returns the events to publish: those in `news`, and one for each new reason.

    `former_reasons` are the stored reasons, by invoice id.
    """
    new_events: list[NewEvent] = []
    for decision in decisions:
        row = decision.case.row
        invoice_news = list(news.get(row.id, ()))
        has_new_reason = decision.reason != former_reasons.get(row.id)
        if decision.reason is not None and has_new_reason:
            invoice_news.append(_ATTENTION)
        state = _state_of(decision)
        new_events += [NewEvent(row, item, state) for item in invoice_news]
    return new_events


def _store(
    db: Database,
    decisions: Iterable[_Decision],
    former_reasons: Mapping[str, str],
    now: datetime,
) -> None:
    """Stores which invoices need attention, and which no longer need it.

    `former_reasons` are the stored reasons, by invoice id.
    """
    needs: list[Values] = []
    cleared: list[Values] = []
    for decision in decisions:
        id = decision.case.row.id
        if decision.reason is not None:
            needs.append(_columns(decision, decision.reason, now))
        elif id in former_reasons:
            cleared.append({"invoice_id": id})
    at_once.run(db, attentions.CLEAR, cleared)
    at_once.run(db, attentions.WANT, needs)


def _with_related(db: Database, rows: Sequence[Invoice]) -> list[Invoice]:
    """Returns these invoices, and others whose attention depends on them."""
    related: set[str] = set()
    for hook in hooks.of(hooks.InvoiceSums):
        related |= hook.related_ids(db, rows)
    other_ids = related - {row.id for row in rows}
    others: list[Values] = [{"id": id} for id in sorted(other_ids)]
    return [*rows, *at_once.rows(db, invoices.WHOLE, others)]


def _read_cases(
    db: Database,
    settings: Settings,
    rows: Sequence[Invoice],
    now: datetime,
    tip_height: int,
) -> list[_Case]:
    """Returns each invoice with its verdict and its events that concern money.

    Raises BadRow if a stored value is invalid.
    """
    ids: list[Values] = [{"invoice_id": row.id} for row in rows]
    all_outputs = at_once.rows(db, payments.ALIVE, ids)
    outputs = group_by(all_outputs, lambda output: output.invoice_id)
    all_entries = at_once.rows(db, events.OF_MONEY, ids)
    histories = group_by(all_entries, lambda entry: entry.invoice_id)
    cases = []
    for row in rows:
        verdict = verdict_on(outputs[row.id], settings, row, now, tip_height)
        cases.append(_Case(row, verdict, histories[row.id]))
    return cases


def _decide(
    db: Database,
    case: _Case,
    now: datetime,
    is_alone: bool,
) -> _Decision:
    """Decides whether the invoice needs attention, and why.

    First, parts (optional plug-ins) recount the totals that the invoice belongs to, such
    as that of a bill. `is_alone` is True if no other invoice is decided in this
    transaction.
    """
    row = case.row
    verdict = case.verdict
    overpaid_sats = 0
    for part, hook in hooks.by_part(hooks.InvoiceSums).items():
        overpaid_sats += _recount_total(db, part, hook, row, now, is_alone=is_alone)
    invoice = replace(invoice_of(row), overpaid_sats=overpaid_sats)
    history = happenings_of(case.history)
    reason = reason_for(invoice, verdict, history, dust_limit_of(row.script))
    if reason is None:
        return _Decision(case, None, 0)
    at_stake_sats = stake_sats(reason, invoice, verdict, history)
    return _Decision(case, reason, at_stake_sats)


def _recount_total(
    db: Database,
    part: str,
    hook: hooks.InvoiceSums,
    row: Invoice,
    now: datetime,
    is_alone: bool,
) -> int:
    """Makes a part (an optional plug-in) recount the total that the invoice belongs to.

    Returns the satoshis of this invoice that exceed the total. If the part fails for a
    single invoice (`is_alone`), returns 0, and the recount is retried later: the failure
    must not keep the invoice from being paid. If the part fails for one of several
    invoices, its error is raised. The caller then tries each half of them, down to single
    invoices.
    """
    recount = partial(hook.recount, db, row, now)
    if not is_alone:
        return recount()
    work = Work(part, "money", invoice_id=row.id)
    return isolate(db, work, now, recount, otherwise=0)


def _columns(decision: _Decision, reason: str, now: datetime) -> Values:
    """Returns the parameters of the statement `attentions.WANT`."""
    row = decision.case.row
    price = stored_amount(row.price)
    value = value_of(decision.at_stake_sats, price, row.currency)
    return {
        "invoice_id": row.id,
        "merchant_id": row.merchant_id,
        "reason": reason,
        "since_ms": to_ms(now),
        "stake_minor": to_minor(value, row.currency),
    }


def _state_of(decision: _Decision) -> dict[str, Any]:
    """Returns the invoice's state, as its events contain it."""
    row = decision.case.row
    verdict = decision.case.verdict
    return {
        "status": row.status,
        "tx_hash": row.tx_hash,
        "paid_ms": row.paid_ms,
        "received_sats": verdict.received_sats,
        "unconfirmed_sats": verdict.unconfirmed_sats,
        "missing_sats": verdict.missing_sats,
        "unapplied_sats": unapplied_sats(verdict),
        "attention": decision.reason,
        "stake_sats": decision.at_stake_sats,
    }
