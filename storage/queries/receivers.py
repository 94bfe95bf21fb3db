"""Receivers of events (webhooks, commands, mail), and each merchant's mail settings."""

import json
from collections.abc import Sequence

from peewee import fn

from storage.database import Database
from storage.models import Delivery, Merchant, MerchantMail, Receiver
from storage.statement import (
    all_columns,
    as_dict,
    blank,
    eq,
    param,
    params,
    required_columns,
    rows_as,
)

WEBHOOK = "webhook"
COMMAND = "command"
MAIL = "mail"
RECEIPT = "receipt"
BILL = "bill"
MAILS = [MAIL, RECEIPT, BILL]
_THIS = eq(Receiver.id)
WELL = {Receiver.failing_since: None, Receiver.failed_ms: None}

ADD = Receiver.insert(
    required_columns(Receiver)
    | params(Receiver.url, Receiver.command, Receiver.kinds, Receiver.secret)
).on_conflict("NOTHING")
BY_ID = Receiver.select().where(_THIS)
REMOVE = Receiver.delete().where(_THIS)
# Read in the transaction that publishes an event. The row lock makes removals of a receiver wait,
# but not other publishers.
OF_MERCHANT = (
    Receiver.select()
    .where(eq(Receiver.merchant_id), Receiver.disabled_ms.is_null())
    .order_by(Receiver.id)
    .for_update("FOR KEY SHARE")  # type: ignore[arg-type]  # its documentation has text too
)
_OWN_WAITING = (Delivery.receiver_id == Receiver.id) & Delivery.next_ms.is_null(False)
# Working receivers come first, the one that has been failing for longest last.
WAITED_FOR = (
    Receiver.select()
    .where(
        Receiver.disabled_ms.is_null(),
        fn.EXISTS(Delivery.select(1).where(_OWN_WAITING)),
    )
    .order_by(
        Receiver.failing_since.is_null(False),
        Receiver.failing_since.desc(),
        Receiver.created_ms,
        Receiver.id,
    )
)


class ListedReceiver(Receiver):
    merchant: str
    pending: int
    failing_since_ms: int | None


# All webhooks and commands, without their secrets.
LIST = rows_as(
    ListedReceiver,
    Receiver.select(
        *(
            Receiver.id,
            Receiver.transport,
            Merchant.name.alias("merchant"),
            Receiver.url,
        ),
        *(Receiver.command, Receiver.kinds),
        Delivery.select(fn.COUNT(Delivery.about)).where(_OWN_WAITING).alias("pending"),
        *(Receiver.failing_since.alias("failing_since_ms"), Receiver.disabled_ms),
        *(Receiver.disabled_reason, Receiver.created_ms),
    )
    .join(Merchant, on=(Merchant.id == Receiver.merchant_id))
    .where(Receiver.transport.not_in(MAILS))
    .order_by(Receiver.created_ms, Receiver.id),
)
LIST_OF_MERCHANT = LIST.where(eq(Receiver.merchant_id))
ROTATE = Receiver.update(
    {
        Receiver.old_secret: Receiver.secret,
        Receiver.old_until_ms: param("until"),
        Receiver.secret: param("secret"),
    }
).where(_THIS, Receiver.secret == param("was"))
DISABLE = Receiver.update(
    {Receiver.disabled_ms: param("at"), Receiver.disabled_reason: param("reason")}
).where(_THIS, Receiver.disabled_ms.is_null())
# Enables a disabled receiver. A receiver that fails, but is not disabled, does not change: WORKS
# needs its `failing_since` to notice that the failures end.
ENABLE = Receiver.update(
    WELL | {Receiver.disabled_ms: None, Receiver.disabled_reason: None}
).where(_THIS, Receiver.disabled_ms.is_null(False))
WORKS = Receiver.update(WELL).where(_THIS, Receiver.failing_since.is_null(False))
FAILS = Receiver.update(
    {
        Receiver.failing_since: fn.COALESCE(Receiver.failing_since, param("at")),
        Receiver.failed_ms: param("at"),
    }
).where(_THIS)


class MailSettings(MerchantMail, Merchant):
    """A merchant's mail settings, with columns of the merchant."""


WANT_MAIL = rows_as(
    MailSettings,
    MerchantMail.select(
        MerchantMail,
        Merchant.name,
        Merchant.created_ms,
        Merchant.timezone,
    )
    .join(Merchant, on=(Merchant.id == MerchantMail.merchant_id))
    .order_by(MerchantMail.merchant_id),
)
MAIL_OF = MerchantMail.select().where(eq(MerchantMail.merchant_id))
NO_MAIL = blank(MerchantMail, receipts=0, language="en", evening=0)
PUT_MAIL = MerchantMail.insert(all_columns(MerchantMail)).on_conflict(
    conflict_target=[MerchantMail.merchant_id],
    preserve=[
        field
        for field in all_columns(MerchantMail)
        if field is not MerchantMail.merchant_id
    ],
)


def mail_id(transport: str, merchant_id: int) -> str:
    """Returns the id of a merchant's receiver for a transport of mails (see MAILS)."""
    return f"{transport}_{merchant_id}"


def add_mailbox(
    db: Database,
    name: str,
    transport: str,
    merchant_id: int,
    kinds: Sequence[str],
    at_ms: int,
) -> str:
    """Adds a mail receiver unless it exists already, and returns its id.

    The id is made of `name` and the merchant's id. The receiver gets events of these
    `kinds`, by the transport `transport`. Mails without an event, such as the daily one
    in the evening, are queued elsewhere. `at_ms` is the time of the receiver's creation,
    in Unix milliseconds.
    """
    id = mail_id(name, merchant_id)
    db.run(
        ADD,
        id=id,
        merchant_id=merchant_id,
        transport=transport,
        url=None,
        command=None,
        kinds=json.dumps(kinds),
        secret=None,
        created_ms=at_ms,
    )
    return id


def put_mail(db: Database, row: MerchantMail, at_ms: int) -> None:
    """Stores a merchant's mail settings, and adds or removes the mail receivers.

    Removing a receiver also deletes its pending mail. `at_ms` is the present time in
    Unix milliseconds.
    """
    db.run(PUT_MAIL, **as_dict(row))
    # The kinds of events of each receiver. A receiver without any is removed.
    wanted_kinds: dict[str, list[str]] = {MAIL: [], RECEIPT: []}
    if row.address:
        wanted_kinds[MAIL] = ["invoice.paid", "invoice.attention"]
    if row.receipts:
        wanted_kinds[RECEIPT] = ["invoice.paid"]
    for transport, kinds in wanted_kinds.items():
        if not kinds:
            db.run(REMOVE, id=mail_id(transport, row.merchant_id))
            continue
        add_mailbox(
            db,
            name=transport,
            transport=transport,
            merchant_id=row.merchant_id,
            kinds=kinds,
            at_ms=at_ms,
        )
