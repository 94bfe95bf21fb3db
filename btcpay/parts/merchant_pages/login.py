"""The login links, and the link of the first run, which creates the merchant."""

from contextlib import suppress
from typing import Any

from flask import Response, request

from btcpay.check.beginning import begin_chain
from btcpay.languages import formats
from btcpay.languages.catalogs import LANGUAGES
from btcpay.merchants import sessions
from btcpay.merchants.account import SCRIPT_TYPES
from btcpay.merchants.merchants import checked_name
from btcpay.merchants.secret import holds_secret
from btcpay.merchants.wallet_text.accounts import WalletText
from btcpay.merchants.wallet_text.read import read_wallet_text
from btcpay.parts.merchant_pages.visit import (
    address,
    session_secret,
    set_session_cookie,
)
from btcpay.settings.mail_settings import checked_address
from btcpay.values.errors import CommandError, NotFound
from btcpay.values.ids import sha256_of
from btcpay.values.money import CODES, checked_currency
from btcpay.values.times import checked_zone, places, to_ms
from btcpay.web.admission import count_request, failed_auth_windows, refuse_other_sites
from btcpay.web.pages import languages
from btcpay.web.pages.forms import read_form
from btcpay.web.pages.render import Pages
from btcpay.web.service import Service
from storage.queries import sessions as stored
from storage.queries.deliveries import ASK_LOGIN

GONE = 410
FIRST_ADDRESSES = 3  # shown for comparison with the wallet
EMPTY = {
    "name": "",
    "timezone": "UTC",
    "key": "",
    "choose": "",
    "script": SCRIPT_TYPES[0],
}
Typed = dict[str, str]


