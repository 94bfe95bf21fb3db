"""API keys: made from the secure source, stored as SHA-256, found by it."""

import hashlib
from dataclasses import dataclass
from datetime import datetime

from btcpay.ids import SECRET_CHARACTERS, new_id, random_base62
from btcpay.networks import Network
from btcpay.times import to_ms
from storage.database import Database
from storage.queries import keys


@dataclass(frozen=True)
class Caller:
    """Whose key a request carries."""

    key_id: str
    merchant_id: int
    may_write: bool


def sha256_of(secret: str) -> str:
    """What is stored of a secret. No salt: 256 random bits cannot be guessed from a table."""
    return hashlib.sha256(secret.encode("utf-8", "surrogateescape")).hexdigest()


def issue(
    db: Database, network: Network, merchant_id: int, scope: str, name: str, now: datetime
) -> tuple[str, str]:
    """A new key; returns (id, secret). The secret is in no other place afterwards."""
    prefix = "sk_live_" if network.name == "mainnet" else "sk_test_"
    secret = prefix + random_base62(SECRET_CHARACTERS)
    key_id = new_id("key")
    db.run(
        keys.ADD,
        id=key_id,
        merchant_id=merchant_id,
        name=name,
        scope=scope,
        secret_sha256=sha256_of(secret),
        last_four=secret[-4:],
        created_at=to_ms(now),
    )
    return key_id, secret


def caller_of(db: Database, secret: str, now: datetime) -> Caller | None:
    """Who presents this secret; None for an unknown or revoked one."""
    row = db.row(keys.BY_SECRET, secret_sha256=sha256_of(secret))
    if row is None or row["revoked_at"] is not None:
        return None
    if row["expires_at"] is not None and row["expires_at"] <= to_ms(now):
        return None
    return Caller(row["id"], row["merchant_id"], row["scope"] == "write")
