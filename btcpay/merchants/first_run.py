"""The first run: a browser with the setup link creates the first merchant.

The link works until a merchant exists. BLOCKTILL_SETUP_TOKEN can set the token in the
link.
"""

import re
from collections.abc import Mapping
from datetime import datetime
from typing import NamedTuple

from btcpay.bitcoin.descriptor import Descriptor
from btcpay.merchants.merchants import (
    add_merchant,
    set_currency,
    set_mail,
    set_timezone,
)
from btcpay.merchants.sessions import open_session, session_of
from btcpay.values.ids import (
    ID_CHARACTERS,
    derived_base62,
    random_base62,
    sha256_of,
)
from storage.database import Database
from storage.queries import merchants, meta, sessions

_IS_PRESS = re.compile(f"[0-9A-Za-z]{{{ID_CHARACTERS}}}").fullmatch


class AccountPosition(NamedTuple):
    """The position in an account at which the shop's addresses begin.

    `next_index` is the index of the address of the first invoice. `used_before` is the
    number of the account's addresses up to the last one that was used before the shop
    began; 0 if none was.
    """

    next_index: int
    used_before: int


FIRST_ADDRESS = AccountPosition(next_index=0, used_before=0)


def start_url(db: Database, base_url: str, token: str = "") -> str | None:
    """Stores the token of a new setup link, and returns the link's URL.

    With the link a browser can create the first merchant. A former link stops working.
    Returns None if a merchant exists. If `token` is "", a random token is made.
    """
    if db.rows(merchants.ALL):
        return None
    if not token:
        token = random_base62(ID_CHARACTERS)
    meta.put(db, meta.Key.START_SHA256, sha256_of(token))
    return f"{base_url}/merchant/start/{token}"


def is_open(db: Database, token: str) -> bool:
    """True if `token` is that of the setup link and no merchant exists yet.

    The call does not use up the token.
    """
    return is_setup_token(db, token) and not db.rows(merchants.ALL)


def is_setup_token(db: Database, token: str) -> bool:
    """True if `token` is that of the setup link, even if the link has already been used."""
    return meta.get(db, meta.Key.START_SHA256) == sha256_of(token)


def make_first(
    db: Database,
    token: str,
    account: Descriptor,
    fields: Mapping[str, str],
    browser: str,
    now: datetime,
    password_scrypt: str | None = None,
    beginning: AccountPosition = FIRST_ADDRESS,
    press: str = "",
) -> str | None:
    """Creates the first merchant, opens a session, and returns the session's secret.

    Returns None if the token is not that of the setup link, or if a merchant exists
    already. Raises CommandError if the merchant cannot be created; the token then stays
    valid.

    - `account` is the account whose addresses the shop's invoices get.
    - `fields` has the validated `name`, `currency`, `timezone` and `language`.
    - `browser` is the User-Agent of the visitor's browser.
    - `password_scrypt` is the hash of the owner's password, if the visitor has entered
      the password before; else None.
    - `beginning` is the position in the account at which the shop's addresses begin.
    - `press` is the random id of the submitted form. With it, `session_of_press` finds
      the session again.
    """
    with db.write():
        meta.lock(db)  # concurrent requests are serialized
        if not is_open(db, token):
            return None
        merchant = add_merchant(
            db,
            fields["name"].strip(),
            account,
            now,
            next_index=beginning.next_index,
            used_before=beginning.used_before,
        )
        set_currency(db, merchant.id, fields["currency"])
        set_timezone(db, merchant.id, fields["timezone"])
        set_mail(db, merchant.id, {"language": fields["language"]}, now)
        return open_session(
            db,
            merchant.id,
            browser,
            now,
            till_only=0,
            password_scrypt=password_scrypt,
            secret=_session_secret(token, press),
        )


def session_of_press(
    db: Database, token: str, press: str, now: datetime, password_scrypt: str = ""
) -> str | None:
    """Returns the secret of the session that a form has opened; None if there is none.

    If a visitor presses the form's button twice, the browser sends the form twice, and
    shows the second response. So that response must set the session cookie too. `press`
    is the form's random id, which only the browser that loaded the form knows.
    `password_scrypt` is the hash of the owner's present password; "" if there is none.
    """
    if not is_setup_token(db, token):
        return None
    secret = _session_secret(token, press)
    if not secret:
        return None
    session = session_of(
        db, sessions.BY_SECRET, secret, now, password_scrypt=password_scrypt
    )
    if session is None:
        return None
    return secret


def _session_secret(token: str, press: str) -> str:
    """Returns the secret of the session that a form opens; "" if `press` is not a form's id."""
    if not _IS_PRESS(press):
        return ""
    return derived_base62(token, f"first run {press}")
