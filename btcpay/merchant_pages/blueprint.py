"""The merchant's pages as one blueprint."""

from flask import Blueprint

from btcpay.merchant_pages import (
    attention,
    downloads,
    home,
    invoice,
    invoices,
    links,
    payments,
    till,
)
from btcpay.merchant_pages.area import Area
from btcpay.merchant_pages.devices import Devices
from btcpay.merchant_pages.way_in import WayIn
from btcpay.web.service import Service


def merchant_pages(service: Service) -> Blueprint:
    """The blueprint with /merchant and all below it."""
    area = Area(service)
    WayIn(area)
    Devices(area)
    for pages in (home, attention, till, invoices, invoice, payments, links, downloads):
        pages.add(area)
    return area.blueprint
