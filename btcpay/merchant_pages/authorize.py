"""Connects a shop: its plug-in asks for a key, the merchant allows it, a button brings it there."""

from typing import NamedTuple
from urllib.parse import urlsplit

from flask import Response, request

from btcpay.merchant_pages.visit import Visit
from btcpay.merchants.shops import HONOURED, issue_for_shop, named, origin_of
from btcpay.values.errors import CommandError, InvalidRequest
from btcpay.values.hosts import is_near
from btcpay.values.networks import Network

PATH = "/api-keys/authorize"
MAX_NAME_CHARACTERS = 100


class Asked(NamedTuple):
    """What a plug-in asks for: `origin` is its shop's, `redirect` where the key is to be sent."""

    application: str
    redirect: str
    origin: str
    permissions: list[str]


def ask(visit: Visit) -> Response:
    """Names shop and permissions; nothing is made yet."""
    return visit.page("authorize.html", asked_for=_asked(visit), given=None)


def allow(visit: Visit) -> Response:
    """Makes the key of this press, and shows the form that brings it to the shop alone."""
    asked, service = _asked(visit), visit.service
    store_id, issued = issue_for_shop(
        service.db,
        service.settings.network,
        visit.merchant_id,
        asked.application,
        asked.redirect,
        visit.now,
        asked.permissions,
        id=visit.id_of_press("key"),
        characters=visit.secret_of_press(),
    )
    given = [("apiKey", issued.secret), ("userId", f"merchant_{visit.merchant_id}")]
    given += [("permissions[]", f"{named(one)}:{store_id}") for one in asked.permissions]
    response = visit.page("authorize.html", asked_for=asked, given=given)
    response.headers["Content-Security-Policy"] = visit.pages.policy(posts_to=asked.origin)
    return response


def _asked(visit: Visit) -> Asked:
    """Raises InvalidRequest for what no shop of this network asks."""
    redirect = request.args.get("redirect", "")
    application = request.args.get("applicationName", "")[:MAX_NAME_CHARACTERS].strip()
    wanted = set(request.args.getlist("permissions"))
    permissions = [one for one in HONOURED if named(one) in wanted]
    if not permissions:
        raise InvalidRequest("the shop asks for no permission that there is")
    try:
        origin = origin_of(redirect)
    except CommandError as error:
        raise InvalidRequest(str(error)) from None
    _refuse_near(origin, visit.service.settings.network)
    return Asked(application or origin, redirect, origin, permissions)


def _refuse_near(origin: str, network: Network) -> None:
    """A link sent to a merchant leads to no machine of this network, and nowhere in clear."""
    parts = urlsplit(origin)
    is_test = network.name == "regtest"
    if not is_test and is_near(parts.hostname):
        raise InvalidRequest("the shop is on this machine's own network: `btcpay key issue --for`")
    if network.name == "mainnet" and parts.scheme != "https":
        raise InvalidRequest("the shop is not reached by https://")
