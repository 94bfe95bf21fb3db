"""What of a setting may be shown: whatever shows one takes its text from here."""

import re

from btcpay.settings.settings import OF_FILES

HIDDEN = "***"
_KEY_IN_PATH = re.compile(
    r"(?<=[^:/]/)(?=[^/?#\s]*[0-9])(?=[^/?#\s]*[A-Za-z])[A-Za-z0-9_-]{16,}(?=[/?#\s]|$)"
)


# Where a URL leads, and nothing else: a host (of IPv6 in brackets), a port, a path.
_PLACE = re.compile(r"([A-Za-z0-9._-]*|\[[0-9A-Fa-f:.]+\])(:[0-9]{1,5})?(/[^?#@\s]*)?")
_SCHEMES = frozenset(
    (
        "http",
        "https",
        "memory",
        "postgresql",
        "redis",
        "smtp",
        "smtps",
        "socks5h",
        "sqlite",
    )
)


def shown(variable: str, text: str) -> str:
    """The value of a variable without what is secret in it.

    Of a setting that `Settings` calls secret only the place of a URL is shown: a password may have
    any sign in it, and stand before the place or in the query.
    """
    if variable not in OF_FILES:
        return masked(text)
    if not text:
        return ""
    scheme, separator, rest = text.partition("://")
    if not separator or scheme not in _SCHEMES:
        return HIDDEN
    return f"{scheme}://{_place_shown(rest)}"


def _place_shown(rest: str) -> str:
    """What follows the scheme; nothing of it where a password may go on behind the last @."""
    credentials, at, behind = rest.rpartition("@")
    place, question_mark, _query = behind.partition("?")
    if "?" in credentials or not _PLACE.fullmatch(place):
        return HIDDEN
    user = f"{HIDDEN}@" if at else ""
    query = f"?{HIDDEN}" if question_mark else ""
    return f"{user}{place}{query}"


def masked(text: str) -> str:
    """A value without what may be secret: credentials, query values, keys in paths of URLs.

    A key is a part of a path with at least sixteen letters and digits, and some of both.
    """
    text = re.sub(r"(?<=://)[^/\s]*@", f"{HIDDEN}@", text)
    text = re.sub(r"https?://\S+", lambda url: _KEY_IN_PATH.sub(HIDDEN, url[0]), text)
    return re.sub(r"([?&][^=&#\s]*=)[^&#\s]+", rf"\1{HIDDEN}", text)
