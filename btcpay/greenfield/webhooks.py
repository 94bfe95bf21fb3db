"""Where a shop wants to be told what happens to its orders."""

import json
from typing import Any

from flask import Response

from btcpay.greenfield.asked import body_of
from btcpay.greenfield.errors import Unfit
from btcpay.merchants.shops import is_within
from btcpay.notify.greenfield import endpoints
from btcpay.notify.greenfield.meanings import TYPES
from btcpay.notify.receivers import refuse_url
from btcpay.values.errors import CommandError, NotFound
from btcpay.web.application import answer
from btcpay.web.service import Service
from schemas import greenfield as accepts
from storage.database import Row

MOST = 20  # of a store; a plug-in needs one


def list_webhooks(service: Service, store: Row) -> Response:
    return answer([_shown(row) for row in endpoints.every(service.db, store["id"])])


def add_webhook(service: Service, store: Row) -> Response:
    """The same URL again replaces what was there: plug-ins register anew at each save."""
    wanted = _wanted(service, store)
    known = {row["url"] for row in endpoints.every(service.db, store["id"])}
    if len(known | {wanted.url}) > MOST:
        raise Unfit(("url", f"the store has {MOST} webhooks already"))
    row = endpoints.register(service.db, store, wanted, service.now())
    return answer(_shown(row) | {"secret": row["secret"]})


def get_webhook(service: Service, store: Row, hook: str) -> Response:
    return answer(_shown(_found(endpoints.one(service.db, store["id"], hook))))


def change_webhook(service: Service, store: Row, hook: str) -> Response:
    wanted = _wanted(service, store)
    row = endpoints.change(service.db, store["id"], hook, wanted, service.now())
    return answer(_shown(_found(row)))


def remove_webhook(service: Service, store: Row, hook: str) -> Response:
    if not endpoints.remove(service.db, store["id"], hook):
        _found(None)
    return answer({})


def _found(row: Row | None) -> Row:
    if row is None:
        raise NotFound("there is no webhook with this id")
    return row


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


def _wanted(service: Service, store: Row) -> endpoints.Wanted:
    """Raises Unfit for a URL that is not the shop's own, or where nothing may be sent."""
    _, asked = body_of(accepts.NewWebhook())
    url, shop_url = asked["url"], store["shop_url"]
    try:
        refuse_url(url, service.settings.network)
    except CommandError as error:
        raise Unfit(("url", str(error))) from None
    if not is_within(url, shop_url):
        raise Unfit(("url", f"is not within {shop_url}"))
    events = asked.get("authorizedEvents", {"everything": True})
    types = [name for name in TYPES if name in events.get("specificEvents", ())]
    everything = None if events["everything"] else types
    return endpoints.Wanted(url, everything, asked["enabled"], asked.get("secret"))
