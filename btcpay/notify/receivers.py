"""Adds and removes webhooks and commands, rotates secrets, and resends events.

A receiver is a webhook (a URL that gets signed requests), a command (a program that is
run), or a mailbox. An event is sent to every receiver that wants it.
"""

import json
from collections.abc import Sequence
from datetime import datetime, timedelta
from urllib.parse import urlsplit

from btcpay.notify.events import PAGE
from btcpay.notify.kinds import Kind
from btcpay.notify.publish import delivery_columns, wants
from btcpay.notify.transport import delivery_of
from btcpay.notify.transports import TRANSPORTS, new_secret
from btcpay.values.errors import CommandError
from btcpay.values.hosts import MAX_URL_CHARACTERS, is_here, web_url
from btcpay.values.ids import new_id
from btcpay.values.networks import Network
from btcpay.values.times import to_ms
from storage.database import Database, Values
from storage.models import PublicEvent, Receiver
from storage.queries import deliveries, events, merchants, receivers
from storage.statement import replace

GRACE = timedelta(days=1)
MOST = 20  # for each merchant, since each event stores a delivery for each receiver


class NoRoom(CommandError):
    """The merchant already has the maximum number of webhooks and commands."""


def find(db: Database, receiver_id: str) -> Receiver:
    """Returns the row of a receiver, with its secret.

    Raises CommandError if there is no such receiver, or if it is a mailbox.
    """
    row = db.get_or_none(receivers.BY_ID, id=receiver_id)
    if row is None or row.transport in receivers.MAILS:
        raise CommandError(
            f"there is no webhook {receiver_id!r}: `blocktill webhook list` lists them"
        )
    return row


def find_own(db: Database, receiver_id: str) -> Receiver:
    """Returns the row of a webhook or a command.

    Raises CommandError if there is no receiver with this id, if it is a mailbox, or if
    it belongs to a part (an optional plug-in): only that part may change it.
    """
    row = find(db, receiver_id)
    if row.transport not in (receivers.WEBHOOK, receivers.COMMAND):
        raise CommandError(
            f"{receiver_id} belongs to a shop's plug-in: save its settings there"
        )
    return row


def require_room(db: Database, merchant_id: int) -> None:
    """Raises NoRoom if the merchant has the maximum number of webhooks and commands.

    Locks the merchant's row. Call this function in the database transaction that adds a
    receiver.
    """
    db.get(merchants.LOCKED, id=merchant_id)
    present = db.rows(receivers.LIST_OF_MERCHANT, merchant_id=merchant_id)
    if len(present) >= MOST:
        raise NoRoom(
            f"the merchant has {MOST} webhooks and commands already: remove one first"
        )


def add(
    db: Database,
    merchant_id: int,
    url: str | None,
    command: str | None,
    kinds: Sequence[Kind],
    now: datetime,
    id: str | None = None,
) -> Receiver:
    """Adds a receiver of future events, and returns its row.

    - `url`: if given, the receiver is a webhook, whose requests are signed.
    - `command`: the command line of a program; used if `url` is None.
    - `kinds`: the kinds of events that the receiver gets; if it is empty, all.
    - `id`: the receiver's id; None means a random one.

    Raises NoRoom if the merchant already has the maximum number of receivers.
    """
    columns: Values = {
        "id": id or new_id("whk"),
        "merchant_id": merchant_id,
        "transport": receivers.COMMAND,
        "url": url,
        "command": command,
        "kinds": None,
        "secret": None,
        "created_ms": to_ms(now),
    }
    if url:
        columns["transport"] = receivers.WEBHOOK
        columns["secret"] = new_secret()
    if kinds:
        columns["kinds"] = json.dumps(kinds)
    with db.write():
        require_room(db, merchant_id)
        db.run(receivers.ADD, **columns)
    return find(db, str(columns["id"]))


def webhook_url(text: str, network: Network) -> str:
    """Returns the text as the URL of a webhook, with its host in ASCII.

    Raises CommandError if the text is no http:// or https:// URL. On mainnet also raises
    it for http://, unless the host is this machine. Hosts of private networks are
    accepted, since the operator chooses the URL.
    """
    try:
        url = web_url(text)
        parts = urlsplit(url)
    except ValueError:
        message = (
            f"a webhook is an https:// URL of at most {MAX_URL_CHARACTERS} characters"
        )
        raise CommandError(f"{message}, to a host with a dot in its name") from None
    is_readable_on_the_way = parts.scheme == "http" and not is_here(parts.hostname)
    if is_readable_on_the_way and network.name == "mainnet":
        raise CommandError(
            "http:// would show payments to anyone on the way: use https:// (http:// is"
            " for 127.0.0.1 and for test networks)"
        )
    return url


