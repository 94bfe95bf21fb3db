"""One request of a logged-in merchant, as the pages' view functions get it."""

import hmac
import re
from collections.abc import Collection, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import date, datetime, timedelta
from decimal import Decimal
from functools import cached_property
from typing import Any, Protocol, TypeVar
from urllib.parse import urlencode
from zoneinfo import ZoneInfo

from flask import Response, request

from btcpay.invoices.links import greatest_amount
from btcpay.invoices.orders import Order, order_of
from btcpay.merchants.account import dust_limit_of_account
from btcpay.parts.merchant_pages.menu import menu_of
from btcpay.parts.merchant_pages.session_queries import Session
from btcpay.values.errors import InvalidRequest, NotFound
from btcpay.values.ids import derived_base62, derived_id, is_id
from btcpay.values.money import CODES, amount_due
from btcpay.values.times import zone_of
from btcpay.web.pages import languages
from btcpay.web.pages.forms import (
    limit_fields,
    new_form_id,
    read_amount,
    read_form,
    read_written_amount,
)
from btcpay.web.pages.render import Pages, path_to_root
from btcpay.web.service import Service
from schemas.requests import NEW_PRICED_INVOICE, load
from storage.queries import merchants
from storage.statement import Typed
from storage.values import Values


class Owned(Protocol):
    merchant_id: int


OwnedRow = TypeVar("OwnedRow", bound=Owned)
ROOT = "/merchant"
MAX_DAY_CHARACTERS = 20
LAST_DAY = date.max - timedelta(days=1)
# The ids of invalid fields in a page's HTML.
_INVALID_ID = re.compile(r'<\w+ id="([\w-]+)"[^>]* aria-invalid="true"')
# The maximum size of a form with a file. It is more than the maximum size of the file, so
# that a form with a slightly larger file arrives, and the page can tell the merchant.
MAX_UPLOAD_BYTES = 1_000_000


def address(path: str = "", **query: object) -> str:
    """Returns the URL of a merchant's page, relative to the page of this request.

    `path` is the path below ROOT, such as `/invoices`. `query` has the parameters;
    parameters whose value is None or "" are left out.
    """
    parameters = {
        name: value for name, value in query.items() if value not in (None, "")
    }
    root = ROOT.removeprefix("/")  # so that the URL is relative
    url = path_to_root() + root + path
    text = urlencode(parameters | languages.language_parameter())
    if text:
        url += f"?{text}"
    return url


