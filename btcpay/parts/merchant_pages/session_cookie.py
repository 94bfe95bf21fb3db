"""The session cookie of the merchant's pages."""

from datetime import timedelta

from flask import Response, request

from btcpay.merchants.sessions import LIFE
from btcpay.web.service import Service


def _is_https(service: Service) -> bool:
    return service.settings.base_url.startswith("https://")


def _name(service: Service) -> str:
    """Returns the cookie's name. Browsers accept `__Host-` only for a Secure cookie."""
    if _is_https(service):
        return "__Host-merchant"
    return "merchant"


def session_secret(service: Service) -> str:
    """Returns the secret in the session cookie; "" if there is no cookie."""
    return request.cookies.get(_name(service), "")


def set_session_cookie(
    service: Service,
    response: Response,
    secret: str,
    life: timedelta = LIFE,
) -> None:
    """Sets the session cookie, which expires after `life`.

    Each page sets the cookie again, so that a session in use does not expire.
    """
    response.set_cookie(
        _name(service),
        secret,
        max_age=life,
        path="/",
        secure=_is_https(service),
        httponly=True,
        samesite="Strict",
    )


def clear_session_cookie(service: Service, response: Response) -> None:
    """Deletes the session cookie, and makes the browser delete its cached pages."""
    set_session_cookie(service, response, "", timedelta(0))
    response.headers["Clear-Site-Data"] = '"cache"'
