"""The first run: while there is no merchant, a link lets a browser make one.

The token in it is random, 142 bits, unless BTCPAY_SETUP_TOKEN names one; its SHA-256 is stored.
"""

from datetime import datetime

from btcpay.bitcoin.descriptor import Descriptor
from btcpay.merchants.keys import sha256_of
from btcpay.merchants.merchants import add_merchant, set_currency, set_timezone
from btcpay.merchants.sessions import open_session
from btcpay.values.ids import ID_CHARACTERS, random_base62
from storage.database import Database
from storage.queries import merchants, meta


def start_url(db: Database, base_url: str, token: str = "") -> str | None:
    """The link, which takes the place of the one before; None where there is a merchant."""
    if db.rows(merchants.ALL):
        return None
    token = token or random_base62(ID_CHARACTERS)
    meta.put(db, meta.Key.START_SHA256, sha256_of(token))
    return f"{base_url}/merchant/start/{token}"


def is_open(db: Database, token: str) -> bool:
    """True while there is no merchant and this is the link's token. Uses up nothing."""
    is_ours = meta.get(db, meta.Key.START_SHA256) == sha256_of(token)
    return is_ours and not db.rows(merchants.ALL)


def make_first(
    db: Database,
    token: str,
    name: str,
    account: Descriptor,
    currency: str,
    timezone: str,
    browser: str,
    now: datetime,
) -> str | None:
    """Makes the merchant and opens a session, whose secret it returns; None for a spent token.

    Raises CommandError for values that cannot make a merchant; the token then still works.
    """
    with db.write():
        meta.lock(db)  # of two browsers one comes first
        if not is_open(db, token):
            return None
        merchant = add_merchant(db, name, account, now)
        set_currency(db, merchant.id, currency)
        set_timezone(db, merchant.id, timezone)
        return open_session(db, merchant.id, browser, now)
