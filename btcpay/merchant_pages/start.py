"""The first run: whoever has the link that `run` and `serve` print makes the first merchant."""

from typing import Any

from flask import Response, request

from btcpay.bitcoin.descriptor import Descriptor
from btcpay.merchant_pages.area import Area
from btcpay.merchant_pages.visit import address, fields_of_form
from btcpay.merchants.account import SCRIPT_TYPES, derive, parse_account
from btcpay.merchants.merchants import require_name
from btcpay.merchants.start import is_open, make_first
from btcpay.values.errors import CommandError, NotFound
from btcpay.values.money import CODES, checked_currency
from btcpay.values.times import checked_zone, places
from btcpay.web.admission import count, wrong

NEUTRAL = ("xpub", "tpub")  # they do not say the kind of their addresses
PROPOSED = {"currency": "USD", "timezone": "UTC", "script": SCRIPT_TYPES[0]}


class Start:
    """Two pages: a form, and the first addresses to compare with the wallet's."""

    def __init__(self, area: Area) -> None:
        self._area, self._service = area, area.service

    def show(self, token: str) -> Response:
        self._require(token)
        return self._form(PROPOSED)

    def make(self, token: str) -> Response:
        """Shows what is wrong, or the addresses; once they are the same, makes the merchant."""
        self._area.refuse_other_sites()
        self._require(token)
        typed = PROPOSED | fields_of_form()
        if "differ" in typed:
            return self._form(typed)
        try:
            account, opened = self._account_of(typed), None
            if "same" in typed:
                opened = self._make(token, typed, account)
        except (CommandError, ValueError) as error:
            # Never back to the screen: what was refused may be a private key.
            return self._form(typed | {"key": ""}, str(error))
        if opened is None:
            return self._compare(typed, account)
        response = Response(status=303, headers={"Location": address()})
        self._area.keep(response, opened)
        return response

    def _require(self, token: str) -> None:
        """Raises NotFound for a wrong or spent token, which counts as a wrong key."""
        if not is_open(self._service.db, token):
            count(self._service, wrong())
            raise NotFound("there is no such page")

    def _account_of(self, typed: dict[str, str]) -> Descriptor:
        require_name(typed.get("name", ""))
        checked_currency(typed["currency"])
        checked_zone(typed["timezone"])
        key = typed.get("key", "").strip()
        script = typed["script"] if key.startswith(NEUTRAL) else None
        if script not in (None, *SCRIPT_TYPES):
            raise CommandError("there is no such kind of addresses")
        return parse_account(key, self._service.settings.network, script)

    def _make(self, token: str, typed: dict[str, str], account: Descriptor) -> str:
        """The secret of this browser's session. Raises NotFound when another one was faster."""
        opened = make_first(
            self._service.db,
            token,
            typed["name"].strip(),
            account,
            typed["currency"],
            typed["timezone"],
            request.headers.get("User-Agent", ""),
            self._service.now(),
        )
        if opened is None:
            raise NotFound("there is no such page")
        return opened

    def _form(self, typed: dict[str, str], problem: str = "") -> Response:
        return self._page(
            typed,
            400 if problem else 200,
            problem=problem,
            scripts=SCRIPT_TYPES,
            currencies=sorted(CODES),
            places=sorted(places()),
        )

    def _compare(self, typed: dict[str, str], account: Descriptor) -> Response:
        network = self._service.settings.network
        first = [derive(str(account), index, network) for index in range(3)]
        return self._page(typed, account=account, addresses=first)

    def _page(self, typed: dict[str, str], status: int = 200, **values: Any) -> Response:
        page = self._area.pages.page("merchant/start.html", status, typed=typed, **values)
        page.headers["Referrer-Policy"] = "strict-origin"  # the address holds the token
        return page
