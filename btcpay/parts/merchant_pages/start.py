"""The pages of the first run, which create the first merchant in three steps.

Each form also contains the fields of the steps before. Nothing is stored before the
last step.
"""

from typing import NoReturn

from flask import Response, request

from btcpay.check.beginning import begin_chain
from btcpay.merchants import first_run
from btcpay.merchants.account import SCRIPT_TYPES
from btcpay.merchants.first_run import AccountPosition
from btcpay.merchants.secret import refuse_secret
from btcpay.merchants.wallet_text.accounts import WalletAccount
from btcpay.merchants.wallet_text.clean import MAX_CHARS
from btcpay.merchants.wallet_text.read import read_wallet_text
from btcpay.parts.merchant_pages.login import enter
from btcpay.parts.merchant_pages.start_form import (
    SHOP,
    WALLET,
    FormFields,
    SkipRefused,
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
    """The pages of the first run, to which the setup link leads. They need no session."""

    def __init__(self, service: Service, pages: Pages) -> None:
        self._service = service
        self._steps = StartSteps(service, pages)

    def show(self, token: str) -> Response:
        """Shows the first step. Raises NotFound if the setup link does not work."""
        require_setup_token(self._service, token)
        return self._steps.shop(default_fields())

    def press(self, token: str) -> Response:
        """Handles a form of the first run, and shows the page that follows.

        That page is the next step, the same step with errors, or a question about the
        wallet's text. When the visitor has confirmed the shop's first addresses, creates
        the merchant and logs in. Raises NotFound if the setup link does not work.
        """
        service = self._service
        refuse_other_sites(service)
        if not first_run.is_setup_token(service.db, token):
            refuse_setup_token(service)
        fields = default_fields() | read_start_form()
        # A merchant exists. If this form has created it, the browser has sent the form twice.
        if not first_run.is_open(service.db, token):
            return self._enter_again(token, fields)
        if fields["back"] == SHOP:
            return self._steps.shop(fields)
        problems = shop_problems(fields)
        if problems:
            return self._steps.shop(fields, problems)
        # `differ`: the wallet does not show the addresses that the page shows.
        is_back = fields["back"] == WALLET or "differ" in fields
        if fields["step"] == SHOP or is_back:
            return self._steps.wallet(fields)
        return self._answer_wallet(token, fields)

    def _answer_wallet(self, token: str, fields: FormFields) -> Response:
        """Shows the page that follows the wallet's form, or that form with an error."""
        text = fields["file"] or fields["key"]
        # The next forms have the text of the file in the field `key`.
        fields_with_text = fields | {"key": text}
        try:
            if fields["file"]:
                refuse_secret(fields["key"][:MAX_CHARS])
            if not text.strip():
                return self._steps.wallet(fields, refusal=nothing_given())
            return self._after_wallet(token, fields_with_text)
        except SkipRefused as error:
            return self._steps.wallet(fields_with_text, skip_problem=str(error))
        except CommandError as error:
            return self._steps.wallet(fields, refusal=refusal_of(error))

    def _after_wallet(self, token: str, fields: FormFields) -> Response:
        """Asks what the wallet's text leaves open, one question after the other.

        When all is answered, creates the merchant and logs in. Raises SkipRefused if the
        number of addresses to leave out is invalid, and CommandError if the text cannot
        be used.
        """
        wallet_text = read_wallet_text(fields["key"], self._service.settings.network)
        skip = skip_of(fields["skip"])
        account_name = fields["choose"] or None
        if len(wallet_text.accounts) > 1 and account_name is None:
            return self._steps.choose_account(fields, wallet_text)
        account = wallet_text.choose(account_name)
        # Nothing in the text gives the script type, so the visitor chooses it.
        if account.is_assumed:
            script_type = fields["script"]
            if script_type not in SCRIPT_TYPES:
                return self._steps.choose_script_type(fields, account)
            account = account.with_script_type(script_type)
        beginning = confirmed_beginning(fields)
        if beginning is None:
            return self._steps.compare(fields, wallet_text, account, skip)
        return self._create(token, account, fields, beginning)

    def _create(
        self,
        token: str,
        account: WalletAccount,
        fields: FormFields,
        beginning: AccountPosition,
    ) -> Response:
        """Creates the merchant, and logs this browser in.

        Raises NotFound if another browser has created a merchant in the meantime.
        """
        service = self._service
        secret = first_run.make_first(
            service.db,
            token,
            account.descriptor,
            fields,
            browser=request.headers.get("User-Agent", ""),
            now=service.now(),
            password_scrypt=service.owner_password.scrypt or None,
            beginning=beginning,
            press=fields["press"],
        )
        if secret is None:
            return self._enter_again(token, fields)
        begin_chain(service.db, service.settings, service.now)
        return enter(service, secret)

    def _enter_again(self, token: str, fields: FormFields) -> Response:
        """Logs in a browser that sends the same form a second time, as the first request did.

        Raises NotFound if another form has created the merchant, or if the setup link
        does not work.
        """
        service = self._service
        secret = first_run.session_of_press(
            service.db,
            token,
            fields["press"],
            service.now(),
            service.owner_password.scrypt,
        )
        if secret is None:
            refuse_setup_token(service)
        return enter(service, secret)


def require_setup_token(service: Service, token: str) -> None:
    """Raises NotFound if `token` is not that of the setup link, or if a merchant exists.

    Counts this as a failed login. After too many of them, raises RateLimited instead.
    """
    if not first_run.is_open(service.db, token):
        refuse_setup_token(service)


def refuse_setup_token(service: Service) -> NoReturn:
    """Counts a failed login, and raises NotFound; RateLimited after too many failures."""
    count_request(service, failed_auth_windows())
    raise NotFound("there is no such page")
