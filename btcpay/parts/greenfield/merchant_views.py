"""Connects a shop: its plug-in asks for a key, the merchant allows it, a button delivers it."""

from typing import NamedTuple
from urllib.parse import urlsplit

from flask import Response, request

from btcpay import hooks
from btcpay.merchants import keys
from btcpay.notify.receivers import webhook_url
from btcpay.parts.greenfield.keys import GIVEN, OF_STORE, origin_of, store_of
from btcpay.settings.settings import Settings
from btcpay.values.errors import CommandError, InvalidRequest
from btcpay.values.hosts import is_near
from btcpay.values.texts import one_line
from btcpay.web.pages.render import View
from btcpay.web.pages.visit import Visit
from schemas.any_case import parameters

PATH = "/api-keys/authorize"
MAX_NAME_CHARACTERS = 100


class Asked(NamedTuple):
    """A plug-in's request for a key; `redirect` is where its form brings the key."""

    redirect: str
    origin: str
    permissions: list[str]
    application: str


def views(settings: Settings) -> list[tuple[str, str, View]]:
    """Method, path and view of each page in the merchant's area."""
    paths = (
        (PATH, f"{PATH}/") if settings.greenfield else ()
    )  # Shopware's link has the slash
    return [
        each for path in paths for each in (("GET", path, ask), ("POST", path, allow))
    ]


def ask(visit: Visit) -> Response:
    """Shows the shop and the permissions; nothing is made yet."""
    return visit.page("authorize.html", asked_for=_asked(visit), given=None)


def allow(visit: Visit) -> Response:
    """Makes the key of this press, and shows the form that brings it to the shop alone."""
    asked = _asked(visit)
    db = visit.service.db
    owner_id = visit.merchant_id
    network = visit.service.settings.network
    store_id = store_of(db, owner_id, asked.origin, visit.now)
    key = ("write", asked.application, visit.now, store_id, " ".join(asked.permissions))
    issued = keys.issue(db, network, owner_id, *key, characters=visit.form_secret())
    if (
        keys.caller_of(db, issued.secret, visit.now) is None
    ):  # the key has since been revoked
        return ask(visit)
    given = [("apiKey", issued.secret), ("userId", f"merchant_{owner_id}")]
    given += [
        ("permissions[]", f"{OF_STORE}{one}:{store_id}") for one in asked.permissions
    ]
    response = visit.page("authorize.html", asked_for=asked, given=given)
    response.headers["Content-Security-Policy"] = visit.pages.policy(
        posts_to=asked.origin
    )
    return response


def _asked(visit: Visit) -> Asked:
    """Raises InvalidRequest for anything that no shop would ask.

    A link sent to a merchant leads to no machine of this network, and nowhere in clear.
    """
    network = visit.service.settings.network
    names = ("redirect", "applicationName", "permissions")
    given = parameters(names, request.args.items(multi=True))
    redirect = given.get("redirect", [""])[0]
    application = one_line(given.get("applicationName", [""])[0], MAX_NAME_CHARACTERS)
    wanted = set(given.get("permissions", ()))
    permissions = [one for one in GIVEN.split() if OF_STORE + one in wanted]
    if not permissions:
        raise InvalidRequest("the shop asks for no permission that there is")
    try:
        origin = origin_of(redirect)
        webhook_url(origin, network)
    except CommandError as error:
        raise InvalidRequest(str(error)) from None
    if network.name != "regtest" and is_near(urlsplit(origin).hostname):
        raise InvalidRequest(
            "the shop is on this machine's own network: `blocktill key issue --for`"
        )
    return Asked(redirect, origin, permissions, application or origin)


HOOK = hooks.MerchantViews(views=views)
