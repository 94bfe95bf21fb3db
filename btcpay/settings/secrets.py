"""Hides secrets in settings. Every output that shows a setting uses these functions."""

import re

from btcpay.settings.settings import OF_FILES, VARIABLES

HIDDEN = "***"
# The settings whose values are hidden completely. The values are no URLs, but may look like one.
_WHOLLY_SECRET = (VARIABLES["owner_password"], VARIABLES["setup_token"])
# https://user:password@host: what stands before the @.
_CREDENTIALS = re.compile(r"(?<=://)[^/\s]*@")
_URL = re.compile(r"https?://\S+")
# ?token=value and &token=value
_QUERY_VALUE = re.compile(r"([?&][^=&#\s]*=)[^&#\s]+")
# The last part of https://host/v3/0123456789abcdef: a segment of the path, but never the host,
# which follows two slashes.
_KEY_IN_PATH = re.compile(
    r"(?<=[^:/]/)(?=[^/?#\s]*[0-9])(?=[^/?#\s]*[A-Za-z])[A-Za-z0-9_-]{16,}(?=[/?#\s]|$)"
)


# Host (IPv6 in brackets), port and path of a URL, and nothing else.
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


def without_secrets(variable: str, text: str) -> str:
    """Returns the value of a variable without the secrets in it.

    The value of a secret setting becomes `***`; if it is a URL, its scheme, host, port
    and path are kept. In the value of any other setting, credentials in URLs, values in
    their queries and API keys in their paths become `***` (`mask`).
    """
    if variable not in OF_FILES:
        return mask(text)
    if not text:
        return ""
    if variable in _WHOLLY_SECRET:
        return HIDDEN
    scheme, separator, rest = text.partition("://")
    if not separator or scheme not in _SCHEMES:
        return HIDDEN
    return f"{scheme}://{_without_credentials(rest)}"


def _without_credentials(rest: str) -> str:
    """Returns a URL's text after the scheme, with `***` for user, password and query.

    Host, port and path are kept. The whole result is `***` if part of the password could
    be after the last @.
    """
    credentials, at, after_at = rest.rpartition("@")
    place, question_mark, _query = after_at.partition("?")
    if "?" in credentials or not _PLACE.fullmatch(place):
        return HIDDEN
    if at:
        place = f"{HIDDEN}@{place}"
    if question_mark:
        place = f"{place}?{HIDDEN}"
    return place


def mask(text: str) -> str:
    """Replaces everything in a text that may be a secret by `***`.

    Secrets are the credentials in a URL, the values in its query, and API keys in its
    path. A segment of the path counts as an API key if it consists of at least sixteen
    letters, digits, - and _, and has both a letter and a digit.
    """
    text = _CREDENTIALS.sub(f"{HIDDEN}@", text)
    text = _URL.sub(lambda url: _KEY_IN_PATH.sub(HIDDEN, url[0]), text)
    return _QUERY_VALUE.sub(rf"\1{HIDDEN}", text)
