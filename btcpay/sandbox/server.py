"""The whole sandbox: explorer, ticker, webhook, page and buttons over one chain, on 127.0.0.1."""

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

from btcpay.sandbox.esplora import create_esplora, text
from btcpay.sandbox.state import current
from btcpay.sandbox.workbench.buttons import create_workbench

HOST = "127.0.0.1"
MAX_BODY_BYTES = 1_000_000  # a form, or an event
SECRET_FILE = "webhook_secret"
LOG_FILE = "webhooks.log"
# Units of each currency for a dollar, near the rates of 2026; they never change.
RATES = {
    "usd": "1",
    "eur": "0.92",
    "gbp": "0.79",
    "chf": "0.88",
    "cad": "1.37",
    "aud": "1.52",
}
RATES |= {"brl": "5.4", "mxn": "18.3", "inr": "84", "jpy": "150", "krw": "1380"}


def create_app() -> Flask:
    """The routes; `app.extensions[EXTENSION]` is the sandbox that they are about."""
    app = Flask(__name__, static_folder=None)
    app.config["MAX_CONTENT_LENGTH"] = MAX_BODY_BYTES
    app.register_blueprint(create_esplora())
    app.register_blueprint(create_workbench())
    app.add_url_rule("/price", view_func=price)
    app.add_url_rule("/sandbox/webhook", view_func=receive, methods=["POST"])
    no_path = 'endpoint does not exist "{}"'
    app.register_error_handler(
        NotFound, lambda _: text(no_path.format(request.path), 404)
    )
    return app


def serve(app: Flask, port: int) -> None:
    """Serves until SIGTERM or SIGINT. Raises SystemExit when the port is taken."""
    logging.getLogger("werkzeug").setLevel(
        logging.ERROR
    )  # a poll every second would fill the log
    server = make_server(HOST, port, app, threaded=True)
    # Also SIGINT: what a shell starts in the background ignores it otherwise.
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, signal.default_int_handler)
    server.serve_forever(poll_interval=0.1)


def price() -> Response:
    """A bitcoin in dollars and other currencies, as a public ticker has it; 503 while down."""
    switches = current().switches
    if switches.price == "down":
        return text("Service Unavailable", 503)
    return jsonify(
        {name: f"{switches.price_usd * Decimal(r):.2f}" for name, r in RATES.items()}
    )


def receive() -> ResponseReturnValue:
    """`POST /sandbox/webhook`: 204 for an event, 401 for one that this shop did not sign."""
    sandbox = current()
    body = request.get_data()
    if not _is_signed(
        (sandbox.state_dir / SECRET_FILE).read_text(encoding="ascii"), body
    ):
        return text("This shop has not signed it.", 401)
    with (sandbox.state_dir / LOG_FILE).open("ab") as file:
        file.write(body + b"\n")
    sandbox.events.appendleft(json.loads(body))
    return "", 204


def _is_signed(secret: str, body: bytes) -> bool:
    """By Standard Webhooks: HMAC-SHA256 over id, time and body."""
    id, at = (
        request.headers.get(f"webhook-{name}", "") for name in ("id", "timestamp")
    )
    key = base64.b64decode(secret.strip().removeprefix("whsec_"))
    ours = hmac.digest(key, f"{id}.{at}.".encode() + body, hashlib.sha256)
    expected = f"v1,{base64.b64encode(ours).decode()}"
    given = request.headers.get("webhook-signature", "").encode()
    return any(hmac.compare_digest(expected.encode(), one) for one in given.split())
