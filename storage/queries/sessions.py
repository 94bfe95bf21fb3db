"""Logins to the merchant's pages: one-time login links, sessions, and file links.

A session expires if it is not used for a time. A file link opens an export without a
session.
"""

from datetime import datetime
from typing import NamedTuple

from peewee import JOIN, fn

from btcpay.values.ids import ID_CHARACTERS, random_base62, sha256_of
from btcpay.values.times import to_ms
from storage.database import Database
from storage.models import (
    Brand,
    FileLink,
    Merchant,
    MerchantLogin,
    MerchantSession,
)
from storage.statement import all_columns, eq, param, required_columns, rows_as

LINK_LIFE_MS = 600_000
ADD_LOGIN = MerchantLogin.insert(required_columns(MerchantLogin))

_IS_LOGIN = eq(MerchantLogin.secret_sha256) & (MerchantLogin.expires_ms > param("now"))


class Login(NamedTuple):
    """The merchant that a login link is for.

    `till_only` is 1 if the link opens only the till.
    """

    merchant: str
    till_only: int


# The valid login link with a secret. Viewing its page does not use it up.
LOGIN = rows_as(
    Login,
    MerchantLogin.select(Merchant.name.alias("merchant"), MerchantLogin.till_only)
    .join(Merchant, on=(MerchantLogin.merchant_id == Merchant.id))
    .where(_IS_LOGIN),
)
# Deletes the login link and returns it: of two simultaneous requests only one gets a row.
USE_LOGIN = rows_as(
    MerchantLogin,
    MerchantLogin.delete()
    .where(_IS_LOGIN)
    .returning(MerchantLogin.merchant_id, MerchantLogin.till_only),
)
OLD_LOGINS = MerchantLogin.delete().where(MerchantLogin.expires_ms <= param("now"))
LOGINS_OF_MERCHANT = MerchantLogin.delete().where(eq(MerchantLogin.merchant_id))

ADD = MerchantSession.insert(all_columns(MerchantSession))


class Session(MerchantSession, Merchant):  # type: ignore[misc]  # `id` is the session's
    """A logged-in browser's session and its merchant.

    `merchant` is the merchant's name in commands, `seller` the name that customers see.
    """

    # the session's id, which takes the API key's place in rate limits and logs
    key_id: str
    merchant: str
    seller: str


BY_SECRET = rows_as(
    Session,
    MerchantSession.select(
        *(
            MerchantSession.id,
            MerchantSession.id.alias("key_id"),
            MerchantSession.merchant_id,
        ),
        *(
            MerchantSession.last_used_ms,
            MerchantSession.till_only,
            MerchantSession.password_scrypt,
            Merchant.name.alias("merchant"),
        ),
        fn.COALESCE(Brand.name, Merchant.name).alias("seller"),
        *(
            Merchant.currency,
            Merchant.descriptor,
            Merchant.timezone,
            Merchant.gratuity_percents,
            Merchant.gratuity_by_cashier,
        ),
    )
    .join(Merchant, on=(MerchantSession.merchant_id == Merchant.id))
    .join(Brand, JOIN.LEFT_OUTER, on=(Brand.merchant_id == Merchant.id))
    .where(
        eq(MerchantSession.secret_sha256),
        MerchantSession.last_used_ms > param("used_after"),
        MerchantSession.password_scrypt.is_null() | eq(MerchantSession.password_scrypt),
    ),
)
OF_MERCHANT = (
    MerchantSession.select(
        *(MerchantSession.id, MerchantSession.browser, MerchantSession.created_ms),
        *(MerchantSession.last_used_ms, MerchantSession.till_only),
    )
    .where(
        eq(MerchantSession.merchant_id),
        MerchantSession.last_used_ms > param("used_after"),
    )
    .order_by(MerchantSession.created_ms.desc(), MerchantSession.id)
)
# Never moves the time back, because a background write can come late.
USED = MerchantSession.update({MerchantSession.last_used_ms: param("at")}).where(
    eq(MerchantSession.id), MerchantSession.last_used_ms < param("at")
)

END = MerchantSession.delete().where(
    eq(MerchantSession.id, MerchantSession.merchant_id)
)
END_OTHERS = MerchantSession.delete().where(
    eq(MerchantSession.merchant_id), MerchantSession.id != param("id")
)
END_BY_SECRET = MerchantSession.delete().where(eq(MerchantSession.secret_sha256))
END_OF_OTHER_PASSWORDS = MerchantSession.delete().where(
    MerchantSession.password_scrypt != param("password_scrypt")
)
END_OLD = MerchantSession.delete().where(
    MerchantSession.last_used_ms <= param("used_after")
)


_LIVES = FileLink.expires_ms > param("now")
# Links to files of payments, for a bookkeeper. They open without a session until they expire or are
# revoked.
ADD_FILE = FileLink.insert(required_columns(FileLink))
FILE = FileLink.select().where(eq(FileLink.id))
FILE_BY_SECRET = FileLink.select().where(eq(FileLink.secret_sha256), _LIVES)
FILES = (
    FileLink.select()
    .where(eq(FileLink.merchant_id), _LIVES)
    .order_by(FileLink.expires_ms.desc(), FileLink.id)
)
REVOKE_FILE = FileLink.delete().where(eq(FileLink.id))
DELETE_EXPIRED_FILES = FileLink.delete().where(~_LIVES)

# A restore deletes all sessions and links, because the backup may contain revoked ones.
END_EVERYTHING = (MerchantLogin.delete(), MerchantSession.delete(), FileLink.delete())


def new_login(
    db: Database,
    merchant_id: int,
    now: datetime,
    till_only: bool = False,
) -> str:
    """Stores a new login link, and returns its secret.

    The link opens one session of this merchant, and expires after ten minutes. If
    `till_only` is True, the session can use only the till.
    """
    secret = random_base62(ID_CHARACTERS)
    with db.write():
        db.run(OLD_LOGINS, now=to_ms(now))
        db.run(
            ADD_LOGIN,
            secret_sha256=sha256_of(secret),
            merchant_id=merchant_id,
            expires_ms=to_ms(now) + LINK_LIFE_MS,
            till_only=int(till_only),
        )
    return secret
