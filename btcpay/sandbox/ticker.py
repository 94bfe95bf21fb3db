"""The price in dollars and other currencies, as a public ticker would tell it."""

from decimal import Decimal

from flask import Blueprint, Response, jsonify

from btcpay.sandbox.esplora.plain import text
from btcpay.sandbox.state import current

# What a dollar costs in play money: near what it was when this was written, and never another.
RATES = {"eur": "0.92", "gbp": "0.79", "chf": "0.88", "cad": "1.37", "aud": "1.52", "brl": "5.4"}
RATES |= {"mxn": "18.3", "inr": "84", "jpy": "150", "krw": "1380"}


def create_ticker() -> Blueprint:
    """`GET /price`: `{"usd": "60000.00", "eur": "55200.00", ...}`, or 503 while switched off."""
    blueprint = Blueprint("ticker", __name__)
    blueprint.add_url_rule("/price", "price", _price)
    return blueprint


def _price() -> Response:
    switches = current().switches
    if not switches.price_up:
        return text("Service Unavailable", 503)
    rates = {"usd": Decimal(1)} | {name: Decimal(rate) for name, rate in RATES.items()}
    return jsonify({name: f"{switches.price_usd * rate:.2f}" for name, rate in rates.items()})
