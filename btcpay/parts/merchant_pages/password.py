"""The login with the owner's password. Without a merchant, it leads to the first run."""

import threading
from collections.abc import Mapping
from urllib.parse import quote

from flask import Response, request

from btcpay.merchants import sessions
from btcpay.merchants.first_run import start_url
from btcpay.parts.merchant_pages import known_browser
from btcpay.parts.merchant_pages.session_cookie import (
    session_secret,
    set_session_cookie,
)
from btcpay.parts.merchant_pages.visit import ROOT, Visit, address
from btcpay.values.errors import NotFound, RateLimited
from btcpay.web.admission import (
    WindowKeys,
    count_request,
    failed_auth_windows,
)
from btcpay.web.pages.render import Pages, path_to_root
from btcpay.web.rate_limits import FAILED_PASSWORDS, KNOWN_BROWSERS
from btcpay.web.service import Service
from storage.queries import merchants

UNAUTHORIZED = 401
# The maximum length of a path with its query to which a login leads back.
MAX_PATH_CHARACTERS = 2_000


class PasswordViews:
    """The login page, and the login with the password. They need no session."""

    def __init__(self, service: Service, pages: Pages) -> None:
        self._service = service
        self._pages = pages
        # Without this lock, many requests at the same time could each try a password
        # before the others are counted.
        self._one_at_a_time = threading.Lock()

    def show(self) -> Response:
        """Shows the ways to log in that are set up: by the password, or by a mailed link."""
        return self._pages.page("merchant/password.html")

    def log_in(self, form: Mapping[str, str]) -> Response:
        """Opens a session if the form's password is right, else shows that it is wrong.

        If there is no merchant yet, redirects to the first run. If there are several,
        redirects to the page on which the owner chooses one of them. Raises RateLimited
        after too many wrong passwords.
        """
        path_before_login = form.get("to", "")
        if not self._is_right(form.get("password", "")):
            return self._pages.page(
                "merchant/password.html",
                UNAUTHORIZED,
                is_wrong=True,
                to=path_before_login,
            )
        rows = self._service.db.rows(merchants.ALL)
        if not rows:
            return self._begin()
        location = _page_before(path_before_login)
        if len(rows) > 1:
            location = address("/shops")
        # If there are several merchants, the session is that of the first one until the owner
        # chooses one.
        return self._enter(rows[0].id, location)

    def _enter(self, merchant_id: int, location: str) -> Response:
        """Opens a session of the merchant, and redirects to `location`.

        Remembers the browser, so that it gets its own limit of wrong passwords.
        """
        service = self._service
        secret = sessions.log_in_owner(
            service.db,
            merchant_id,
            service.owner_password.scrypt,
            former=session_secret(service),
            browser=request.headers.get("User-Agent", ""),
            now=service.now(),
        )
        response = Response(status=303, headers={"Location": location})
        set_session_cookie(service, response, secret)
        known_browser.remember(service, response)
        return response

    def _is_right(self, password: str) -> bool:
        """True if the password is right. Counts a wrong password.

        Raises RateLimited after too many wrong passwords, even if this one is right: an
        attacker must not learn that a guess was right.
        """
        with self._one_at_a_time:
            windows = list(_windows(self._service))
            self._refuse_full(windows)
            if self._service.owner_password.matches(password):
                return True
            count_request(self._service, windows)
            return False

    def _refuse_full(self, windows: WindowKeys) -> None:
        """Raises RateLimited if one of the windows is full. Counts nothing."""
        for bucket, key in windows:
            window = self._service.limiter.peek(bucket, key)
            if not window.allowed:
                now_s = self._service.now().timestamp()
                raise RateLimited(window.retry_after_s(now_s))

    def _begin(self) -> Response:
        """Redirects to a new setup link, with which the visitor creates the first merchant."""
        url = start_url(self._service.db, base_url="")
        if url is None:  # another browser has created the merchant in the meantime
            return Response(status=303, headers={"Location": address("/login")})
        location = address(url.removeprefix(ROOT))
        return Response(status=303, headers={"Location": location})


def show_shops(visit: Visit) -> Response:
    """Shows the owner all merchants of this service, so that the owner can choose one.

    Raises NotFound if the session was not opened with the owner's password.
    """
    _require_password_session(visit)
    rows = visit.service.db.rows(merchants.ALL)
    return visit.page("shops.html", shops=rows, own_id=visit.merchant_id)


def choose_shop(visit: Visit) -> Response:
    """Opens a session of the chosen merchant, and ends the present session.

    Forms in other tabs belong to the ended session. So none of them can change the
    chosen merchant by mistake. Raises NotFound if the session was not opened with the
    owner's password, or if there is no such merchant.
    """
    password_scrypt = _require_password_session(visit)
    service = visit.service
    ids = {str(row.id): row.id for row in service.db.rows(merchants.ALL)}
    merchant_id = ids.get(visit.form.get("shop", ""))
    if merchant_id is None:
        raise NotFound("there is no such merchant")
    secret = sessions.log_in_owner(
        service.db,
        merchant_id,
        password_scrypt,
        former=visit.secret,
        browser=request.headers.get("User-Agent", ""),
        now=visit.now,
    )
    response = visit.redirect()
    set_session_cookie(service, response, secret)
    return response


def _page_before(to: str) -> str:
    """Returns the URL of the page that required the login.

    `to` is the path of that page with its query. If it is empty or too long, returns the
    URL of the page *Today*. The URL is always relative to the root of this service, so
    it never leads to another site.
    """
    path = to.lstrip("/")  # a browser reads `//host/` as the URL of another site
    if not path or len(path) > MAX_PATH_CHARACTERS:
        return address()
    return path_to_root() + quote(path, safe="/?=&%+")


def _require_password_session(visit: Visit) -> str:
    """Returns the hash of the password with which the session was opened.

    Raises NotFound if it was opened with a link: the merchant must not learn of other
    merchants.
    """
    password_scrypt = visit.session.password_scrypt
    if password_scrypt is None:
        raise NotFound("there is no such page")
    return password_scrypt


def _windows(service: Service) -> WindowKeys:
    """Yields the rate limits that count the visitor's wrong passwords.

    A browser that has logged in before (known_browser.py) has a limit of its own. Each
    other browser has the limit of its address, and the limit that all of them share.
    """
    known_id = known_browser.known_id(service)
    if known_id:
        yield KNOWN_BROWSERS, known_id
    else:
        yield from failed_auth_windows()
        yield FAILED_PASSWORDS, "all"
