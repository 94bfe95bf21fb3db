"""Endpoints: added, removed, their secrets rotated, told again what they have missed."""

import json
import shlex
import shutil
from collections.abc import Sequence
from datetime import datetime, timedelta
from typing import NamedTuple
from urllib.parse import urlsplit

from btcpay.notify.events import read
from btcpay.notify.events.kinds import EventKind
from btcpay.notify.webhooks.deliver import READER, wants
from btcpay.notify.webhooks.signature import new_secret
from btcpay.settings.parsers import is_http_url
from btcpay.values.errors import CommandError
from btcpay.values.hosts import is_here
from btcpay.values.ids import new_id
from btcpay.values.networks import Network
from btcpay.values.times import to_ms
from storage.database import Database, Row
from storage.queries import public_events, webhooks

GRACE = timedelta(days=1)


class Added(NamedTuple):
    """A new endpoint; its secret is shown nowhere again. A command has none."""

    id: str
    secret: str | None


def find(db: Database, endpoint_id: str) -> Row:
    """The whole row, with its secret. Raises CommandError when there is none."""
    row = db.row(webhooks.BY_ID, id=endpoint_id)
    if row is None:
        raise CommandError(f"there is no webhook {endpoint_id!r}: `btcpay webhook list` has them")
    return row


def add(
    db: Database,
    merchant_id: int,
    url: str | None,
    command: str | None,
    kinds: Sequence[EventKind],
    now: datetime,
) -> Added:
    """An endpoint that is told what happens from now on; of every kind without `kinds`."""
    added = Added(new_id("whk"), new_secret() if url else None)
    since = read.begin(db, READER)
    db.run(
        webhooks.ADD,
        id=added.id,
        merchant_id=merchant_id,
        url=url,
        command=command,
        kinds=json.dumps(kinds) if kinds else None,
        secret=added.secret,
        since_number=since,
        created_at=to_ms(now),
    )
    return added


def refuse_url(url: str, network: Network) -> None:
    """Raises CommandError for what is not to be told; https but for this machine and test networks.

    Where it leads to is the operator's own business.
    """
    if not is_http_url(url) or not _is_plain(url):
        raise CommandError("a webhook is told at an https:// URL")
    parts = urlsplit(url)
    is_clear = parts.scheme == "http" and not is_here(parts.hostname)
    if is_clear and network.name == "mainnet":
        raise CommandError(
            "http:// would show payments to whoever listens on the way: use https:// (http:// is"
            " for 127.0.0.1 and for test networks)"
        )


def _is_plain(url: str) -> bool:
    """What every reader takes alike: before a backslash another one finds another host."""
    return url.isascii() and url.isprintable() and "\\" not in url


def refuse_command(command: str) -> None:
    """Raises CommandError for what is no program here; there is no shell unless it is named."""
    try:
        words = shlex.split(command)
    except ValueError as error:
        raise CommandError(f"the command cannot be read: {error}") from None
    if not words or shutil.which(words[0]) is None:
        raise CommandError(
            f"there is no program {words[0] if words else ''!r} here: give its whole path; for a"
            " line of shell, sh -c 'LINE'"
        )


def remove(db: Database, endpoint_id: str) -> None:
    """Forgets an endpoint and its deliveries. Raises CommandError."""
    find(db, endpoint_id)
    db.run(webhooks.REMOVE, id=endpoint_id)


def rotate(db: Database, endpoint_id: str, now: datetime) -> Added:
    """A new secret; for a day the old one signs too. Raises CommandError."""
    row = find(db, endpoint_id)
    if row["secret"] is None:
        raise CommandError("a command has no secret")
    added = Added(endpoint_id, new_secret())
    changed = {"secret": added.secret, "was": row["secret"], "until": to_ms(now + GRACE)}
    if db.run(webhooks.ROTATE, id=endpoint_id, **changed) != 1:
        raise CommandError("the secret was rotated by somebody else just now")
    return added


def resend_failed(db: Database, endpoint_id: str, now: datetime) -> int:
    """Has all that was given up sent again, and enables the endpoint; how many."""
    find(db, endpoint_id)
    with db.write():
        db.run(webhooks.ENABLE, id=endpoint_id)
        return db.run(webhooks.FAILED_AGAIN, endpoint_id=endpoint_id, at=to_ms(now))


def resend_event(db: Database, endpoint_id: str, event_id: str, now: datetime) -> None:
    """Has one event sent again, whatever became of it before. Raises CommandError."""
    merchant_id = find(db, endpoint_id)["merchant_id"]
    public_events.number_new(db)
    row = db.row(webhooks.EVENT_OF_ID, id=event_id, merchant_id=merchant_id)
    if row is None:
        raise CommandError(f"there is no event {event_id!r} of this merchant; 30 days are kept")
    with db.write():
        db.run(webhooks.ENABLE, id=endpoint_id)
        _again(db, endpoint_id, row, now)


def resend_since(db: Database, endpoint_id: str, number: int, now: datetime) -> int:
    """Has every event behind that number sent that the endpoint wants, sent before or not."""
    endpoint = find(db, endpoint_id) | {"since_number": number}
    public_events.number_new(db)
    count = 0
    with db.write():
        db.run(webhooks.ENABLE, id=endpoint_id)
        while rows := db.rows(public_events.AFTER, number=number, limit=read.PAGE):
            number = rows[-1]["number"]
            for row in rows:
                if wants(endpoint, row):
                    _again(db, endpoint_id, row, now)
                    count += 1
    return count


def _again(db: Database, endpoint_id: str, row: Row, now: datetime) -> None:
    key = {"event_seq": row["seq"], "endpoint_id": endpoint_id}
    if not db.run(webhooks.AGAIN, **key, at=to_ms(now)):
        db.run(webhooks.ADD_DELIVERY, **key, next_at=to_ms(now))
