"""The price in dollars, as a public ticker would tell it."""

from flask import Blueprint, Response, jsonify

from btcpay.sandbox.esplora.plain import text
from btcpay.sandbox.state import current


def create_ticker() -> Blueprint:
    """`GET /price`: `{"usd": "60000.00"}`, or 503 while switched off."""
    blueprint = Blueprint("ticker", __name__)
    blueprint.add_url_rule("/price", "price", _price)
    return blueprint


def _price() -> Response:
    switches = current().switches
    if not switches.price_up:
        return text("Service Unavailable", 503)
    return jsonify({"usd": f"{switches.price_usd:.2f}"})
