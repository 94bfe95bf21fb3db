"""The first run: a setup link lets a browser create the first merchant, once.

BLOCKTILL_SETUP_TOKEN can set the token of that link.
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


class Beginning(NamedTuple):
    """Where a shop begins in its account: the parameters of `add_merchant`."""

    next_index: int
    used_before: int


AT_THE_FIRST = Beginning(0, 0)


def start_url(db: Database, base_url: str, token: str = "") -> str | None:
    """Stores a new setup link, and returns its URL; None if a merchant exists.

    The link creates the first merchant. It replaces the former setup link. If `token`
    is empty, a random one is made.
    """
    if db.rows(merchants.ALL):
        return None
    if not token:
        token = random_base62(ID_CHARACTERS)
    meta.put(db, meta.Key.START_SHA256, sha256_of(token))
    return f"{base_url}/merchant/start/{token}"


def is_open(db: Database, token: str) -> bool:
    """True if this is the setup link's token and no merchant exists.

    The token stays valid.
    """
    return is_setup_token(db, token) and not db.rows(merchants.ALL)


def is_setup_token(db: Database, token: str) -> bool:
    """True if this is the setup link's token, also if it was used."""
    return meta.get(db, meta.Key.START_SHA256) == sha256_of(token)


def make_first(
    db: Database,
    token: str,
    account: Descriptor,
    fields: Mapping[str, str],
    browser: str,
    now: datetime,
    password_scrypt: str | None = None,
    beginning: Beginning = AT_THE_FIRST,
    press: str = "",
) -> str | None:
    """Creates the first merchant, opens a session, and returns the session's secret.

    Returns None if the token is invalid or used. `fields` has the validated `name`,
    `currency`, `timezone` and `language`. `password_scrypt`: the hash of the owner's
    password, which leads to the setup link if it is set. `beginning`: where the shop
    begins in its account. `press`: the random id of the form that is sent, with which
    `session_of_press` finds the session. Raises CommandError if the merchant cannot be
    created; then the token stays valid.
    """
    with db.write():
        meta.lock(db)  # concurrent requests are serialized
        if not is_open(db, token):
            return None
        merchant = add_merchant(db, fields["name"].strip(), account, now, *beginning)
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
    """Returns the secret of the session that this form has opened; None if there is none.

    A button that is pressed twice sends its form twice, and the browser shows the
    second answer. Only the browser that was shown the form knows its `press`.
    """
    if not is_setup_token(db, token):
        return None
    secret = _session_secret(token, press)
    if not secret:
        return None
    if session_of(db, sessions.BY_SECRET, secret, now, password_scrypt) is None:
        return None
    return secret


def _session_secret(token: str, press: str) -> str:
    """Returns the secret of the session that a form opens; "" if the form has no id."""
    if not _IS_PRESS(press):
        return ""
    return derived_base62(token, f"first run {press}")
