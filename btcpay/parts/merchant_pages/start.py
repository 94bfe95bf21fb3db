"""The pages of the first run, which create the first merchant."""

import re
from collections.abc import Mapping
from typing import Any, NoReturn

from flask import Response, request

from btcpay.chain.account_start import (
    MOST_SKIPPED,
    PAGE_S,
    AccountStart,
    find_account_start,
)
from btcpay.check.beginning import begin_chain
from btcpay.languages import formats
from btcpay.languages.catalogs import LANGUAGES
from btcpay.merchants import first_run
from btcpay.merchants.account import SCRIPT_TYPES
from btcpay.merchants.first_run import Beginning
from btcpay.merchants.merchants import checked_name
from btcpay.merchants.secret import holds_secret
from btcpay.merchants.wallet_text.accounts import WalletAccount, WalletText
from btcpay.merchants.wallet_text.read import read_wallet_text
from btcpay.parts.merchant_pages.login import enter, page_of_secret
from btcpay.parts.merchant_pages.visit import MAX_UPLOAD_BYTES, address
from btcpay.values.errors import CommandError, NotFound
from btcpay.values.money import CODES, checked_currency
from btcpay.values.times import checked_zone, places
from btcpay.web.admission import count_request, failed_auth_windows, refuse_other_sites
from btcpay.web.pages import languages
from btcpay.web.pages.forms import new_form_id, read_form
from btcpay.web.pages.render import Pages
from btcpay.web.service import Service

FIRST_ADDRESSES = 3  # shown for comparison with the wallet
EMPTY = {
    "name": "",
    "timezone": "UTC",
    "key": "",
    "choose": "",
    "script": SCRIPT_TYPES[0],
    "skip": "",
    "next_index": "",
    "used_before": "",
    "press": "",
}
_NUMBER = re.compile("[0-9]{1,9}")
Typed = dict[str, str]


