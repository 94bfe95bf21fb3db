"""Converts the history of an invoice to the events that `btcpay.settlement` uses."""

import json
from collections.abc import Iterable

from btcpay.settlement.history import Happening
from btcpay.values.errors import BadRow
from storage.models import Event
from storage.queries.events import Kind

_REFUNDED = (Kind.REFUND_SENT, Kind.REFUND_AGAIN, Kind.REFUND_UNDONE)


def happenings_of(history: Iterable[Event]) -> list[Happening]:
    """Returns the events that can change whether the invoice needs attention, in order.

    `history` has the rows of the query `events.OF_MONEY`. Raises BadRow if the detail of
    an event is no JSON.
    """
    happenings = []
    for entry in history:
        happening = _happening(entry)
        if happening is not None:
            happenings.append(happening)
    return happenings


def _happening(entry: Event) -> Happening | None:
    """Converts an event of the invoice's history to the value that settlement uses.

    Returns None for a reorganisation that undid an output before it counted as a
    payment. Raises BadRow if the event's detail is no JSON.
    """
    try:
        detail = json.loads(entry.detail)
    except ValueError:
        raise BadRow(f"{entry.detail!r} is no detail of an event") from None
    kind = entry.kind
    if kind == Kind.REORGANISED:
        was_payment = "id" in detail
        if not was_payment:
            return None
        return Happening("undone", detail["txid"])
    if kind == Kind.PAID and "settled_reason" in detail:
        return Happening("settled")
    if kind in _REFUNDED:
        outpoint = f"{detail['txid']}:{detail['vout']}"
        return Happening(kind, outpoint, detail["amount_sats"])
    return Happening(kind, detail.get("txid", ""))
