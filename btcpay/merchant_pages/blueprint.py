"""The merchant's pages as one blueprint."""

from flask import Blueprint

from btcpay.merchant_pages import home, links, till
from btcpay.merchant_pages.area import Area
from btcpay.merchant_pages.devices import Devices
from btcpay.merchant_pages.way_in import WayIn
from btcpay.server.service import Service


def merchant_pages(service: Service) -> Blueprint:
    """The blueprint with /merchant and all below it."""
    area = Area(service)
    WayIn(area)
    Devices(area)
    home.add(area)
    till.add(area)
    links.add(area)
    return area.blueprint
