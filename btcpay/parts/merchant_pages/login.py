"""The login with a link, which a command prints or a mail contains."""

from contextlib import suppress
from typing import Any

from flask import Response, request

from btcpay.merchants import sessions
from btcpay.parts.merchant_pages.session_cookie import (
    session_secret,
    set_session_cookie,
)
from btcpay.parts.merchant_pages.visit import address
from btcpay.settings.mail_settings import checked_address
from btcpay.values.ids import sha256_of
from btcpay.values.times import to_ms
from btcpay.web.admission import count_request, failed_auth_windows, refuse_other_sites
from btcpay.web.pages.render import Pages
from btcpay.web.service import Service
from storage.queries import sessions as session_queries
from storage.queries.deliveries import ASK_LOGIN

GONE = 410
FormFields = dict[str, str]


class LoginViews:
    """The views of login links. They need no session."""

    def __init__(self, service: Service, pages: Pages) -> None:
        self._service = service
        self._pages = pages

    def show_login(self, secret: str) -> Response:
        """Shows a button that logs in.

        Only the button uses up the link. Opening the link does not, since mail scanners
        open links too.
        """
        return self._login_page(self._login_of(secret))

    def log_in(self, secret: str) -> Response:
        """Uses up the link, and opens a session.

        If the browser is logged in already, the new session replaces the former one. If
        the link is invalid, shows a page that says so.
        """
        service = self._service
        refuse_other_sites(service)
        # This comes first, so that an invalid link causes no write to the database.
        login = self._login_of(secret)
        if login is None:
            return self._login_page(None)
        new_secret = sessions.log_in(
            service.db,
            secret,
            former=session_secret(service),
            browser=request.headers.get("User-Agent", ""),
            now=service.now(),
        )
        # Another browser has used the link in the meantime.
        if new_secret is None:
            return self._login_page(None)
        if login.till_only:
            return enter(service, new_secret, "/till")
        return enter(service, new_secret)

    def mail_link(self, form: FormFields) -> Response:
        """Requests a mail with a login link for the e-mail address in the form.

        The response is the same for every address, and does not wait for the database.
        So neither the response nor its duration reveals whether the address is a
        merchant's.
        """
        with suppress(ValueError):  # the text is no e-mail address
            to = checked_address(form.get("address", "").strip()).lower()
            self._service.notes.note(ASK_LOGIN, to, self._service.now())
        return Response(status=303, headers={"Location": address("/login/mailed")})

    def show_mail_requested(self) -> Response:
        return self._pages.page("merchant/link_mailed.html")

    def show_logged_out(self) -> Response:
        return self._pages.page("merchant/logged_out.html")

    def _login_of(self, secret: str) -> session_queries.Login | None:
        """Returns the login that the link offers, without using up the link.

        Returns None if the link is invalid, and counts this as a failed login. Raises
        RateLimited after too many failed logins.
        """
        now_ms = to_ms(self._service.now())
        login = self._service.db.get_or_none(
            session_queries.LOGIN, secret_sha256=sha256_of(secret), now=now_ms
        )
        if login is None:
            count_request(self._service, failed_auth_windows())
        return login

    def _login_page(self, login: session_queries.Login | None) -> Response:
        status = 200
        if login is None:
            status = GONE
        return page_of_secret(self._pages, "login.html", status, login=login)


def page_of_secret(
    pages: Pages,
    template: str,
    status: int = 200,
    **values: Any,
) -> Response:
    """Returns a page whose URL contains a secret.

    The response has a header with which the browser sends no other site the URL (as
    Referer). Otherwise that site could log the secret.
    """
    page = pages.page(f"merchant/{template}", status, **values)
    page.headers["Referrer-Policy"] = "strict-origin"
    return page


def enter(service: Service, secret: str, path: str = "") -> Response:
    """Redirects to a merchant's page, and sets the cookie of the new session.

    `secret` is the session's secret, `path` the path of the page below ROOT.
    """
    response = Response(status=303, headers={"Location": address(path)})
    set_session_cookie(service, response, secret)
    return response