@dataclass(frozen=True)
class Visit:
    """A request, its session, and what a view needs to answer the request.

    `pages` renders the templates. `secret` is the secret in the session cookie. `now` is
    the time of the request; all code that handles the request uses this time.
    """

    service: Service
    pages: Pages
    session: Session
    secret: str
    now: datetime

    @property
    def merchant_id(self) -> int:
        """The id of the session's merchant. Each query of a view must be limited to this id."""
        return self.session.merchant_id

    @property
    def is_owner(self) -> bool:
        """True if the session belongs to the service's owner, who may make backups.

        A session that was opened with the owner's password belongs to the owner. If the
        service has only one merchant, all its sessions do. A till-only session never does.
        """
        if self.session.till_only:
            return False
        return bool(self.session.password_scrypt) or not self.session.others

    @property
    def is_only_owner(self) -> bool:
        """True if the session is the owner's, and the service has only one merchant."""
        return self.is_owner and not self.session.others

    @cached_property
    def zone(self) -> ZoneInfo:
        return zone_of(self.session.timezone)

    @cached_property
    def form(self) -> dict[str, str]:
        """The first value of each field of the submitted form, without blank fields."""
        if request.mimetype == "multipart/form-data":
            return limit_fields(
                {name: text for name, text in request.form.items() if text}
            )
        return read_form()

    @cached_property
    def currency(self) -> str:
        """The currency of the amounts in the form; if the form names none, the shop's.

        Forms contain their currency, since the merchant may change the shop's currency
        after a form was shown. Raises InvalidRequest if there is no such currency.
        """
        currency = self.form.get("currency", self.session.currency)
        if currency not in CODES:
            raise InvalidRequest("the form names no currency")
        return currency

    @property
    def dust_limit_sats(self) -> int:
        """The lowest amount in satoshis that nodes relay to the merchant's addresses."""
        return dust_limit_of_account(self.session.descriptor)

    def amount(self, text: str) -> Decimal:
        """Parses an amount that a person entered, in the form's currency.

        Raises AmountRefused if it is invalid, or higher than an amount may be.
        """
        return read_amount(
            text,
            self.currency,
            low=Decimal(0),
            high=greatest_amount(self.currency),
        )

    def written_amount(self, text: str) -> Decimal:
        """Parses an amount that a page has written into a form or URL.

        Raises AmountRefused if it is invalid.
        """
        return read_written_amount(
            text,
            self.currency,
            low=Decimal(0),
            high=greatest_amount(self.currency),
        )

    def order(self, fields: Mapping[str, Any], **more: str | None) -> Order:
        """Returns an order in the form's currency.

        `fields` are the order's fields as in the API's operation create-invoice. `more`
        are further columns of the invoice. Raises InvalidRequest or CommandError if a
        field is invalid.
        """
        body = load(NEW_PRICED_INVOICE, fields)
        currency = self.currency
        return order_of(
            self.merchant_id,
            body | more,
            currency,
            high=greatest_amount(currency),
            dust_limit_sats=self.dust_limit_sats,
        )

    @property
    def query(self) -> dict[str, str]:
        """The first value of each query parameter."""
        return request.args.to_dict()

    def day(self, name: str) -> date | None:
        """Returns the day in the URL parameter `name`; in a POST, in the field `name`.

        Returns None if the text is empty or missing. A day after LAST_DAY is replaced by
        LAST_DAY, so that each day has a next day. Raises InvalidRequest if the text is no
        day: a list that ignored it would have more rows than requested.
        """
        fields = self.query
        if request.method == "POST":
            fields = self.form
        text = fields.get(name, "").strip()
        if not text:
            return None
        try:
            day = date.fromisoformat(text[:MAX_DAY_CHARACTERS])
        except ValueError:
            raise InvalidRequest(f"{name} is no day such as 2026-12-31") from None
        return min(day, LAST_DAY)

    def choice(self, name: str, choices: Collection[str]) -> str:
        """Returns the value of the URL parameter `name`; "" if it is empty or missing.

        Raises InvalidRequest if the value is not one of `choices`.
        """
        value = self.query.get(name, "")
        if value and value not in choices:
            raise InvalidRequest(f"{name} is none of {', '.join(choices)}")
        return value

    def get_or_404(self, query: Typed[OwnedRow], prefix: str, id: str) -> OwnedRow:
        """Returns the row with this id. Raises NotFound if the merchant has no such row.

        The query may find rows of other merchants, since this method compares the row's
        `merchant_id`. `prefix` is the first part of the ids of such rows, for example
        "inv". If `id` does not have the form of an id, the query is not executed.
        """
        values: Values = {"id": id, "merchant_id": self.merchant_id}
        row = None
        if is_id(prefix, id):
            row = self.service.db.get_or_none(query, **values)
        if row is None or row.merchant_id != self.merchant_id:
            raise NotFound("there is nothing with this id")
        return row

    def is_own_form(self) -> bool:
        """True if the submitted form has the CSRF token of this session."""
        token = self.form.get("token", "")
        return hmac.compare_digest(token.encode(), self._token.encode())

    @contextmanager
    def create_once(self, prefix: str, by_id: Typed[Any]) -> Iterator[tuple[str, bool]]:
        """Opens a database transaction in which a form creates a row only once.

        Yields the id for the new row, and whether a row with this id exists. It exists if
        the browser has sent the same form before, since the id is derived from the form.
        `by_id` is the query that finds the row. The transaction locks the merchant's
        row, so that a second request waits for the first.
        """
        db = self.service.db
        id = derived_id(prefix, self.secret, f"press {self._press}")
        with db.write():
            db.get(merchants.LOCKED, id=self.merchant_id)
            yield id, db.get_or_none(by_id, id=id) is not None

    def form_secret(self) -> str:
        """Returns the secret that this form creates. No table stores it in clear text.

        The secret is derived from the session's secret and the form. So a form that is
        sent again creates the same secret again.
        """
        return derived_base62(self.secret, f"secret {self._press}")

    @property
    def _press(self) -> str:
        """The URL's parameters and all fields of the form, as one text.

        The text is the same if the browser sends one form twice. It differs between two
        forms, since the field `press` has a new random id each time a form is shown.
        """
        return f"{request.query_string!r} {urlencode(sorted(self.form.items()))}"

    @property
    def _token(self) -> str:
        """The CSRF token of this session's forms.

        Nobody can compute it without the secret in the session cookie.
        """
        return hmac.digest(self.secret.encode(), b"form", "sha256").hex()

    def page(self, template: str, status: int = 200, **values: Any) -> Response:
        """Renders a template in the frame of the merchant's pages.

        The template gets `values`, and the values that every page needs.
        """
        return self.pages.page(
            f"merchant/{template}",
            status,
            merchant=self.session.merchant,
            seller=self.session.seller,
            in_inbox=self.session.wanting,
            menu=menu_of(self.session),
            till_only=self.session.till_only,
            is_owner=self.is_owner,
            address=address,
            token=self._token,
            press=new_form_id(),
            done=request.args.get("done", ""),
            now=self.now,
            zone=self.zone,
            zone_name=self.session.timezone.replace("_", " "),
            decimal=Decimal,
            amount_due=amount_due,
            invalid_ids=_INVALID_ID.findall,
            currency=self.currency,
            **values,
        )

    def redirect(self, path: str = "", **query: object) -> Response:
        """Redirects (303) to a merchant's page after a form was sent.

        The parameter `done` in `query` is the name of a message that the page shows,
        such as "accepted".
        """
        return Response(status=303, headers={"Location": address(path, **query)})
