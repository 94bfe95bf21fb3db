"""What the merchant's pages give the views of parts, which are loaded without those pages too."""

from collections.abc import Callable, Collection, Mapping
from datetime import datetime
from decimal import Decimal
from typing import Any, Protocol
from zoneinfo import ZoneInfo

from flask import Response

from btcpay.web.pages.render import Pages
from btcpay.web.service import Service

# A sentence on Today's or the Month's page, and the page and the query that it leads to.
Line = tuple[str, str, Mapping[str, str]]


class Visit(Protocol):
    """A merchant's visit (btcpay/parts/merchant_pages/visit.py): the members that parts use."""

    service: Service
    pages: Pages
    session: Any
    merchant_id: int
    now: datetime
    zone: ZoneInfo
    form: Mapping[str, str]
    query: Mapping[str, str]
    currency: str
    amount: Callable[[str], Decimal]
    order: Callable[..., Any]
    own: Callable[..., Any]
    once: Callable[..., Any]
    secret_of_press: Callable[[], str]
    page: Callable[..., Response]
    to: Callable[..., Response]
    word: Callable[[str, Collection[str]], str]
