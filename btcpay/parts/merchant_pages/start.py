"""The pages of the first run, which create the first merchant in three steps.

Each form carries what the steps before it have asked: nothing is stored before the
last one.
"""

from typing import NoReturn

from flask import Response, request

from btcpay.check.beginning import begin_chain
from btcpay.merchants import first_run
from btcpay.merchants.account import SCRIPT_TYPES
from btcpay.merchants.first_run import AccountPosition
from btcpay.merchants.secret import refuse_secret
from btcpay.merchants.wallet_text.accounts import WalletAccount
from btcpay.merchants.wallet_text.read import read_wallet_text
from btcpay.parts.merchant_pages.login import enter
from btcpay.parts.merchant_pages.start_form import (
    SHOP,
    WALLET,
    SkipRefused,
    Typed,
    confirmed_beginning,
    default_fields,
    read_start_form,
    shop_problems,
    skip_of,
)
from btcpay.parts.merchant_pages.start_refusals import nothing_given, refusal_of
from btcpay.parts.merchant_pages.start_steps import StartSteps
from btcpay.values.errors import CommandError, NotFound
from btcpay.web.admission import count_request, failed_auth_windows, refuse_other_sites
from btcpay.web.pages.render import Pages
from btcpay.web.service import Service


class StartViews:
    """The views of the setup link. They need no session."""

    def __init__(self, service: Service, pages: Pages) -> None:
        self._service = service
        self._steps = StartSteps(service, pages)

    def show(self, token: str) -> Response:
        """Shows the first step. Raises NotFound for a wrong token."""
        require_setup_token(self._service, token)
        return self._steps.shop(default_fields())

    def press(self, token: str) -> Response:
        """Shows the next step, the mistakes in this one, or a question about the text.

        Once the addresses are confirmed, it creates the merchant and logs in. Raises
        NotFound for a wrong token.
        """
        service = self._service
        refuse_other_sites(service)
        if not first_run.is_setup_token(service.db, token):
            refuse_setup_token(service)
        typed = default_fields() | read_start_form()
        if not first_run.is_open(service.db, token):
            return self._enter_again(token, typed)
        if typed["back"] == SHOP:
            return self._steps.shop(typed)
        problems = shop_problems(typed)
        if problems:
            return self._steps.shop(typed, problems)
        if typed["step"] == SHOP or typed["back"] == WALLET or "differ" in typed:
            return self._steps.wallet(typed)
        return self._read(token, typed)

    def _read(self, token: str, typed: Typed) -> Response:
        """Reads the wallet's text, or the file that takes its place."""
        text = typed["file"] or typed["key"]
        try:
            refuse_secret(typed["key"])
            skip = skip_of(typed["skip"])
            if not text.strip():
                return self._steps.wallet(typed, refusal=nothing_given())
            wallet_text = read_wallet_text(text, self._service.settings.network)
            read = typed | {"key": text}
            if len(wallet_text.accounts) > 1 and not read["choose"]:
                return self._steps.choose_account(read, wallet_text)
            chosen = wallet_text.choose(read["choose"] or None)
            if chosen.is_assumed and read["script"] not in SCRIPT_TYPES:
                return self._steps.choose_script_type(read, chosen)
            if chosen.is_assumed:
                chosen = chosen.with_script_type(read["script"])
            beginning = confirmed_beginning(read)
            if beginning is None:
                return self._steps.compare(read, wallet_text, chosen, skip)
            return self._make(token, chosen, read, beginning)
        except SkipRefused as error:
            return self._steps.wallet(typed, skip_problem=str(error))
        except CommandError as error:
            return self._steps.wallet(typed, refusal=refusal_of(error))

    def _make(
        self,
        token: str,
        chosen: WalletAccount,
        typed: Typed,
        beginning: AccountPosition,
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


def require_setup_token(service: Service, token: str) -> None:
    """Raises NotFound if the token is wrong or used, and counts a failed login."""
    if not first_run.is_open(service.db, token):
        refuse_setup_token(service)


def refuse_setup_token(service: Service) -> NoReturn:
    """Raises NotFound, and counts a failed login."""
    count_request(service, failed_auth_windows())
    raise NotFound("there is no such page")
