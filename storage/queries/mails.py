"""Mail: who wants it, and what is on its way."""

from typing import Any

from peewee import EXCLUDED, JOIN, fn

from storage.database import every, slot, slots
from storage.models import Mail, Merchant, MerchantMail, PublicEvent

WANTED = (
    MerchantMail.select(MerchantMail, Merchant.name, Merchant.created_at)
    .join(Merchant, on=(Merchant.id == MerchantMail.merchant_id))
    .order_by(MerchantMail.merchant_id)
)
WANTED_BY = MerchantMail.select().where(MerchantMail.merchant_id == slot("merchant_id"))
BLANK: dict[str, Any] = {"address": None, "receipts": 0, "language": "en"}
PUT_WANTED = MerchantMail.insert(every(MerchantMail)).on_conflict(
    conflict_target=[MerchantMail.merchant_id],
    update={
        column: getattr(EXCLUDED, column.name)
        for column in (MerchantMail.address, MerchantMail.receipts, MerchantMail.language)
    },
)

# One row a mail; the second insert changes nothing.
ADD = Mail.insert(
    slots(
        Mail.about,
        Mail.merchant_id,
        Mail.recipient,
        Mail.event_seq,
        Mail.created_at,
        Mail.next_at,
    )
    | {Mail.attempts: 0}
).on_conflict_ignore()
DUE = (
    Mail.select(Mail, PublicEvent.invoice_id, PublicEvent.kind, PublicEvent.state)
    .join(PublicEvent, JOIN.LEFT_OUTER, on=(PublicEvent.seq == Mail.event_seq))
    .where(Mail.next_at <= slot("now"))
    .order_by(Mail.next_at, Mail.created_at)
    .limit(slot("limit"))
)
_THIS = (
    (Mail.about == slot("about"))
    & (Mail.merchant_id == slot("merchant_id"))
    & (Mail.recipient == slot("recipient"))
    & Mail.next_at.is_null(False)
)
# Whoever else has tried it meanwhile has counted an attempt.
TRIED = Mail.update(
    {
        Mail.attempts: Mail.attempts + 1,
        Mail.next_at: slot("next_at"),
        Mail.tried_at: slot("at"),
        Mail.sent_at: slot("sent_at"),
        Mail.answer: slot("answer"),
    }
).where(_THIS & (Mail.attempts == slot("attempts")))
DROP = Mail.delete().where(_THIS)
# What belongs to an event goes with it.
FORGET = Mail.delete().where(Mail.event_seq.is_null() & (Mail.created_at < slot("before")))

WAITING = Mail.select(
    fn.COUNT(Mail.about).alias("mails"),
    fn.MIN(Mail.created_at).alias("at"),
    fn.MAX(Mail.answer).alias("answer"),
).where(Mail.next_at.is_null(False))
GIVEN_UP = Mail.select(
    fn.COUNT(Mail.about).alias("mails"), fn.MAX(Mail.answer).alias("answer")
).where(Mail.next_at.is_null() & Mail.sent_at.is_null() & (Mail.tried_at > slot("since")))
