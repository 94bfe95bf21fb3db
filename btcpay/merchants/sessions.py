"""Login to the merchant's pages: single-use links, the owner's password, and sessions.

A merchant has no password; the owner of the service may have one (owner_password.py).
Secrets are random. The secret in a link has 142 bits, so it is short enough to be read
aloud; the secret in a session cookie has 256 bits. Only the SHA-256 of a secret is
stored. The link that creates the first merchant is in first_run.py.
"""

import re
from contextlib import suppress
from datetime import datetime, timedelta
from typing import NamedTuple, TypeVar

from btcpay.values.ids import (
    SECRET_CHARACTERS,
    is_id,
    new_id,
    random_base62,
    sha256_of,
)
from btcpay.values.times import to_ms
from storage.database import Database
from storage.faults import OperationalError
from storage.models import MerchantSession
from storage.queries import sessions
from storage.queries.sessions import new_login
from storage.statement import Typed

S = TypeVar("S", bound=sessions.Session)
LINK_LIFE = timedelta(milliseconds=sessions.LINK_LIFE_MS)
# A session expires this long after its last use.
LIFE = timedelta(days=30)
# The maximum length of a stored User-Agent.
BROWSER_CHARACTERS = 200
# The first pattern that matches decides, since most browsers also claim to be Chrome or
# Safari.
_BROWSERS = {
    "Edge": r"\bEdg(e|A|iOS)?/",
    "Samsung Internet": r"\bSamsungBrowser/",
    "Firefox": r"\b(Firefox|FxiOS)/",
    "Chrome": r"\b(Chrome|CriOS|Chromium|HeadlessChrome)/",
    "Safari": r"\bVersion/[^ ]+ (Mobile/[^ ]+ )?Safari/",
}
# The order matters: Android also says "Linux", and an iPhone "like Mac OS X".
_SYSTEMS = {
    "Android": "Android",
    "iPhone": "iPhone",
    "iPad": "iPad",
    "Windows": "Windows",
    "ChromeOS": r"\bCrOS\b",
    "macOS": "Mac OS X",
    "Linux": "Linux|X11",
}


def login_url(
    db: Database,
    base_url: str,
    merchant_id: int,
    now: datetime,
    till_only: bool = False,
) -> str:
    """Stores a new login link, and returns its URL, which begins with `base_url`.

    If `till_only` is True, the session that the link opens can use only the till.
    """
    return f"{base_url}/merchant/login/{new_login(db, merchant_id, now, till_only)}"


def log_in(
    db: Database,
    secret: str,
    former: str,
    browser: str,
    now: datetime,
) -> str | None:
    """Uses up a login link, opens a session, and returns the session's secret.

    Returns None if the link is unknown, used or expired. `secret` is the link's secret,
    and `browser` the User-Agent. `former` is the secret of the session that the browser
    had before, which this call ends; "" if there is none.
    """
    with db.write():
        login = db.get_or_none(
            sessions.USE_LOGIN, secret_sha256=sha256_of(secret), now=to_ms(now)
        )
        if login is None:
            return None
        db.run(sessions.END_BY_SECRET, secret_sha256=sha256_of(former))
        db.run(sessions.END_OLD, used_after=to_ms(now - LIFE))
        return open_session(
            db, login.merchant_id, browser, now, till_only=login.till_only
        )


def log_in_owner(
    db: Database,
    merchant_id: int,
    password_scrypt: str,
    former: str,
    browser: str,
    now: datetime,
) -> str:
    """Opens a session for a visitor who entered the owner's password. Returns its secret.

    The caller has checked the password. `password_scrypt` is the password's hash, and
    `browser` the User-Agent. `former` is the secret of the session that the browser had
    before, which this call ends; "" if there is none.
    """
    with db.write():
        db.run(sessions.END_BY_SECRET, secret_sha256=sha256_of(former))
        db.run(sessions.END_OLD, used_after=to_ms(now - LIFE))
        return open_session(
            db,
            merchant_id,
            browser,
            now,
            till_only=0,
            password_scrypt=password_scrypt,
        )


