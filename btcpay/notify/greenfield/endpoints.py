"""Where a shop's plug-in wants its webhooks: registered, changed, listed and removed."""

import json
from collections.abc import Sequence
from datetime import datetime
from typing import NamedTuple

from btcpay.values.ids import SECRET_CHARACTERS, new_id, random_base62
from btcpay.values.times import to_ms
from storage.database import Database, Row
from storage.queries import receivers

_OFF = "its plug-in has switched it off"


class Wanted(NamedTuple):
    """What a plug-in asks for; without `types` it is sent all, without a `secret` we choose one."""

    url: str
    types: Sequence[str] | None = None
    is_enabled: bool = True
    secret: str | None = None


def register(db: Database, store: Row, wanted: Wanted, now: datetime) -> Row:
    """A new endpoint of the store, or the one of that URL anew, with what waits for it."""
    secret = wanted.secret or random_base62(SECRET_CHARACTERS)
    new = {"id": new_id("whk"), "created_at": to_ms(now), "transport": receivers.GREENFIELD}
    of_store = {"merchant_id": store["merchant_id"], "store_id": store["id"]}
    columns = _columns(wanted._replace(secret=secret), now)
    row = db.only(receivers.PUT_OF_STORE, **new, **of_store, **columns)
    return db.only(receivers.ONE_OF_STORE, id=row["id"], store_id=store["id"])


def change(db: Database, store_id: str, id: str, wanted: Wanted, now: datetime) -> Row | None:
    """The endpoint as it is then; None when there is none. Another one of that URL makes way."""
    key = {"id": id, "store_id": store_id}
    with db.write():
        before = db.row(receivers.ONE_OF_STORE, **key)
        if before is None:
            return None
        db.run(receivers.MAKE_WAY, url=wanted.url, **key)
        kept = wanted._replace(secret=wanted.secret or before["secret"])
        db.run(receivers.CHANGE_OF_STORE, **key, **_columns(kept, now))
        return db.only(receivers.ONE_OF_STORE, **key)


def every(db: Database, store_id: str) -> list[Row]:
    return db.rows(receivers.ALL_OF_STORE, store_id=store_id)


def one(db: Database, store_id: str, id: str) -> Row | None:
    return db.row(receivers.ONE_OF_STORE, store_id=store_id, id=id)


def remove(db: Database, store_id: str, id: str) -> bool:
    """Whether there was one; what waits for it is forgotten."""
    return db.run(receivers.REMOVE_OF_STORE, store_id=store_id, id=id) == 1


def _columns(wanted: Wanted, now: datetime) -> Row:
    return {
        "url": wanted.url,
        "kinds": None if wanted.types is None else json.dumps(wanted.types),
        "secret": wanted.secret,
        "disabled_at": None if wanted.is_enabled else to_ms(now),
        "disabled_reason": None if wanted.is_enabled else _OFF,
    }
