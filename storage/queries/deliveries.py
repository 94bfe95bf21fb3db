"""The outbox: deliveries of events and mails to receivers, pending or finished."""

from peewee import JOIN, Case, Tuple, Value, fn

from btcpay.values.statuses import DeliveryState
from storage.models import Delivery, MerchantMail, PublicEvent, Receiver
from storage.queries.receivers import MAIL, MAILS
from storage.queries.sessions import LINK_LIFE_MS
from storage.statement import eq, param, params, required_columns, rows_as

_THIS = eq(Delivery.receiver_id, Delivery.about)
_OF_RECEIVER = eq(Delivery.receiver_id)
_WAITS = Delivery.next_ms.is_null(False)
_Earlier = Delivery.alias()
_EarlierEvent = PublicEvent.alias()
_IS_EARLIER = (
    (_Earlier.receiver_id == Delivery.receiver_id)
    & (_Earlier.line == Delivery.line)
    & (
        Tuple(_Earlier.event_seq, _Earlier.about)
        < Tuple(Delivery.event_seq, Delivery.about)
    )
)
# Deliveries of one line must arrive in order: only its first pending one may be sent.
_FIRST_IN_LINE = Delivery.line.is_null() | ~fn.EXISTS(
    _Earlier.select(1).where(_IS_EARLIER, _Earlier.next_ms.is_null(False))
)
_OF_MAILS = Delivery.receiver_id.in_(
    Receiver.select(Receiver.id).where(Receiver.transport << MAILS)
)

# One row for each receiver and subject (`about`). A second insert changes nothing.
ADD = Delivery.insert(
    required_columns(Delivery)
    | params(Delivery.event_seq, Delivery.next_ms, Delivery.line)
    | {Delivery.attempts: 0}
).on_conflict("NOTHING")
# A mail that no event causes; it is due at `created_ms`.
ADD_MAIL = Delivery.insert(
    required_columns(Delivery)
    | {Delivery.next_ms: param("created_ms"), Delivery.attempts: 0}
).on_conflict("NOTHING")


class Due(PublicEvent, Delivery):
    """A delivery with its event.

    The event's columns are NULL for a mail without an event.
    """


_WHOLE = rows_as(
    Due,
    Delivery.select(
        *(Delivery.receiver_id, Delivery.about, Delivery.attempts, Delivery.first_ms),
        *(Delivery.created_ms, Delivery.line, Delivery.held_until, Delivery.doubted_ms),
        PublicEvent,
    )
    .join(PublicEvent, JOIN.LEFT_OUTER, on=(PublicEvent.seq == Delivery.event_seq))
    .where(_OF_RECEIVER, _WAITS)
    .limit(param("limit")),
)
# Fewest attempts first, so that an event that always fails does not block later ones.
DUE = _WHOLE.where(Delivery.next_ms <= param("until"), _FIRST_IN_LINE).order_by(
    Delivery.attempts, Delivery.next_ms, Delivery.event_seq
)
# A mail that is scheduled for later is not sent before its time.
_IS_WRITTEN = Delivery.event_seq.is_null(False) | (Delivery.created_ms <= param("now"))
# A delivery that may already have been sent is not sent again before its next attempt is due.
_MAY_BE_SENT = _IS_WRITTEN & (
    Delivery.doubted_ms.is_null() | (Delivery.next_ms <= param("now"))
)
# Deliveries are ordered by their events' numbers, which do not depend on clocks. Mails without an
# event come first.
_AGE = (fn.COALESCE(Delivery.event_seq, 0), Delivery.created_ms, Delivery.about)
_AGE_OF_LAST = (param("event_seq"), param("created_ms"), param("about"))
# All pending deliveries, oldest first. A page starts after the last row of the page before.
OLDEST = _WHOLE.where(_MAY_BE_SENT, Tuple(*_AGE) > Tuple(*_AGE_OF_LAST)).order_by(*_AGE)
# A failing receiver is tried with its oldest delivery and with some of these: those with the fewest
# attempts come first.
LEAST_TRIED = _WHOLE.where(
    _MAY_BE_SENT, _FIRST_IN_LINE, Delivery.about != param("about")
).order_by(Delivery.attempts, *_AGE)
FELL_DUE = rows_as(
    tuple[int],
    Delivery.select(fn.COUNT(Delivery.about)).where(
        _OF_RECEIVER, Delivery.next_ms.between(param("since"), param("until"))
    ),
)
# Claims a delivery before it is sent. Another process's claim counts only if it ends between `now`
# and `until`, so that a wrong clock cannot extend it.
HOLD = Delivery.update({Delivery.held_until: param("until")}).where(
    _THIS,
    eq(Delivery.attempts),
    _WAITS,
    ~Delivery.held_until.between(param("now"), param("until"))
    | Delivery.held_until.is_null(),
)
# Stores an attempt. Changes nothing if another process has counted one in the meantime.
TRIED = Delivery.update(
    {
        Delivery.attempts: Delivery.attempts + 1,
        Delivery.first_ms: fn.COALESCE(Delivery.first_ms, param("at")),
        Delivery.next_ms: param("next_ms"),
        Delivery.tried_ms: param("at"),
        Delivery.delivered_ms: param("delivered_ms"),
        Delivery.status: param("status"),
        Delivery.answer: param("answer"),
        Delivery.held_until: param("held_until"),
        Delivery.doubted_ms: fn.COALESCE(Delivery.doubted_ms, param("doubted_ms")),
    }
).where(_THIS, eq(Delivery.attempts), _WAITS)
DROP = Delivery.delete().where(_THIS, _WAITS)
GIVE_UP = Delivery.update({Delivery.next_ms: None}).where(_OF_RECEIVER, _WAITS)
GIVE_UP_MAILS = Delivery.update(
    {Delivery.next_ms: None, Delivery.answer: "too late"}
).where(_WAITS, Delivery.created_ms < param("before"), _OF_MAILS)
_ANEW = {
    Delivery.attempts: 0,
    Delivery.first_ms: None,
    Delivery.doubted_ms: None,
    Delivery.next_ms: param("at"),
}
AGAIN = Delivery.update(_ANEW | {Delivery.delivered_ms: None}).where(_THIS)
# Adds a mail with a login link for each merchant who has this address, at most once in ten minutes.
LOGIN = "login"
ASK_LOGIN = Delivery.insert_from(
    Receiver.select(Receiver.id, Value(LOGIN), param("at"), Value(0), param("at"))
    .join(MerchantMail, on=(MerchantMail.merchant_id == Receiver.merchant_id))
    .where(Receiver.transport == MAIL, fn.LOWER(MerchantMail.address) == param("id")),
    [*required_columns(Delivery), Delivery.next_ms],
).on_conflict(
    conflict_target=[Delivery.receiver_id, Delivery.about],
    update=_ANEW | {Delivery.delivered_ms: None, Delivery.created_ms: param("at")},
    where=(Delivery.created_ms + LINK_LIFE_MS <= param("at")),
)
FAILED_AGAIN = Delivery.update(_ANEW).where(
    _OF_RECEIVER, Delivery.next_ms.is_null(), Delivery.delivered_ms.is_null()
)
# Does what FAILED_AGAIN does, unless a later delivery of the same line was delivered.
FAILED_AGAIN_IN_ORDER = FAILED_AGAIN.where(
    Delivery.about.not_in(
        _Earlier.select(_Earlier.about)
        .join(Delivery, on=_IS_EARLIER)
        .where(_OF_RECEIVER, Delivery.delivered_ms.is_null(False))
    )
)
WAITING_NOW = Delivery.update(params(Delivery.next_ms)).where(_OF_RECEIVER, _WAITS)
# Deletes old deliveries without an event; the others are deleted with their event.
FORGET = Delivery.delete().where(
    Delivery.event_seq.is_null(), Delivery.created_ms < param("before")
)

