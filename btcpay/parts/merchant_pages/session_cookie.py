"""The session cookie of the merchant's pages."""

from datetime import timedelta

from flask import Response, request

from btcpay.merchants.sessions import LIFE
from btcpay.web.service import Service


def _cookie(service: Service) -> tuple[str, bool]:
    """Returns the name of the session cookie, and whether the cookie is Secure.

    Browsers accept the prefix `__Host-` only for a Secure cookie.
    """
    is_https = service.settings.base_url.startswith("https://")
    return ("__Host-merchant" if is_https else "merchant"), is_https


def session_secret(service: Service) -> str:
    """Returns the secret in the session cookie; "" if there is no cookie."""
    return request.cookies.get(_cookie(service)[0], "")


def set_session_cookie(
    service: Service,
    response: Response,
    secret: str,
    life: timedelta = LIFE,
) -> None:
    """Sets the session cookie, which expires after `life`.

    Each page sets the cookie again, so that it expires later.
    """
    name, is_https = _cookie(service)
    response.set_cookie(
        name,
        secret,
        max_age=life,
        path="/",
        secure=is_https,
        httponly=True,
        samesite="Strict",
    )


def clear_session_cookie(service: Service, response: Response) -> None:
    """Deletes the session cookie, and makes the browser delete its cached pages."""
    set_session_cookie(service, response, "", timedelta(0))
    response.headers["Clear-Site-Data"] = '"cache"'