class StartViews:
    """The views of the setup link. They need no session."""

    def __init__(self, service: Service, pages: Pages) -> None:
        self._service = service
        self._pages = pages

    def show(self, token: str) -> Response:
        """Shows the form for a new merchant. Raises NotFound for a wrong token."""
        require_setup_token(self._service, token)
        return self._form(_defaults())

    def press(self, token: str) -> Response:
        """Shows the mistakes in the form, the accounts to choose from, or the first
        addresses of the shop to compare with the wallet.

        Once the addresses are confirmed, it creates the merchant and logs in. Raises
        NotFound for a wrong token.
        """
        service = self._service
        refuse_other_sites(service)
        if not first_run.is_setup_token(service.db, token):
            refuse_setup_token(service)
        typed = _defaults() | read_form(long_field="key", max_bytes=MAX_UPLOAD_BYTES)
        if not first_run.is_open(service.db, token):
            return self._enter_again(token, typed)
        if "differ" in typed:
            return self._form(typed)
        try:
            _refuse_wrong(typed)
            skip = _skip_of(typed["skip"])
            wallet_text = read_wallet_text(typed["key"], self._service.settings.network)
            if len(wallet_text.accounts) > 1 and not typed["choose"]:
                return self._choice(typed, wallet_text)
            chosen = wallet_text.choose(typed["choose"] or None)
            if chosen.is_assumed:
                chosen = chosen.with_script_type(typed["script"])
            beginning = _confirmed_beginning(typed)
            if beginning is None:
                return self._compare(typed, wallet_text, chosen, skip)
            return self._make(token, chosen, typed, beginning)
        except (CommandError, ValueError) as error:
            return self._form(typed | {"key": ""}, str(error))

    def _choice(self, typed: Typed, wallet_text: WalletText) -> Response:
        """Shows the accounts of a text, each with its first address."""
        network = self._service.settings.network
        choices = []
        for account in wallet_text.accounts:
            if account.is_assumed:
                account = account.with_script_type(typed["script"])
            (first,) = account.first_addresses(network, 1)
            choices.append((account, first))
        return self._page(typed=typed, choices=choices)

    def _compare(
        self,
        typed: Typed,
        wallet_text: WalletText,
        chosen: WalletAccount,
        skip: int | None,
    ) -> Response:
        """Shows the shop's first addresses, behind those that the chain shows as used.

        If the chain could not be asked, and the owner has not named a number, it shows
        the form again, which then asks for one.
        """
        service = self._service
        start = find_account_start(
            service.db,
            service.settings,
            chosen.descriptor,
            skip,
            service.now,
            PAGE_S,
        )
        if not start.is_decided:
            return self._form(typed, start=start)
        confirmed = {
            "next_index": str(start.index),
            "used_before": str(start.used_before),
            "press": new_form_id(),
        }
        return self._page(
            typed=typed | confirmed,
            start=start,
            account=chosen.descriptor,
            addresses=chosen.first_addresses(
                service.settings.network, FIRST_ADDRESSES, start.index
            ),
            description=chosen.description,
            notes=chosen.notes,
            left_out=wallet_text.left_out,
        )

    def _make(
        self, token: str, chosen: WalletAccount, typed: Typed, beginning: Beginning
    ) -> Response:
        """Creates the merchant, and logs this browser in.

        Raises NotFound if another browser has used the link in the meantime.
        """
        service = self._service
        opened = first_run.make_first(
            service.db,
            token,
            chosen.descriptor,
            typed,
            request.headers.get("User-Agent", ""),
            service.now(),
            service.owner_password.scrypt or None,
            beginning,
            typed["press"],
        )
        if opened is None:
            return self._enter_again(token, typed)
        begin_chain(service.db, service.settings, service.now)
        return enter(service, opened)

    def _enter_again(self, token: str, typed: Typed) -> Response:
        """Logs a browser in whose button was pressed twice, as the first press did.

        Raises NotFound if another form has made the merchant.
        """
        service = self._service
        secret = first_run.session_of_press(
            service.db,
            token,
            typed["press"],
            service.now(),
            service.owner_password.scrypt,
        )
        if secret is None:
            refuse_setup_token(service)
        return enter(service, secret)

    def _form(
        self, typed: Typed, problem: str = "", start: AccountStart | None = None
    ) -> Response:
        """Shows the form. `start`: where the shop begins, if that is not decided."""
        # A text that contains a secret, such as a private key, is never shown again.
        safe = {}
        for name, text in typed.items():
            safe[name] = "" if holds_secret(text) else text
        return self._page(
            400 if problem or start else 200,
            typed=safe,
            problem=problem,
            undecided=start,
            has_explorer=bool(self._service.settings.explorers),
            scripts=SCRIPT_TYPES,
            currencies=sorted(CODES),
            places=sorted(places()),
            restore=address(f"/start/{(request.view_args or {})['token']}/restore"),
        )

    def _page(self, status: int = 200, **values: Any) -> Response:
        return page_of_secret(self._pages, "start.html", status, **values)


def require_setup_token(service: Service, token: str) -> None:
    """Raises NotFound if the token is wrong or used, and counts a failed login."""
    if not first_run.is_open(service.db, token):
        refuse_setup_token(service)


def refuse_setup_token(service: Service) -> NoReturn:
    """Raises NotFound, and counts a failed login."""
    count_request(service, failed_auth_windows())
    raise NotFound("there is no such page")


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


def _skip_of(text: str) -> int | None:
    """Returns the number of addresses to leave out; None for an empty text.

    Raises CommandError.
    """
    text = text.strip()
    if not text:
        return None
    if not text.isdecimal() or len(text) > 9 or int(text) > MOST_SKIPPED:
        raise CommandError(
            f"the number to begin at must be a whole number from 0 to {MOST_SKIPPED}"
        )
    return int(text)


def _confirmed_beginning(typed: Mapping[str, str]) -> Beginning | None:
    """Returns where the shop begins, if its addresses were compared; else None."""
    numbers = (typed["next_index"], typed["used_before"])
    if "same" not in typed or not all(map(_NUMBER.fullmatch, numbers)):
        return None
    return Beginning(*map(int, numbers))
