"""What of a setting may be shown: whatever shows one takes its text from here."""

import re

from btcpay.settings.settings import OF_FILES

HIDDEN = "***"
_KEY_IN_PATH = re.compile(
    r"(?<=[^:/]/)(?=[^/?#\s]*[0-9])(?=[^/?#\s]*[A-Za-z])[A-Za-z0-9_-]{16,}(?=[/?#\s]|$)"
)


def shown(variable: str, text: str) -> str:
    """The value of a variable without what is secret in it.

    Of a setting that `Settings` calls secret a URL is shown without user, password and the values
    of its query; any other text not at all.
    """
    if variable not in OF_FILES:
        return masked(text)
    if "://" not in text:
        return HIDDEN if text else ""
    return masked(re.sub(r"(?<=://).*@", f"{HIDDEN}@", text, flags=re.DOTALL))


def masked(text: str) -> str:
    """A value without what may be secret: credentials, query values, keys in paths of URLs.

    A key is a part of a path with at least sixteen letters and digits, and some of both.
    """
    text = re.sub(r"(?<=://)[^/\s]*@", f"{HIDDEN}@", text)
    text = re.sub(r"https?://\S+", lambda url: _KEY_IN_PATH.sub(HIDDEN, url[0]), text)
    return re.sub(r"([?&][^=&#\s]*=)[^&#\s]+", rf"\1{HIDDEN}", text)
