"""Today: how the shop stands."""

from flask import Response

from btcpay.merchant_pages.area import Area
from btcpay.merchant_pages.visit import Visit


def add(area: Area) -> None:
    """Serves /merchant."""
    area.get("", show)


def show(visit: Visit) -> Response:
    """The first page after the way in."""
    return visit.page("home.html")
