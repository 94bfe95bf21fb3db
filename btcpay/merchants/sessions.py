"""The login to the merchant's pages: a link that works once, and the session that it opens.

Secrets are random: 142 bits in a link, which is short enough to be read out, 256 in a session's
cookie. Only their SHA-256 is stored. There are no passwords. While there is no merchant, another
link lets a browser make the first one; BLOCKTILL_SETUP_TOKEN may set the token in it.
"""

import re
from collections.abc import Mapping
from datetime import datetime, timedelta
from typing import TypeVar

from btcpay.bitcoin.descriptor import Descriptor
from btcpay.merchants.merchants import (
    add_merchant,
    set_currency,
    set_mail,
    set_timezone,
)
from btcpay.values.ids import (
    ID_CHARACTERS,
    SECRET_CHARACTERS,
    is_id,
    new_id,
    random_base62,
    sha256_of,
)
from btcpay.values.times import to_ms
from storage.database import Database
from storage.models import MerchantSession
from storage.queries import merchants, meta, sessions
from storage.queries.sessions import new_login
from storage.statement import Typed

S = TypeVar("S", bound=sessions.Session)

LINK_LIFE = timedelta(milliseconds=sessions.LINK_LIFE_MS)
# After a session's last use.
LIFE = timedelta(days=30)
# Characters of a User-Agent that are stored.
BROWSER_CHARACTERS = 200
# The first rule that fits names the browser: nearly every one also claims to be Chrome, Safari or
# both.
_BROWSERS = {
    "Edge": r"\bEdg(e|A|iOS)?/",
    "Samsung Internet": r"\bSamsungBrowser/",
    "Firefox": r"\b(Firefox|FxiOS)/",
    "Chrome": r"\b(Chrome|CriOS|Chromium|HeadlessChrome)/",
    "Safari": r"\bVersion/[^ ]+ (Mobile/[^ ]+ )?Safari/",
}
# An Android is a Linux, and an iPhone is "like Mac OS X".
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
    """A new link into the pages that are served at `base_url`, or into their till alone."""
    return f"{base_url}/merchant/login/{new_login(db, merchant_id, now, till_only)}"


def log_in(
    db: Database, secret: str, former: str, browser: str, now: datetime
) -> str | None:
    """Uses up a link and opens a session; returns its secret, or None if the link is no good.

    `former`: the secret of the browser's present session ("" for none), which ends.
    """
    with db.write():
        login = db.row(
            sessions.USE_LOGIN, secret_sha256=sha256_of(secret), now=to_ms(now)
        )
        if login is None:
            return None
        db.run(sessions.END_BY_SECRET, secret_sha256=sha256_of(former))
        db.run(sessions.END_OLD, used_after=to_ms(now - LIFE))
        return open_session(db, login.merchant_id, browser, now, login.till_only)


def open_session(
    db: Database, merchant_id: int, browser: str, now: datetime, till_only: int
) -> str:
    """Opens a session, and returns its secret."""
    secret = random_base62(SECRET_CHARACTERS)
    db.run(
        sessions.ADD,
        id=new_id("ses"),
        merchant_id=merchant_id,
        secret_sha256=sha256_of(secret),
        browser=browser[:BROWSER_CHARACTERS],
        created_ms=to_ms(now),
        last_used_ms=to_ms(now),
        till_only=till_only,
    )
    return secret


def session_of(db: Database, query: Typed[S], secret: str, now: datetime) -> S | None:
    """The session with this secret; None if it is unknown, ended or too old.

    `query`: `sessions.BY_SECRET`, or one that is made from it.
    """
    return db.row(
        query,
        secret_sha256=sha256_of(secret),
        used_after=to_ms(now - LIFE),
    )


def sessions_of(db: Database, merchant_id: int, now: datetime) -> list[MerchantSession]:
    """The merchant's sessions, the newest first, without their secrets."""
    return db.rows(
        sessions.OF_MERCHANT, merchant_id=merchant_id, used_after=to_ms(now - LIFE)
    )


def end(db: Database, merchant_id: int, session_id: str) -> bool:
    """Ends one session and all unused links, since it may have made them; False if unknown."""
    if not is_id("ses", session_id):
        return False
    with db.write():
        ended = db.run(sessions.END, id=session_id, merchant_id=merchant_id)
        if ended != 1:
            return False
        db.run(sessions.LOGINS_OF_MERCHANT, merchant_id=merchant_id)
    return True


def end_all(db: Database, merchant_id: int, but: str = "") -> int:
    """Ends a merchant's unused links, and all sessions `but` this one; returns their number."""
    with db.write():
        db.run(sessions.LOGINS_OF_MERCHANT, merchant_id=merchant_id)
        return db.run(sessions.END_OTHERS, merchant_id=merchant_id, id=but)


def browser_and_system(user_agent: str) -> tuple[str, str]:
    """Browser and system as people name them; the whole text and "" if no rule fits."""
    text = " ".join(user_agent.split())
    browser = _first_match(_BROWSERS, text)
    system = _first_match(_SYSTEMS, text)
    if browser:
        return (browser, system)
    return (text, "")


def _first_match(rules: dict[str, str], text: str) -> str:
    for name, rule in rules.items():
        if re.search(rule, text):
            return name
    return ""


def start_url(db: Database, base_url: str, token: str = "") -> str | None:
    """A new link to make the first merchant; None if there is one. It replaces the link before."""
    if db.rows(merchants.ALL):
        return None
    if not token:
        token = random_base62(ID_CHARACTERS)
    meta.put(db, meta.Key.START_SHA256, sha256_of(token))
    return f"{base_url}/merchant/start/{token}"


def is_open(db: Database, token: str) -> bool:
    """True while there is no merchant and this is the link's token. Uses up nothing."""
    is_ours = meta.get(db, meta.Key.START_SHA256) == sha256_of(token)
    return is_ours and not db.rows(merchants.ALL)


def make_first(
    db: Database,
    token: str,
    account: Descriptor,
    chosen: Mapping[str, str],
    browser: str,
    now: datetime,
) -> str | None:
    """Makes the merchant and opens a session; returns its secret, or None if the token is spent.

    `chosen`: the `name`, `currency`, `timezone` and `language`, checked. Raises CommandError if
    they cannot make a merchant; the token is then as good as before.
    """
    with db.write():
        meta.lock(db)  # two browsers come one after the other
        if not is_open(db, token):
            return None
        merchant = add_merchant(db, chosen["name"].strip(), account, now)
        set_currency(db, merchant.id, chosen["currency"])
        set_timezone(db, merchant.id, chosen["timezone"])
        set_mail(db, merchant.id, {"language": chosen["language"]}, now)
        return open_session(db, merchant.id, browser, now, till_only=0)
