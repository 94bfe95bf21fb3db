"""The shop's webhooks: events with its signature are shown on the page, and kept in a file."""

import base64
import hashlib
import hmac
import json
from typing import Any

from flask import request
from flask.typing import ResponseReturnValue

from btcpay.sandbox.esplora.app import text
from btcpay.sandbox.state import current

SECRET_FILE, LOG_FILE = "webhook_secret", "webhooks.log"


def receive() -> ResponseReturnValue:
    """`POST /sandbox/webhook`: 204 for an event, 401 for one that this shop has not signed."""
    sandbox, body = current(), request.get_data()
    if not _is_signed((sandbox.state_dir / SECRET_FILE).read_text(encoding="ascii"), body):
        return text("This shop has not signed it.", 401)
    with (sandbox.state_dir / LOG_FILE).open("ab") as file:
        file.write(body + b"\n")
    sandbox.events.appendleft(_row(json.loads(body)))
    return "", 204


def _is_signed(secret: str, body: bytes) -> bool:
    """By Standard Webhooks: HMAC-SHA256 over id, time and body."""
    id, at = (request.headers.get(f"webhook-{name}", "") for name in ("id", "timestamp"))
    key = base64.b64decode(secret.strip().removeprefix("whsec_"))
    ours = hmac.digest(key, f"{id}.{at}.".encode() + body, hashlib.sha256)
    expected = f"v1,{base64.b64encode(ours).decode()}"
    given = request.headers.get("webhook-signature", "").encode()
    return any(hmac.compare_digest(expected.encode(), one) for one in given.split())


def _row(event: dict[str, Any]) -> dict[str, Any]:
    data = event["data"]
    invoice = data.get("invoice") or {}
    about = data.get("payment") or data.get("transaction") or invoice
    return {
        "type": event["type"],
        "time": event["timestamp"][11:19],
        "invoice": invoice.get("id"),
        "pay_url": invoice.get("pay_url"),
        "amount_sats": about.get("amount_sats"),
    }
