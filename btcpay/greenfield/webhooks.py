"""Where a shop wants to be told what happens to its orders."""

import json
from typing import Any

from flask import Response
from marshmallow import ValidationError

from btcpay.greenfield.asked import NewWebhook, body_of, checked, own_url
from btcpay.notify.greenfield_words import WEBHOOKS
from btcpay.notify.receivers import refuse_url
from btcpay.values.errors import NotFound
from btcpay.values.ids import SECRET_CHARACTERS, new_id, random_base62
from btcpay.values.times import to_ms
from btcpay.web.application import answer
from btcpay.web.service import Service
from storage.database import Row
from storage.queries import merchants, receivers

MOST = 20  # of a store; a plug-in needs one


def list_webhooks(service: Service, store: Row) -> Response:
    return answer([_shown(row) for row in _known(service, store).values()])


def get_webhook(service: Service, store: Row, hook: str) -> Response:
    return answer(_shown(_found(service, store, hook)))


def add_webhook(service: Service, store: Row) -> Response:
    """The same URL again replaces what was there: plug-ins register anew at each save."""
    row = _put(service, store, None)
    return answer(_shown(row) | {"secret": row["secret"]})


def change_webhook(service: Service, store: Row, hook: str) -> Response:
    return answer(_shown(_put(service, store, hook)))


def remove_webhook(service: Service, store: Row, hook: str) -> Response:
    """What waits for it is forgotten."""
    _found(service, store, hook)
    service.db.run(receivers.REMOVE_OF_STORE, store_id=store["id"], id=hook)
    return answer({})


def _known(service: Service, store: Row) -> dict[str, Row]:
    rows = service.db.rows(receivers.OF_STORE, store_id=store["id"])
    return {row["id"]: row for row in rows}


def _found(service: Service, store: Row, hook: str) -> Row:
    if row := _known(service, store).get(hook):
        return row
    raise NotFound("there is no webhook with this id")


def _put(service: Service, store: Row, hook: str | None) -> Row:
    """Stores what is asked for: as that one, else as the one of that URL, else as a new one."""
    asked, _ = body_of(NewWebhook())
    checked("url", refuse_url, asked["url"], service.settings.network)
    url, events = own_url("url", asked["url"], store), asked["authorizedEvents"]
    types = [name for name in WEBHOOKS if name in events.get("specificEvents", ())]
    now = to_ms(service.now())
    with service.db.write():
        service.db.only(merchants.LOCKED, id=store["merchant_id"])
        secret = _found(service, store, hook)["secret"] if hook else None
        known = _known(service, store)
        same = next((id for id, row in known.items() if row["url"] == url), None)
        if hook and same != hook:  # the other one of that URL makes way
            service.db.run(receivers.REMOVE_OF_STORE, store_id=store["id"], id=same)
        if not hook and not same and len(known) >= MOST:
            raise ValidationError(f"the store has {MOST} webhooks already", "url")
        id = hook or same or new_id("whk")
        service.db.run(
            receivers.PUT_OF_STORE,
            id=id,
            merchant_id=store["merchant_id"],
            store_id=store["id"],
            transport=receivers.GREENFIELD,
            url=url,
            kinds=None if events["everything"] else json.dumps(types),
            secret=asked.get("secret") or secret or random_base62(SECRET_CHARACTERS),
            created_at=now,
            disabled_at=None if asked["enabled"] else now,
            disabled_reason=None if asked["enabled"] else "its plug-in has switched it off",
        )
        return _found(service, store, id)


def _shown(row: Row) -> dict[str, Any]:
    """Without its secret, which is shown once. What fails is always sent again."""
    types = json.loads(row["kinds"]) if row["kinds"] else []
    return {
        "id": row["id"],
        "enabled": row["disabled_at"] is None,
        "automaticRedelivery": True,
        "url": row["url"],
        "authorizedEvents": {"everything": row["kinds"] is None, "specificEvents": types},
    }
