"""The first run: the link that `run` and `serve` print lets its holder make the first merchant."""

from typing import Any

from flask import Response, request

from btcpay.languages import formats
from btcpay.languages.catalogs import LANGUAGES
from btcpay.merchant_pages.area import Area
from btcpay.merchant_pages.visit import address
from btcpay.merchants.account import SCRIPT_TYPES, derive, holds_secret, parse_account
from btcpay.merchants.merchants import checked_name
from btcpay.merchants.sessions import is_open, make_first
from btcpay.values.errors import CommandError, NotFound
from btcpay.values.money import CODES, checked_currency
from btcpay.values.times import checked_zone, places
from btcpay.web.admission import count, wrong
from btcpay.web.pages import languages
from btcpay.web.pages.forms import fields_of_form

NEUTRAL = ("xpub", "tpub")  # they do not say the kind of their addresses
EMPTY = {"name": "", "timezone": "UTC", "key": "", "script": SCRIPT_TYPES[0]}
Typed = dict[str, str]


class Start:
    """Two pages: a form, and the first addresses to compare with the wallet's."""

    def __init__(self, area: Area) -> None:
        self._area, self._service = area, area.service

    def show(self, token: str) -> Response:
        self._require(token)
        return self._form(_proposed())

    def make(self, token: str) -> Response:
        """Shows the mistakes, or the addresses; once these are confirmed, makes the merchant."""
        self._area.refuse_other_sites()
        self._require(token)
        service, typed = self._service, _proposed() | fields_of_form()
        if "differ" in typed:
            return self._form(typed)
        try:
            _refuse_wrong(typed)
            network, key = service.settings.network, typed["key"].strip()
            script = typed["script"] if key.startswith(NEUTRAL) else None
            account = parse_account(key, network, script)
            if "same" not in typed:
                first = [derive(str(account), index, network) for index in range(3)]
                return self._page(typed, account=account, addresses=first)
            chosen = typed["currency"], typed["timezone"], typed["language"]
            wanted = typed["name"].strip(), account, *chosen
            browser = request.headers.get("User-Agent", "")
            opened = make_first(service.db, token, *wanted, browser, service.now())
        except (CommandError, ValueError) as error:
            return self._form(typed | {"key": ""}, str(error))
        if opened is None:  # another browser was faster
            raise NotFound("there is no such page")
        response = Response(status=303, headers={"Location": address()})
        self._area.keep(response, opened)
        return response

    def _require(self, token: str) -> None:
        """Raises NotFound for a wrong or spent token, which counts as a wrong key."""
        if not is_open(self._service.db, token):
            count(self._service, wrong())
            raise NotFound("there is no such page")

    def _form(self, typed: Typed, problem: str = "") -> Response:
        # A refused key, or any other text that holds a secret, is never shown again.
        safe = {name: "" if holds_secret(text) else text for name, text in typed.items()}
        return self._page(
            safe,
            400 if problem else 200,
            problem=problem,
            scripts=SCRIPT_TYPES,
            currencies=sorted(CODES),
            places=sorted(places()),
        )

    def _page(self, typed: Typed, status: int = 200, **values: Any) -> Response:
        page = self._area.pages.page("merchant/start.html", status, typed=typed, **values)
        page.headers["Referrer-Policy"] = "strict-origin"  # the address holds the token
        return page


def _proposed() -> Typed:
    """The empty form, with the browser's language and the currency where that is spoken."""
    tag = request.accept_languages.best or ""
    currency = formats.currency_of(tag) or "USD"
    return EMPTY | {"currency": currency, "language": languages.current()}


def _refuse_wrong(typed: Typed) -> None:
    """Raises CommandError, ValueError."""
    checked_name(typed["name"])
    checked_currency(typed["currency"])
    checked_zone(typed["timezone"])
    if typed["language"] not in LANGUAGES:
        raise CommandError("there is no such language")
    if typed["script"] not in SCRIPT_TYPES:
        raise CommandError("there is no such kind of addresses")
