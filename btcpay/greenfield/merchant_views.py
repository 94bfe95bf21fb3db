"""Connects a shop: its plug-in asks for a key, the merchant allows it, a button brings it there."""

from typing import Any
from urllib.parse import urlsplit

from flask import Response, request

from btcpay.greenfield.shops import HONOURED, named, origin_of, store_of
from btcpay.merchants import keys
from btcpay.notify.receivers import refuse_url
from btcpay.values.errors import CommandError, InvalidRequest
from btcpay.values.hosts import is_near

PATH = "/api-keys/authorize"
MAX_NAME_CHARACTERS = 100


def add(area: Any) -> None:
    """Puts it among the merchant's pages: `area` is theirs, and gives each view its `visit`."""
    if area.service.settings.greenfield:
        for path in (PATH, f"{PATH}/"):  # Shopware's link ends so
            area.get(path, ask, root="")
            area.post(path, allow, root="")


def ask(visit: Any) -> Response:
    """Names shop and permissions; nothing is made yet."""
    page: Response = visit.page("authorize.html", asked_for=_asked(visit), given=None)
    return page


def allow(visit: Any) -> Response:
    """Makes the key of this press, and shows the form that brings it to the shop alone."""
    asked, db, owner_id = _asked(visit), visit.service.db, visit.merchant_id
    network, permissions = visit.service.settings.network, asked["permissions"]
    store_id = store_of(db, owner_id, asked["origin"], visit.now)
    key = ("write", asked["application"], visit.now, store_id, " ".join(permissions))
    issued = keys.issue(db, network, owner_id, *key, characters=visit.secret_of_press())
    given = [("apiKey", issued.secret), ("userId", f"merchant_{owner_id}")]
    given += [("permissions[]", f"{named(one)}:{store_id}") for one in permissions]
    response: Response = visit.page("authorize.html", asked_for=asked, given=given)
    response.headers["Content-Security-Policy"] = visit.pages.policy(posts_to=asked["origin"])
    return response


def _asked(visit: Any) -> dict[str, Any]:
    """What a plug-in asks for, and where. Raises InvalidRequest for what no shop asks.

    A link sent to a merchant leads to no machine of this network, and nowhere in clear.
    """
    redirect, network = request.args.get("redirect", ""), visit.service.settings.network
    application = request.args.get("applicationName", "")[:MAX_NAME_CHARACTERS].strip()
    wanted = set(request.args.getlist("permissions"))
    permissions = [one for one in HONOURED.split() if named(one) in wanted]
    if not permissions:
        raise InvalidRequest("the shop asks for no permission that there is")
    try:
        origin = origin_of(redirect)
        refuse_url(origin, network)
    except CommandError as error:
        raise InvalidRequest(str(error)) from None
    if network.name != "regtest" and is_near(urlsplit(origin).hostname):
        raise InvalidRequest("the shop is on this machine's own network: `btcpay key issue --for`")
    asked = {"redirect": redirect, "origin": origin, "permissions": permissions}
    return asked | {"application": application or origin}
