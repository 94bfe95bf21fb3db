"""Connects a shop: its plug-in requests an API key, and the merchant approves it.

Then the merchant's browser shows a form, whose button sends the key to the shop.
"""

from typing import NamedTuple
from urllib.parse import urlsplit

from flask import Response, request

from btcpay import hooks
from btcpay.merchants import keys
from btcpay.notify.receivers import webhook_url
from btcpay.parts.greenfield.keys import GRANTABLE, OF_STORE, origin_of, store_of
from btcpay.settings.settings import Settings
from btcpay.values.errors import CommandError, InvalidRequest
from btcpay.values.hosts import is_near
from btcpay.values.networks import Network
from btcpay.values.texts import one_line
from btcpay.web.pages.render import View
from btcpay.web.pages.visit import Visit
from schemas.any_case import parameters

PATH = "/api-keys/authorize"
MAX_NAME_CHARACTERS = 100


class KeyRequest(NamedTuple):
    """A plug-in's request for an API key.

    - `redirect`: the URL to which the form sends the key.
    - `origin`: the scheme, host and port of this URL.
    - `application`: the plug-in's name that the merchant sees.
    """

    redirect: str
    origin: str
    permissions: list[str]
    application: str


def views(settings: Settings) -> list[tuple[str, str, View]]:
    """Returns the method, path and view function of each page; [] if the settings disable them."""
    if not settings.greenfield:
        return []
    # Shopware links to the path with a slash at the end.
    return [
        ("GET", PATH, show_request),
        ("POST", PATH, allow),
        ("GET", f"{PATH}/", show_request),
        ("POST", f"{PATH}/", allow),
    ]


def show_request(visit: Visit) -> Response:
    """Shows the merchant the shop and the requested permissions. Creates no key."""
    key_request = _read_request(visit)
    return visit.page("authorize.html", key_request=key_request, key_fields=None)


def allow(visit: Visit) -> Response:
    """Issues the key, and returns the form that sends it to the shop.

    If the browser sends the same form twice, only one key is issued. The response's
    Content-Security-Policy allows the form to post to the shop's origin only.
    """
    key_request = _read_request(visit)
    db = visit.service.db
    owner_id = visit.merchant_id
    store_id = store_of(db, owner_id, key_request.origin, visit.now)
    issued = keys.issue(
        db,
        visit.service.settings.network,
        merchant_id=owner_id,
        scope="write",
        name=key_request.application,
        now=visit.now,
        store_id=store_id,
        permissions=" ".join(key_request.permissions),
        characters=visit.form_secret(),
    )
    # The key of this form may have been revoked since it was issued.
    if keys.caller_of(db, issued.secret, visit.now) is None:
        return show_request(visit)
    key_fields = [("apiKey", issued.secret), ("userId", f"merchant_{owner_id}")]
    for permission in key_request.permissions:
        key_fields.append(("permissions[]", f"{OF_STORE}{permission}:{store_id}"))
    response = visit.page(
        "authorize.html", key_request=key_request, key_fields=key_fields
    )
    policy = visit.pages.policy(posts_to=key_request.origin)
    response.headers["Content-Security-Policy"] = policy
    return response


def _read_request(visit: Visit) -> KeyRequest:
    """Parses the plug-in's request. Raises InvalidRequest if it is invalid."""
    names = ("redirect", "applicationName", "permissions")
    query = parameters(names, request.args.items(multi=True))
    redirect = query.get("redirect", [""])[0]
    name = query.get("applicationName", [""])[0]
    requested = set(query.get("permissions", ()))
    permissions = [
        permission
        for permission in GRANTABLE.split()
        if f"{OF_STORE}{permission}" in requested
    ]
    if not permissions:
        raise InvalidRequest("the shop asks for no permission that there is")
    origin = _checked_origin(redirect, visit.service.settings.network)
    application = one_line(name, MAX_NAME_CHARACTERS) or origin
    return KeyRequest(redirect, origin, permissions, application)


def _checked_origin(redirect: str, network: Network) -> str:
    """Returns the scheme, host and port of the URL to which the key shall be sent.

    Raises InvalidRequest if the URL is refused. The link may come from an attacker.
    Therefore a URL in the local network is refused, except on regtest. On mainnet, the
    URL must use https.
    """
    try:
        origin = origin_of(redirect)
        webhook_url(origin, network)  # only for its checks
    except CommandError as error:
        raise InvalidRequest(str(error)) from None
    if network.name != "regtest" and is_near(urlsplit(origin).hostname):
        raise InvalidRequest(
            "the shop is on this machine's own network: `blocktill key issue --for`"
        )
    return origin


HOOK = hooks.MerchantViews(views=views)
