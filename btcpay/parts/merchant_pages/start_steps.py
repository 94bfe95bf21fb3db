"""Shows the pages of the first run, one for each step."""

from typing import Any

from flask import Response, request

from btcpay.chain.account_start import PAGE_S, AccountStart, find_account_start
from btcpay.merchants.account import SCRIPT_TYPES
from btcpay.merchants.wallet_text.accounts import WalletAccount, WalletText
from btcpay.merchants.wallet_text.clean import MAX_CHARS
from btcpay.merchants.wallet_text.wallets import WALLETS
from btcpay.parts.merchant_pages.login import page_of_secret
from btcpay.parts.merchant_pages.start_form import FormFields, without_secrets
from btcpay.parts.merchant_pages.start_refusals import Refusal
from btcpay.parts.merchant_pages.visit import address
from btcpay.values.money import CODES
from btcpay.values.times import places
from btcpay.web.pages.forms import new_form_id
from btcpay.web.pages.render import Pages
from btcpay.web.service import Service

FIRST_ADDRESSES = 3  # shown for comparison with the wallet
REFUSED = 400
# The wallets to choose from: those whose menu leads to a text that can be parsed here.
LISTED_WALLETS = sorted(
    (wallet for wallet in WALLETS if wallet.menu),
    key=lambda wallet: wallet.name.casefold(),
)
# The page may use the camera of this device; all other pages may not.
CAMERA = "camera=(self)"


class StartSteps:
    """The pages of the first run. Each page shows the entered values again, except secrets."""

    def __init__(self, service: Service, pages: Pages) -> None:
        self._service = service
        self._pages = pages

    def choose_account(self, fields: FormFields, wallet_text: WalletText) -> Response:
        """Asks which account of a wallet's text to use. Shows the first address of each account."""
        network = self._service.settings.network
        choices = []
        for account in wallet_text.accounts:
            (first,) = account.first_addresses(network, 1)
            choices.append((account, first))
        return self._page("start_account.html", entries=fields, choices=choices)

    def choose_script_type(
        self, fields: FormFields, account: WalletAccount
    ) -> Response:
        """Asks for the script type, since the text does not give it.

        Shows the first address of each script type.
        """
        network = self._service.settings.network
        choices = []
        for script_type in SCRIPT_TYPES:
            typed_account = account.with_script_type(script_type)
            (first,) = typed_account.first_addresses(network, 1)
            choices.append((script_type, first))
        return self._page("start_script.html", entries=fields, choices=choices)

    def compare(
        self,
        fields: FormFields,
        wallet_text: WalletText,
        account: WalletAccount,
        skip: int | None,
    ) -> Response:
        """Shows the shop's first addresses, so that the visitor compares them with the wallet's.

        The shop begins after the addresses that the explorers know as used. `skip` is the
        number of addresses that the shop leaves out in any case; None if the visitor has
        entered no number. If the look-up fails and `skip` is missing or too low, shows
        the wallet's form again, with a field for the number.
        """
        service = self._service
        start = find_account_start(
            service.db,
            service.settings,
            account.descriptor,
            skip,
            service.now,
            seconds=PAGE_S,
        )
        if not start.is_decided:
            return self.wallet(fields, start=start)
        # The button with which the visitor confirms the addresses sends these fields.
        confirmed = {
            "next_index": str(start.index),
            "used_before": str(start.used_before),
            "press": new_form_id(),
        }
        addresses = account.first_addresses(
            service.settings.network, FIRST_ADDRESSES, start.index
        )
        return self._page(
            "start_compare.html",
            entries=fields | confirmed,
            start=start,
            account=account.descriptor,
            addresses=addresses,
            description=account.description,
            notes=account.notes,
            left_out=wallet_text.left_out,
        )

    def shop(
        self, fields: FormFields, problems: dict[str, str] | None = None
    ) -> Response:
        """Shows the form of the shop. `problems` are the errors, by field."""
        status = 200
        if problems:
            status = REFUSED
        token = (request.view_args or {})["token"]
        return self._page(
            "start_shop.html",
            status,
            entries=without_secrets(fields),
            problems=problems or {},
            currencies=sorted(CODES),
            places=sorted(places()),
            restore=address(f"/start/{token}/restore"),
        )

    def wallet(
        self,
        fields: FormFields,
        refusal: Refusal | None = None,
        skip_problem: str = "",
        start: AccountStart | None = None,
    ) -> Response:
        """Shows the form of the wallet.

        `refusal` is the reason why the wallet's text was not accepted. `skip_problem`
        is the error in the number of addresses to leave out. `start` is given if the
        position at which the shop begins in its account could not be decided.
        """
        status = 200
        if refusal or skip_problem or start:
            status = REFUSED
        page = self._page(
            "start_wallet.html",
            status,
            entries=without_secrets(fields),
            refusal=refusal,
            skip_problem=skip_problem,
            undecided=start,
            has_explorer=bool(self._service.settings.explorers),
            wallets=LISTED_WALLETS,
            most_bytes=MAX_CHARS,
        )
        page.headers["Permissions-Policy"] = CAMERA
        return page

    def _page(self, template: str, status: int = 200, **values: Any) -> Response:
        return page_of_secret(self._pages, template, status, **values)