def open_session(
    db: Database,
    merchant_id: int,
    browser: str,
    now: datetime,
    till_only: int,
    password_scrypt: str | None = None,
    secret: str = "",
) -> str:
    """Stores a new session, and returns its secret.

    `browser` is the User-Agent. `till_only` is 1 if the session can use only the till,
    else 0. `password_scrypt` is the hash of the owner's password if the password opens
    the session, else None. `secret` must not be the secret of another session; if it is
    "", a random secret is made.
    """
    secret = secret or random_base62(SECRET_CHARACTERS)
    db.run(
        sessions.ADD,
        id=new_id("ses"),
        merchant_id=merchant_id,
        secret_sha256=sha256_of(secret),
        browser=browser[:BROWSER_CHARACTERS],
        created_ms=to_ms(now),
        last_used_ms=to_ms(now),
        till_only=till_only,
        password_scrypt=password_scrypt,
    )
    return secret


def session_of(
    db: Database,
    query: Typed[S],
    secret: str,
    now: datetime,
    password_scrypt: str = "",
) -> S | None:
    """Returns the session with this secret; None if it is unknown, ended or expired.

    `query` is `sessions.BY_SECRET` or a query derived from it. `password_scrypt` is the
    hash of the owner's present password; "" if there is none. A session that was opened
    with a former password counts as ended.
    """
    return db.get_or_none(
        query,
        secret_sha256=sha256_of(secret),
        used_after=to_ms(now - LIFE),
        password_scrypt=password_scrypt,
    )


def end_sessions_of_other_passwords(db: Database, password_scrypt: str) -> None:
    """Deletes all sessions that were opened with a former password of the owner.

    `session_of` does not accept these sessions anyway, since it compares the hash. So a
    read-only database may keep them: this function ignores the error then.
    """
    with suppress(OperationalError):
        db.run(sessions.END_OF_OTHER_PASSWORDS, password_scrypt=password_scrypt)


def sessions_of(db: Database, merchant_id: int, now: datetime) -> list[MerchantSession]:
    """Returns the merchant's sessions, the newest first, without their secrets."""
    return db.rows(
        sessions.OF_MERCHANT, merchant_id=merchant_id, used_after=to_ms(now - LIFE)
    )


def end(db: Database, merchant_id: int, session_id: str) -> bool:
    """Ends a session of the merchant. Returns False if the merchant has no such session.

    Also deletes the merchant's unused login links, since this session may have created
    them.
    """
    if not is_id("ses", session_id):
        return False
    with db.write():
        ended = db.run(sessions.END, id=session_id, merchant_id=merchant_id)
        if ended != 1:
            return False
        db.run(sessions.LOGINS_OF_MERCHANT, merchant_id=merchant_id)
    return True


def end_all(db: Database, merchant_id: int, but: str = "") -> int:
    """Ends all sessions of a merchant, and returns their number.

    `but` is the id of a session that is not ended; "" ends all. Also deletes the
    merchant's unused login links.
    """
    with db.write():
        db.run(sessions.LOGINS_OF_MERCHANT, merchant_id=merchant_id)
        return db.run(sessions.END_OTHERS, merchant_id=merchant_id, id=but)


class Device(NamedTuple):
    """The names of a browser and of its operating system.

    `browser` is the whole User-Agent if the browser is unknown. `system` is "" if it is
    unknown.
    """

    browser: str
    system: str


def device_of(user_agent: str) -> Device:
    """Returns the browser and the operating system that a User-Agent names.

    If the browser is unknown, does not look for the operating system.
    """
    text = " ".join(user_agent.split())
    browser = _first_match(_BROWSERS, text)
    if not browser:
        return Device(text, "")
    return Device(browser, _first_match(_SYSTEMS, text))


def _first_match(patterns: dict[str, str], text: str) -> str:
    """Returns the name of the first pattern that is in the text; "" if none is."""
    for name, pattern in patterns.items():
        if re.search(pattern, text):
            return name
    return ""
