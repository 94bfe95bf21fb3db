"""The sandbox's web server on 127.0.0.1.

It serves the block explorer, a price ticker, a webhook receiver, and a page with
buttons.
"""

import base64
import hashlib
import hmac
import json
import logging
import signal
from decimal import Decimal

from flask import Flask, Response, jsonify, request
from flask.typing import ResponseReturnValue
from werkzeug.exceptions import NotFound
from werkzeug.serving import make_server

from btcpay.sandbox.esplora import create_esplora, text_response
from btcpay.sandbox.state import current_sandbox
from btcpay.sandbox.workbench.buttons import create_workbench

HOST = "127.0.0.1"
MAX_BODY_BYTES = 1_000_000  # of a form, or of an event
SECRET_FILE = "webhook_secret"
LOG_FILE = "webhooks.log"
# Units of each currency for one dollar, near the rates of 2026. They never change.
RATES = {
    "usd": "1",
    "eur": "0.92",
    "gbp": "0.79",
    "chf": "0.88",
    "cad": "1.37",
    "aud": "1.52",
    "brl": "5.4",
    "mxn": "18.3",
    "inr": "84",
    "jpy": "150",
    "krw": "1380",
}


def create_app() -> Flask:
    """Returns the Flask app.

    The caller must set `app.extensions[EXTENSION]` to a Sandbox.
    """
    app = Flask(__name__, static_folder=None)
    app.config["MAX_CONTENT_LENGTH"] = MAX_BODY_BYTES
    app.register_blueprint(create_esplora())
    app.register_blueprint(create_workbench())
    app.add_url_rule("/price", view_func=price)
    app.add_url_rule("/sandbox/webhook", view_func=receive, methods=["POST"])
    app.register_error_handler(NotFound, no_path)
    return app


def no_path(_error: Exception) -> Response:
    return text_response(f'endpoint does not exist "{request.path}"', 404)


def serve(app: Flask, port: int) -> None:
    """Serves until SIGTERM or SIGINT. Raises SystemExit if the port is in use."""
    # The page polls every second, which would fill the log.
    logging.getLogger("werkzeug").setLevel(logging.ERROR)
    server = make_server(HOST, port, app, threaded=True)
    # SIGINT is set as well: a process that a shell has started in the background ignores
    # it otherwise.
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, signal.default_int_handler)
    server.serve_forever(poll_interval=0.1)


def price() -> Response:
    """Returns the price of one bitcoin in each currency, like a public ticker.

    While the ticker is switched off, returns 503.
    """
    switches = current_sandbox().switches
    if switches.price == "down":
        return text_response("Service Unavailable", 503)
    prices = {}
    for name, rate in RATES.items():
        prices[name] = f"{switches.price_usd * Decimal(rate):.2f}"
    return jsonify(prices)


def receive() -> ResponseReturnValue:
    """Stores an event that the shop sends to `/sandbox/webhook`, and returns 204.

    Returns 401 if the event has no valid signature of the shop.
    """
    sandbox = current_sandbox()
    body = request.get_data()
    secret = (sandbox.state_dir / SECRET_FILE).read_text(encoding="ascii")
    if not _is_signed(secret, body):
        return text_response("This shop has not signed it.", 401)
    with (sandbox.state_dir / LOG_FILE).open("ab") as file:
        file.write(body + b"\n")
    sandbox.events.appendleft(json.loads(body))
    return "", 204


def _is_signed(secret: str, body: bytes) -> bool:
    """True if one of the request's signatures is valid (Standard Webhooks).

    A valid signature is the HMAC-SHA256 over id, timestamp and body.
    """
    id = request.headers.get("webhook-id", "")
    timestamp = request.headers.get("webhook-timestamp", "")
    key = base64.b64decode(secret.strip().removeprefix("whsec_"))
    digest = hmac.digest(key, f"{id}.{timestamp}.".encode() + body, hashlib.sha256)
    expected = b"v1," + base64.b64encode(digest)
    signatures = request.headers.get("webhook-signature", "").encode().split()
    return any(hmac.compare_digest(expected, signature) for signature in signatures)