def remove(db: Database, receiver_id: str) -> None:
    """Removes a receiver. Raises CommandError if there is none, or if it is a mailbox."""
    find(db, receiver_id)
    db.run(receivers.REMOVE, id=receiver_id)


def rotate(db: Database, receiver_id: str, now: datetime) -> Receiver:
    """Replaces a webhook's secret, and returns its row with the new secret.

    For one day (GRACE) requests are also signed with the old secret. Raises
    CommandError if the receiver is no webhook, or if another process rotates the secret
    at the same time.
    """
    row = find_own(db, receiver_id)
    if row.secret is None:
        raise CommandError("a command has no secret")
    secret = new_secret()
    row_count = db.run(
        receivers.ROTATE,
        id=receiver_id,
        secret=secret,
        was=row.secret,
        until=to_ms(now + GRACE),
    )
    if row_count != 1:
        raise CommandError("the secret was rotated by somebody else just now")
    return replace(row, secret=secret)


def resend_failed(db: Database, receiver_id: str, now: datetime) -> int:
    """Schedules the receiver's given-up deliveries to be sent at once. Returns their number.

    Also enables the receiver if it was disabled. If its transport sets
    `drops_overtaken`, leaves out each delivery for which the receiver has accepted a
    later one about the same resource. Raises CommandError if there is no such receiver.
    """
    transport = TRANSPORTS.get(find(db, receiver_id).transport)
    statement = deliveries.FAILED_AGAIN
    if transport and transport.drops_overtaken:
        statement = deliveries.FAILED_AGAIN_IN_ORDER
    with db.write():
        db.run(receivers.ENABLE, id=receiver_id)
        return db.run(statement, receiver_id=receiver_id, at=to_ms(now))


def send_all_now(db: Database, receiver_id: str, now: datetime) -> int:
    """Schedules the receiver's waiting and given-up deliveries to be sent at once.

    Returns their number. The next run of the outbox sends them. Also enables the
    receiver if it was disabled. Raises CommandError if there is no such receiver.
    """
    with db.write():
        waiting_count = db.run(
            deliveries.WAITING_NOW, receiver_id=receiver_id, next_ms=to_ms(now)
        )
        return waiting_count + resend_failed(db, receiver_id, now)


def resend(db: Database, receiver_id: str, event_id: str, now: datetime) -> None:
    """Schedules an event to be sent to the receiver again at once, with the same id.

    The receiver may have accepted the event before. Also enables the receiver if it was
    disabled. Raises CommandError if there is no such webhook or command, or if the event
    was never meant for this receiver.
    """
    find_own(db, receiver_id)
    with db.write():
        has_delivery = db.run(
            deliveries.AGAIN,
            receiver_id=receiver_id,
            about=event_id,
            at=to_ms(now),
        )
        if not has_delivery:
            raise CommandError(f"{receiver_id} has no delivery of {event_id!r}")
        db.run(receivers.ENABLE, id=receiver_id)


def resend_since(db: Database, receiver_id: str, number: int, now: datetime) -> int:
    """Schedules the events with a number above `number` to be sent again at once.

    These are all such events of a kind that the receiver wants, even if it has accepted
    them. Returns how many they are. Also enables the receiver if it was disabled. Raises
    CommandError if there is no such webhook or command.
    """
    receiver = find_own(db, receiver_id)
    events.number_new(db)
    count = 0
    with db.write():
        db.run(receivers.ENABLE, id=receiver_id)
        while page := db.rows(events.AFTER, number=number, limit=PAGE):
            for row in page:
                is_own = row.merchant_id == receiver.merchant_id
                if is_own and wants(receiver, row.kind):
                    _send_again(db, receiver, row, now)
                    count += 1
            number = page[-1].number or number
    return count


def _send_again(
    db: Database,
    receiver: Receiver,
    event: PublicEvent,
    now: datetime,
) -> None:
    """Schedules the event's delivery for now, and adds the delivery if there is none yet."""
    has_delivery = db.run(
        deliveries.AGAIN,
        receiver_id=receiver.id,
        about=event.id,
        at=to_ms(now),
    )
    if not has_delivery:
        columns = delivery_columns(receiver, event, delivery_of(event), now)
        db.run(deliveries.ADD, **columns)