STATE = Case(
    None,
    [
        (Delivery.delivered_ms.is_null(False), DeliveryState.DELIVERED),
        (_WAITS, DeliveryState.WAITING),
    ],
    DeliveryState.GIVEN_UP,
)


class ListedDelivery(Delivery, PublicEvent):
    event_id: str
    waits_for: str | None


# The id of the event of the first pending delivery in the same line. Later deliveries wait until
# that one is delivered or given up.
_FIRST_OF_LINE = rows_as(
    tuple[str],
    _Earlier.select(_EarlierEvent.id)
    .join(_EarlierEvent, on=(_EarlierEvent.seq == _Earlier.event_seq))
    .where(_IS_EARLIER, _WAITS, _Earlier.next_ms.is_null(False))
    .order_by(_Earlier.event_seq, _Earlier.about)
    .limit(1),
)
LIST = rows_as(
    ListedDelivery,
    Delivery.select(
        *(Delivery.receiver_id, PublicEvent.number, PublicEvent.id.alias("event_id")),
        *(PublicEvent.kind, STATE.alias("state"), Delivery.attempts, Delivery.status),
        *(Delivery.tried_ms, Delivery.next_ms, Delivery.answer),
        _FIRST_OF_LINE.alias("waits_for"),
    )
    .join(PublicEvent, on=(PublicEvent.seq == Delivery.event_seq))
    .where(_OF_RECEIVER)
    .order_by(Delivery.event_seq.desc())
    .limit(param("limit")),
)


# The number and time of the oldest event with a pending delivery, which must be kept.
OLDEST_WAITING = rows_as(
    tuple[int | None, int | None],
    Delivery.select(fn.MIN(PublicEvent.number), fn.MIN(PublicEvent.happened_ms))
    .join(PublicEvent, on=(PublicEvent.seq == Delivery.event_seq))
    .where(_WAITS),
)
OLDEST_WEBHOOK = OLDEST_WAITING.join(
    Receiver, on=(Receiver.id == Delivery.receiver_id)
).where(Receiver.transport.not_in(MAILS))


# The number of mails, the creation time of the oldest, and one server response.
_COUNTED = rows_as(
    tuple[int, int | None, str | None],
    Delivery.select(
        fn.COUNT(Delivery.about), fn.MIN(Delivery.created_ms), fn.MAX(Delivery.answer)
    ).where(_OF_MAILS),
)
MAILS_WAITING = _COUNTED.where(_WAITS)
MAILS_GIVEN_UP = _COUNTED.where(
    Delivery.next_ms.is_null(),
    Delivery.delivered_ms.is_null(),
    Delivery.tried_ms > param("since"),
)
