"""Signatures of Standard Webhooks 1.0.0: HMAC-SHA256 over id, time and body.

Source: github.com/standard-webhooks/standard-webhooks, spec/standard-webhooks.md.
"""

import base64
import hashlib
import hmac
import secrets
from collections.abc import Iterable
from datetime import datetime

PREFIX = "whsec_"
SECRET_BYTES = 32  # the specification asks for 24 to 64


def new_secret() -> str:
    """`whsec_` and the base64 of 256 random bits."""
    return PREFIX + base64.b64encode(secrets.token_bytes(SECRET_BYTES)).decode()


def sign(secret: str, id: str, timestamp_s: int, body: bytes) -> str:
    """`v1,` and the base64 of the signature."""
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
