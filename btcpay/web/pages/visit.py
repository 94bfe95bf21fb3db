"""The interface of a request to the merchant's pages, for parts (optional plug-ins).

The class that implements it is in the part `merchant_pages`. Other parts import only
this module, since `merchant_pages` may be absent.
"""

from collections.abc import Collection, Mapping
from contextlib import AbstractContextManager
from datetime import datetime
from decimal import Decimal
from typing import Any, Protocol
from zoneinfo import ZoneInfo

from flask import Response

from btcpay.web.pages.render import Pages
from btcpay.web.service import Service
from storage.queries.sessions import Session
from storage.statement import Typed

# A sentence on the merchant's page of the day or of the month, the path of the page to which the
# sentence links, and the query parameters of that link.
Line = tuple[str, str, Mapping[str, str]]


class Visit(Protocol):
    """A request to the merchant's pages: the members that other parts may use.

    The class `Visit` in btcpay/parts/merchant_pages/visit.py implements them.
    """

    @property
    def service(self) -> Service: ...
    @property
    def pages(self) -> Pages: ...
    @property
    def session(self) -> Session: ...
    @property
    def merchant_id(self) -> int: ...
    @property
    def now(self) -> datetime: ...
    @property
    def zone(self) -> ZoneInfo: ...
    @property
    def form(self) -> Mapping[str, str]: ...
    @property
    def query(self) -> Mapping[str, str]: ...
    @property
    def currency(self) -> str: ...
    def amount(self, text: str) -> Decimal: ...
    def order(self, fields: Mapping[str, Any], **more: str | None) -> Any: ...
    def get_or_404(self, query: Typed[Any], prefix: str, id: str) -> Any: ...
    def create_once(
        self,
        prefix: str,
        by_id: Typed[Any],
    ) -> AbstractContextManager[tuple[str, bool]]: ...
    def form_secret(self) -> str: ...
    def page(self, template: str, status: int = 200, **values: Any) -> Response: ...
    def redirect(self, path: str = "", **query: object) -> Response: ...
    def choice(self, name: str, words: Collection[str]) -> str: ...
