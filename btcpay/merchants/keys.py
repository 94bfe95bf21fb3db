"""API keys. Only the SHA-256 of a key's random secret is stored."""

from datetime import datetime, timedelta
from typing import NamedTuple

from btcpay.values.errors import CommandError
from btcpay.values.ids import SECRET_CHARACTERS, new_id, random_base62, sha256_of
from btcpay.values.networks import Network
from btcpay.values.texts import line_of
from btcpay.values.times import to_ms
from storage.database import Database
from storage.queries import keys, merchants

ID_PREFIX = "key_"
MAX_NAME_CHARACTERS = 60
MOST = 100  # keys of a merchant that work at the same time


class NoRoom(CommandError):
    """The merchant already has the maximum number of API keys."""


class IssuedKey(NamedTuple):
    """A new API key with its secret, which is not stored."""

    id: str
    scope: str
    name: str
    secret: str


def checked_name(text: str) -> str:
    """Returns the name of an API key as one line, which may be empty.

    Raises CommandError if the name is invalid or too long.
    """
    return line_of("key's name", text, MAX_NAME_CHARACTERS)


def secret_prefix(network: Network) -> str:
    """Returns the prefix of all secrets: `sk_live_` on mainnet, else `sk_test_`."""
    if network.name == "mainnet":
        return "sk_live_"
    return "sk_test_"


def require_room(db: Database, merchant_id: int, now: datetime) -> None:
    """Raises NoRoom if the merchant has the maximum number of keys.

    Locks the merchant's row. Call this function in the database transaction that issues
    a key.
    """
    db.get(merchants.LOCKED, id=merchant_id)
    working = db.rows(keys.WORKING, merchant_id=merchant_id, now=to_ms(now))
    if len(working) >= MOST:
        raise NoRoom(f"the merchant has {MOST} API keys already: revoke one first")


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
    """Stores a new API key with the scope "read" or "write", and returns it.

    `store_id` and `permissions` are those of a shop plug-in's key; None for any other
    key. `characters` are the characters of the secret after its prefix; None means
    random ones.

    `id` and `characters` may be derived from a form, so that a form that is sent twice
    makes only one key. If a key with this secret exists, nothing is stored, and the
    result is that key. If a key with this `id` and another secret exists, nothing is
    stored either. The caller must not show the result then: it belongs to no key.
    """
    secret = secret_prefix(network) + (characters or random_base62(SECRET_CHARACTERS))
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
    """Revokes a key permanently.

    Raises CommandError if the key is unknown or already revoked.
    """
    db.get_or_fail(keys.BY_ID, f"key {key_id!r}", id=key_id)
    if db.run(keys.REVOKE, id=key_id, at=to_ms(now)) != 1:
        raise CommandError(f"the key {key_id} is already revoked")


def rotate(
    db: Database,
    network: Network,
    key_id: str,
    grace: timedelta,
    now: datetime,
) -> IssuedKey:
    """Replaces a key by a new one with the same scope and name, and returns the new one.

    The old key still works during the time `grace`. Raises CommandError if the old key
    is unknown, revoked or already rotated. The maximum number of keys does not apply,
    since a secret that others may have seen has to be replaced.
    """
    old = db.get_or_fail(keys.BY_ID, f"key {key_id!r}", id=key_id)
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
    """Returns the API key with this secret; None if it is unknown, expired or revoked."""
    return db.get_or_none(
        keys.BY_SECRET, secret_sha256=sha256_of(secret), now=to_ms(now)
    )
