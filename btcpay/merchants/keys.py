"""API keys: their random secrets are stored as SHA-256, and found by it."""

from datetime import datetime, timedelta
from typing import NamedTuple

from btcpay.values.errors import CommandError
from btcpay.values.ids import SECRET_CHARACTERS, new_id, random_base62, sha256_of
from btcpay.values.networks import Network
from btcpay.values.texts import line_of
from btcpay.values.times import to_ms
from storage.database import Database
from storage.queries import keys

MAX_NAME_CHARACTERS = 60


class IssuedKey(NamedTuple):
    """A new key; its secret is stored nowhere."""

    id: str
    scope: str
    name: str
    secret: str


def checked_name(text: str) -> str:
    """A text to tell keys apart, in one line, or nothing. Raises CommandError."""
    return line_of("key's name", text, MAX_NAME_CHARACTERS)


def issue(
    db: Database,
    network: Network,
    merchant_id: int,
    scope: str,
    name: str,
    now: datetime,
    store_id: str | None = None,
    permissions: str | None = None,
    id: str | None = None,
    characters: str | None = None,
) -> IssuedKey:
    """Stores a new key of scope `read` or `write`; a plug-in's has a store and permissions too.

    If `id` and `characters`, those of the secret, are given, a second call makes no second key.
    """
    prefix = "sk_test_"
    if network.name == "mainnet":
        prefix = "sk_live_"
    secret = prefix + (characters or random_base62(SECRET_CHARACTERS))
    key = IssuedKey(id or new_id("key"), scope, name, secret)
    db.run(
        keys.ADD,
        id=key.id,
        merchant_id=merchant_id,
        name=name,
        scope=scope,
        secret_sha256=sha256_of(secret),
        last_four=secret[-4:],
        created_ms=to_ms(now),
        store_id=store_id,
        permissions=permissions,
    )
    return key


def revoke(db: Database, key_id: str, now: datetime) -> None:
    """Ends a key for ever. Raises CommandError if there is none, or it was revoked before."""
    db.named(keys.BY_ID, f"key {key_id!r}", id=key_id)
    if db.run(keys.REVOKE, id=key_id, at=to_ms(now)) != 1:
        raise CommandError(f"the key {key_id} is already revoked")


def rotate(
    db: Database, network: Network, key_id: str, grace: timedelta, now: datetime
) -> IssuedKey:
    """Issues a new key in place of an old one; the old one works until its grace is over.

    Raises CommandError if there is none, or it was revoked or rotated before.
    """
    old = db.named(keys.BY_ID, f"key {key_id!r}", id=key_id)
    with db.write():
        if db.run(keys.EXPIRE, id=key_id, at=to_ms(now + grace)) != 1:
            raise CommandError(f"the key {key_id} is already revoked or rotated")
        return issue(
            db,
            network,
            old.merchant_id,
            old.scope,
            old.name,
            now,
            store_id=old.store_id,
            permissions=old.permissions,
        )


def caller_of(db: Database, secret: str, now: datetime) -> keys.Caller | None:
    """The key of this secret; None for an unknown, ended or revoked one."""
    return db.row(keys.BY_SECRET, secret_sha256=sha256_of(secret), now=to_ms(now))
