"""A signed cookie for each browser that has logged in with the owner's password.

Rate limits count wrong passwords. All visitors share one limit, so a stranger could use
it up and lock the owner out. A browser with this cookie has a limit of its own instead
(OWASP calls this a device cookie). The cookie itself gives no access.
"""

import hashlib
from datetime import timedelta

from flask import Response, request
from itsdangerous import BadData, URLSafeSerializer

from btcpay.values.ids import ID_CHARACTERS, SECRET_CHARACTERS, random_base62
from btcpay.web.service import Service
from storage.queries import meta

LIFE = timedelta(days=400)  # the longest that browsers keep a cookie (RFC 6265bis)


def known_id(service: Service) -> str | None:
    """Returns the id of this request's browser; None if it has no valid cookie.

    A cookie that was set after a login with a former password is invalid.
    """
    cookie = request.cookies.get(_name(service))
    # If there is no signing key, no cookie was ever signed. Reading a cookie creates no key.
    if not cookie or meta.get(service.db, meta.Key.COOKIE_KEY) is None:
        return None
    try:
        id = _signer(service).loads(cookie)
    except BadData:
        return None
    if isinstance(id, str):
        return id
    return None


def remember(service: Service, response: Response) -> None:
    """Sets the cookie of a browser that has logged in with the owner's password."""
    id = known_id(service) or random_base62(ID_CHARACTERS)
    response.set_cookie(
        _name(service),
        str(_signer(service).dumps(id)),
        max_age=LIFE,
        path="/",
        secure=_is_https(service),
        httponly=True,
        samesite="Strict",
    )


def _signer(service: Service) -> URLSafeSerializer:
    """Returns the signer of the cookie.

    The hash of the owner's password is in its salt. So a new password makes all former
    cookies invalid.
    """
    new_key = random_base62(SECRET_CHARACTERS)
    key = meta.keep(service.db, meta.Key.COOKIE_KEY, new_key)
    return URLSafeSerializer(
        key,
        salt=f"known browser {service.owner_password.scrypt}",
        signer_kwargs={"digest_method": hashlib.sha256},
    )


def _is_https(service: Service) -> bool:
    return service.settings.base_url.startswith("https://")


def _name(service: Service) -> str:
    """Returns the cookie's name. Browsers accept `__Host-` only for a Secure cookie."""
    if _is_https(service):
        return "__Host-known"
    return "known"