class LoginViews:
    """The views of both kinds of link. They need no session."""

    def __init__(self, service: Service, pages: Pages) -> None:
        self._service = service
        self._pages = pages

    def show_login(self, secret: str) -> Response:
        """Shows a button that logs in.

        Opening the link does not use it up, since mail scanners open links too.
        """
        return self._login_page(self._whose(secret))

    def log_in(self, secret: str) -> Response:
        """Uses up the link, and opens a session.

        A browser that was logged in before gets a new session.
        """
        refuse_other_sites(self._service)
        # Looked up first, so that an invalid link causes no write to the database.
        login = self._whose(secret)
        if login is None:
            return self._login_page(None)
        service = self._service
        former = session_secret(self._service)
        browser = request.headers.get("User-Agent", "")
        opened = sessions.log_in(service.db, secret, former, browser, service.now())
        # Another browser has used the link in the meantime.
        if opened is None:
            return self._login_page(None)
        return self._enter(opened, "/till" if login.till_only else "")

    def mail_link(self, form: Typed) -> Response:
        """Requests a mail with a login link for the address in the form.

        The response is the same for each address. It does not wait for the database, so
        that its duration does not reveal whether the address is a merchant's.
        """
        with suppress(ValueError):
            to = checked_address(form.get("address", "").strip()).lower()
            self._service.notes.note(ASK_LOGIN, to, self._service.now())
        return Response(status=303, headers={"Location": address("/login/mailed")})

    def show_mailed(self) -> Response:
        return self._pages.page("merchant/link_mailed.html")

    def show_logged_out(self) -> Response:
        return self._pages.page("merchant/logged_out.html")

    def _whose(self, secret: str) -> stored.Login | None:
        """Returns the login that the link offers, without using it up.

        None if the link is invalid, which counts as a failed login. Raises RateLimited.
        """
        now_ms = to_ms(self._service.now())
        login = self._service.db.get_or_none(
            stored.LOGIN, secret_sha256=sha256_of(secret), now=now_ms
        )
        if login is None:
            count_request(self._service, failed_auth_windows())
        return login

    def _login_page(self, login: stored.Login | None) -> Response:
        status = 200
        if login is None:
            status = GONE
        return self._page("login.html", status, login=login)

    def show_start(self, token: str) -> Response:
        """Shows the form for a new merchant. Raises NotFound for a wrong token."""
        self._require(token)
        return self._form(_defaults())

    def start(self, token: str) -> Response:
        """Shows the mistakes in the form, the accounts to choose from, or the first
        addresses of the wallet to compare.

        Once the addresses are confirmed, it creates the merchant and logs in. Raises
        NotFound for a wrong token.
        """
        refuse_other_sites(self._service)
        self._require(token)
        service = self._service
        typed = _defaults() | read_form(long_field="key")
        if "differ" in typed:
            return self._form(typed)
        try:
            _refuse_wrong(typed)
            network = service.settings.network
            wallet_text = read_wallet_text(typed["key"], network)
            if len(wallet_text.accounts) > 1 and not typed["choose"]:
                return self._choice(typed, wallet_text)
            chosen = wallet_text.choose(typed["choose"] or None)
            if chosen.is_assumed:
                chosen = chosen.with_script_type(typed["script"])
            account = chosen.descriptor
            if "same" not in typed:
                return self._page(
                    "start.html",
                    typed=typed,
                    account=account,
                    addresses=chosen.first_addresses(network, FIRST_ADDRESSES),
                    description=chosen.description,
                    notes=chosen.notes,
                    left_out=wallet_text.left_out,
                )
            browser = request.headers.get("User-Agent", "")
            opened = sessions.make_first(
                service.db,
                token,
                account,
                typed,
                browser,
                service.now(),
                service.owner_password.scrypt or None,
            )
        except (CommandError, ValueError) as error:
            return self._form(typed | {"key": ""}, str(error))
        # Another browser has used the link in the meantime.
        if opened is None:
            raise NotFound("there is no such page")
        begin_chain(service.db, service.settings, service.now)
        return self._enter(opened)

    def _choice(self, typed: Typed, wallet_text: WalletText) -> Response:
        """Shows the accounts of a text, each with its first address."""
        network = self._service.settings.network
        choices = []
        for account in wallet_text.accounts:
            if account.is_assumed:
                account = account.with_script_type(typed["script"])
            (first,) = account.first_addresses(network, 1)
            choices.append((account, first))
        return self._page("start.html", typed=typed, choices=choices)

    def _require(self, token: str) -> None:
        """Raises NotFound if the token is wrong or used, and counts a failed login."""
        if not sessions.is_open(self._service.db, token):
            count_request(self._service, failed_auth_windows())
            raise NotFound("there is no such page")

    def _form(self, typed: Typed, problem: str = "") -> Response:
        # A text that contains a secret, such as a private key, is never shown again.
        safe = {}
        for name, text in typed.items():
            safe[name] = "" if holds_secret(text) else text
        return self._page(
            "start.html",
            400 if problem else 200,
            typed=safe,
            problem=problem,
            scripts=SCRIPT_TYPES,
            currencies=sorted(CODES),
            places=sorted(places()),
        )

    def _page(self, template: str, status: int = 200, **values: Any) -> Response:
        page = self._pages.page(f"merchant/{template}", status, **values)
        # The URL contains the secret. The Referer header of the page's requests must
        # not reveal it to a proxy's log.
        page.headers["Referrer-Policy"] = "strict-origin"
        return page

    def _enter(self, opened: str, path: str = "") -> Response:
        """Redirects to a merchant's page, and sets the cookie of the new session."""
        response = Response(status=303, headers={"Location": address(path)})
        set_session_cookie(self._service, response, opened)
        return response


def _defaults() -> Typed:
    """Returns the values of an empty form.

    They have the browser's language, and the currency of its country.
    """
    tag = request.accept_languages.best or ""
    currency = formats.currency_of(tag) or "USD"
    return EMPTY | {"currency": currency, "language": languages.current_language()}


def _refuse_wrong(typed: Typed) -> None:
    """Raises CommandError or ValueError if a field is invalid."""
    checked_name(typed["name"])
    checked_currency(typed["currency"])
    checked_zone(typed["timezone"])
    if typed["language"] not in LANGUAGES or typed["script"] not in SCRIPT_TYPES:
        raise CommandError("there is no such language, or no such kind of addresses")
