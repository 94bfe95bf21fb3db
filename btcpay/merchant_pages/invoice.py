"""One invoice: its whole story, and the owner's last word on it."""

import json
from collections.abc import Callable
from decimal import Decimal
from typing import Any

from flask import Response

from btcpay.invoices import by_hand
from btcpay.invoices.story import Story, story_of
from btcpay.merchant_pages.area import Area
from btcpay.merchant_pages.visit import Visit
from btcpay.values.errors import CommandError, NotFound, Refused
from btcpay.values.ids import is_id
from btcpay.web.pages.languages import gettext
from storage.queries import invoices

MOST_SHOWN = 100  # outputs, and events: who sends much dust to an address makes no endless page
MOST_REASON = 300  # characters
# What a form that came to nothing has the page say; the words are the template's.
CHANGED = "changed"


def add(area: Area) -> None:
    """Serves /merchant/invoices/<id> and what can be decided there."""
    area.get("/invoices/<id>", show)
    area.post("/invoices/<id>/accept", accept)
    area.post("/invoices/<id>/set-aside", set_aside)
    area.post("/invoices/<id>/cancel", cancel)


def show(visit: Visit, id: str) -> Response:
    """What was asked for, what came, how it stands and why, what happened; what can be done."""
    story = _own_story(visit, id)
    alive_sats = sum(one["amount_sats"] for one in story.outputs if one["vanished_at"] is None)
    return visit.page(
        "invoice.html",
        story=story,
        row=story.row,
        amount_usd=Decimal(story.row["amount_usd_quote"]),
        price_usd=Decimal(story.row["price_usd"]),
        came_sats=alive_sats,
        can_accept=story.row["status"] != "paid" and bool(story.verdict.receipts),
        payer_url=f"{visit.service.settings.base_url}/pay/{id}",
        outputs=story.outputs[:MOST_SHOWN],
        happenings=_shown_events(story),
        most_shown=MOST_SHOWN,
    )


def _own_story(visit: Visit, id: str) -> Story:
    """Raises NotFound for what is no invoice of this merchant's."""
    service = visit.service
    try:
        story = story_of(service.db, service.settings, _plausible(id), visit.now)
    except CommandError:
        raise _no_such() from None
    if story.row["merchant_id"] != visit.merchant_id:
        raise _no_such()
    return story


def _shown_events(story: Story) -> list[dict[str, Any]]:
    """The newest first."""
    newest = story.events[: -MOST_SHOWN - 1 : -1]
    return [event | {"detail": json.loads(event["detail"])} for event in newest]


def accept(visit: Visit, id: str) -> Response:
    """What came counts as the whole payment."""
    reason = _reason(visit) or gettext("Accepted as it came")
    return _decide(visit, id, "accepted", by_hand.settle, reason=reason)


def set_aside(visit: Visit, id: str) -> Response:
    """Off the list of what needs the merchant, until something new happens."""
    reason = _reason(visit) or gettext("Settled with the customer")
    return _decide(visit, id, "set_aside", by_hand.dismiss, reason=reason)


def cancel(visit: Visit, id: str) -> Response:
    """Nobody shall pay it any more."""
    force = visit.form.get("force") == "yes"
    where = "on the merchant's pages"
    return _decide(visit, id, "canceled", by_hand.cancel, force=force, where=where)


def _decide(visit: Visit, id: str, done: str, decision: Callable[..., Any], **how: Any) -> Response:
    """Back to where the form was; what a second press finds done already is told as it stands."""
    service = visit.service
    own = {"id": _plausible(id), "merchant_id": visit.merchant_id}
    if service.db.row(invoices.BY_ID, **own) is None:
        raise _no_such()
    try:
        decision(service.db, service.settings, id, now=visit.now, **how)
    except Refused as refused:
        done = refused.code
    except CommandError:
        done = CHANGED
    if visit.form.get("back") == "attention":
        return visit.to("/attention", done=done)
    return visit.to(f"/invoices/{id}", done=done)


def _plausible(id: str) -> str:
    """Raises NotFound for what can be no invoice's id: nothing else is looked up."""
    if not is_id("inv", id):
        raise _no_such()
    return id


def _no_such() -> NotFound:
    return NotFound("there is no such invoice")


def _reason(visit: Visit) -> str:
    """Whatever was typed, in one line."""
    return " ".join(visit.form.get("reason", "").replace("\0", "").split())[:MOST_REASON]
