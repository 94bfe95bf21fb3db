"""Who is told of events by webhook, and what is on its way to them."""

from peewee import Case, fn

from storage.database import needed, slot, slots
from storage.models import Merchant, PublicEvent, WebhookDelivery, WebhookEndpoint

_THIS = WebhookEndpoint.id == slot("id")

ADD = WebhookEndpoint.insert(
    needed(WebhookEndpoint)
    | slots(
        WebhookEndpoint.url,
        WebhookEndpoint.command,
        WebhookEndpoint.kinds,
        WebhookEndpoint.secret,
    )
)
BY_ID = WebhookEndpoint.select().where(_THIS)
REMOVE = WebhookEndpoint.delete().where(_THIS)
# Those that work first: who has been failing for longest is tried last.
ENABLED = (
    WebhookEndpoint.select()
    .where(WebhookEndpoint.disabled_at.is_null())
    .order_by(
        WebhookEndpoint.failing_since.is_null(False),
        WebhookEndpoint.failing_since.desc(),
        WebhookEndpoint.id,
    )
)
_PENDING = WebhookDelivery.select(fn.COUNT(WebhookDelivery.event_seq)).where(
    (WebhookDelivery.endpoint_id == WebhookEndpoint.id) & WebhookDelivery.next_at.is_null(False)
)
# Without secrets.
LIST = (
    WebhookEndpoint.select(
        WebhookEndpoint.id,
        Merchant.name.alias("merchant"),
        WebhookEndpoint.url,
        WebhookEndpoint.command,
        WebhookEndpoint.kinds,
        _PENDING.alias("pending"),
        WebhookEndpoint.failing_since.alias("failing_since_at"),
        WebhookEndpoint.disabled_at,
        WebhookEndpoint.disabled_reason,
        WebhookEndpoint.created_at,
    )
    .join(Merchant, on=(Merchant.id == WebhookEndpoint.merchant_id))
    .order_by(WebhookEndpoint.created_at, WebhookEndpoint.id)
)
ROTATE = WebhookEndpoint.update(
    {
        WebhookEndpoint.old_secret: WebhookEndpoint.secret,
        WebhookEndpoint.old_until_at: slot("until"),
        WebhookEndpoint.secret: slot("secret"),
    }
).where(_THIS & (WebhookEndpoint.secret == slot("was")))
DISABLE = WebhookEndpoint.update(
    {WebhookEndpoint.disabled_at: slot("at"), WebhookEndpoint.disabled_reason: slot("reason")}
).where(_THIS & WebhookEndpoint.disabled_at.is_null())
ENABLE = WebhookEndpoint.update(
    {
        WebhookEndpoint.disabled_at: None,
        WebhookEndpoint.disabled_reason: None,
        WebhookEndpoint.failing_since: None,
    }
).where(_THIS)
WORKS = WebhookEndpoint.update({WebhookEndpoint.failing_since: None}).where(
    _THIS & WebhookEndpoint.failing_since.is_null(False)
)
FAILS = WebhookEndpoint.update({WebhookEndpoint.failing_since: slot("at")}).where(
    _THIS & WebhookEndpoint.failing_since.is_null()
)

_DELIVERY = (WebhookDelivery.event_seq == slot("event_seq")) & (
    WebhookDelivery.endpoint_id == slot("endpoint_id")
)
# One row an endpoint and event; the second insert changes nothing.
ADD_DELIVERY = WebhookDelivery.insert(
    slots(WebhookDelivery.event_seq, WebhookDelivery.endpoint_id, WebhookDelivery.next_at)
    | {WebhookDelivery.attempts: 0}
).on_conflict_ignore()
DUE = (
    WebhookDelivery.select(
        WebhookDelivery.event_seq,
        WebhookDelivery.endpoint_id,
        WebhookDelivery.attempts,
        PublicEvent,
    )
    .join(PublicEvent, on=(PublicEvent.seq == WebhookDelivery.event_seq))
    .where(
        (WebhookDelivery.endpoint_id == slot("endpoint_id"))
        & (WebhookDelivery.next_at <= slot("now"))
    )
    .order_by(WebhookDelivery.next_at, WebhookDelivery.event_seq)
    .limit(slot("limit"))
)
# Whoever else has tried it meanwhile has counted an attempt.
TRIED = WebhookDelivery.update(
    {
        WebhookDelivery.attempts: WebhookDelivery.attempts + 1,
        WebhookDelivery.next_at: slot("next_at"),
        WebhookDelivery.tried_at: slot("at"),
        WebhookDelivery.delivered_at: slot("delivered_at"),
        WebhookDelivery.status: slot("status"),
        WebhookDelivery.answer: slot("answer"),
    }
).where(
    _DELIVERY
    & (WebhookDelivery.attempts == slot("attempts"))
    & WebhookDelivery.next_at.is_null(False)
)
GIVE_UP = WebhookDelivery.update({WebhookDelivery.next_at: None}).where(
    (WebhookDelivery.endpoint_id == slot("endpoint_id")) & WebhookDelivery.next_at.is_null(False)
)
AGAIN = WebhookDelivery.update(
    {
        WebhookDelivery.attempts: 0,
        WebhookDelivery.next_at: slot("at"),
        WebhookDelivery.delivered_at: None,
    }
).where(_DELIVERY)
FAILED_AGAIN = WebhookDelivery.update(
    {WebhookDelivery.attempts: 0, WebhookDelivery.next_at: slot("at")}
).where(
    (WebhookDelivery.endpoint_id == slot("endpoint_id"))
    & WebhookDelivery.next_at.is_null()
    & WebhookDelivery.delivered_at.is_null()
)
STATE = Case(
    None,
    [
        (WebhookDelivery.delivered_at.is_null(False), "delivered"),
        (WebhookDelivery.next_at.is_null(False), "waiting"),
    ],
    "given up",
)
DELIVERIES = (
    WebhookDelivery.select(
        WebhookDelivery.endpoint_id,
        PublicEvent.number,
        PublicEvent.id.alias("event_id"),
        PublicEvent.kind,
        STATE.alias("state"),
        WebhookDelivery.attempts,
        WebhookDelivery.status,
        WebhookDelivery.tried_at,
        WebhookDelivery.next_at,
        WebhookDelivery.answer,
    )
    .join(PublicEvent, on=(PublicEvent.seq == WebhookDelivery.event_seq))
    .where(WebhookDelivery.endpoint_id == slot("endpoint_id"))
    .order_by(WebhookDelivery.event_seq.desc())
    .limit(slot("limit"))
)
# Nothing is forgotten that waits to be delivered.
OLDEST_WAITING = (
    WebhookDelivery.select(
        fn.MIN(PublicEvent.number).alias("number"), fn.MIN(PublicEvent.happened_at).alias("at")
    )
    .join(PublicEvent, on=(PublicEvent.seq == WebhookDelivery.event_seq))
    .where(WebhookDelivery.next_at.is_null(False))
)
EVENT_OF_ID = PublicEvent.select().where(
    (PublicEvent.id == slot("id")) & (PublicEvent.merchant_id == slot("merchant_id"))
)
