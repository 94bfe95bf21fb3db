"""Transport: a POST that is signed as Standard Webhooks 1.0.0 asks.

Source: github.com/standard-webhooks/standard-webhooks, spec/standard-webhooks.md.
"""

import base64
import hashlib
import hmac
import secrets
from collections.abc import Iterable, Mapping
from datetime import datetime

from btcpay.http.http_client import Session
from btcpay.notify.read import Event
from btcpay.notify.retries import Answer
from btcpay.notify.transport import Transport
from btcpay.values.errors import FetchError, TimedOut
from btcpay.values.times import to_ms
from storage.models import Receiver

PREFIX = "whsec_"
SECRET_BYTES = 32  # the specification asks for 24 to 64
KEPT_BYTES = 200  # of an answer: enough to see what is wrong, too little to be worth stealing


def new_secret() -> str:
    """`whsec_` and the base64 of 256 random bits."""
    return PREFIX + base64.b64encode(secrets.token_bytes(SECRET_BYTES)).decode()


def sign(secret: str, id: str, timestamp_s: int, body: bytes) -> str:
    """`v1,` and the base64 of HMAC-SHA256 over id, time and body."""
    key = base64.b64decode(secret.removeprefix(PREFIX))
    content = f"{id}.{timestamp_s}.".encode() + body
    return "v1," + base64.b64encode(hmac.digest(key, content, hashlib.sha256)).decode()


def headers(keys: Iterable[str], id: str, at: datetime, body: bytes) -> dict[str, str]:
    """The headers of an attempt at this time, signed with each of the secrets."""
    timestamp_s = int(at.timestamp())
    return {
        "Content-Type": "application/json",
        "webhook-id": id,
        "webhook-timestamp": str(timestamp_s),
        "webhook-signature": " ".join(sign(key, id, timestamp_s, body) for key in keys),
    }


class StandardWebhook(Transport):
    def send(
        self, session: Session, receiver: Receiver, event: Event, at: datetime, timeout_s: float
    ) -> Answer:
        """Signed with each secret that is valid; 2xx takes the event."""
        keys = [receiver.secret]
        if receiver.old_until_at is not None and to_ms(at) < receiver.old_until_at:
            keys.append(receiver.old_secret)
        body = event.body
        signed = headers(filter(None, keys), event.id, at, body)
        return post(session, receiver.url or "", timeout_s, body, signed)


def post(
    session: Session, url: str, timeout_s: float, body: bytes, headers: Mapping[str, str]
) -> Answer:
    """How a POST went: 2xx takes what it brings."""
    try:
        status, start = session.post(url, timeout_s, body, headers, KEPT_BYTES)
    except FetchError as error:
        return Answer(False, None, str(error), may_go_on=isinstance(error, TimedOut))
    text = start.decode("utf-8", "replace").replace("\0", "")
    return Answer(200 <= status < 300, status, text)
