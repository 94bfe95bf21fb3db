"""Validates a merchant's branding: logo, accent colour, and links to the shop.

The accent is the colour of the button on an invoice's page. The functions read no
database and no files.
"""

import hashlib
import re
from typing import Any

from btcpay.values.colours import contrast
from btcpay.values.errors import CommandError
from btcpay.values.hosts import MAX_URL_CHARACTERS, web_parts, web_url
from btcpay.values.texts import checked_line

# The lowest contrast between the button and the page (WCAG 1.4.11), in both themes. The button's
# text needs no check: it is white or black, one of which has a contrast of at least 4.58 with any
# colour, and WCAG 1.4.3 requires 4.5.
SHAPE_CONTRAST = 3.0
# The background colours in static/pages.css.
LIGHT_PAGE = "#ffffff"
DARK_PAGE = "#15181d"

MAX_LOGO_BYTES = 65_536  # the rest of the page has only about 17 kB
# The placeholder in a URL for the invoice's id.
INVOICE = "{invoice}"
# Characters that must be percent-encoded in a URL.
_UNSAFE_CHARACTERS = frozenset('{}<>"\\^`')
# SVG is not accepted, since it can contain scripts.
_SIGNATURES = {
    "image/png": re.compile(rb"\x89PNG\r\n\x1a\n.{4}IHDR", re.DOTALL),
    "image/jpeg": re.compile(rb"\xff\xd8\xff"),
    "image/webp": re.compile(rb"RIFF.{4}WEBPVP8[ LX]", re.DOTALL),
}


def checked_accent(text: str) -> str:
    """Returns the colour in lower case.

    Raises CommandError if the text is not of the form `#rrggbb`, or if the colour's
    contrast with the light page or the dark page is too low.
    """
    accent = text.strip().lower()
    if not re.fullmatch("#[0-9a-f]{6}", accent):
        raise CommandError("the accent must be a colour such as '#2563eb'")
    _require_contrast(accent, LIGHT_PAGE, "the light page", "a darker")
    _require_contrast(accent, DARK_PAGE, "the dark page", "a lighter")
    return accent


def _require_contrast(accent: str, page: str, page_name: str, advice: str) -> None:
    ratio = contrast(accent, page)
    if ratio < SHAPE_CONTRAST:
        raise CommandError(
            f"the contrast of {accent} is too low ({ratio:.1f}:1 against {page_name},"
            f" {SHAPE_CONTRAST}:1 is needed): choose {advice} one"
        )


def image_type(content: bytes) -> str:
    """Returns the media type of an image. The first bytes of the content determine it.

    Raises CommandError if the content is too large, or is not a PNG, JPEG or WebP
    image.
    """
    if len(content) > MAX_LOGO_BYTES:
        raise CommandError(f"the logo must have at most {MAX_LOGO_BYTES} bytes")
    for media_type, signature in _SIGNATURES.items():
        if signature.match(content):
            return media_type
    raise CommandError("the logo must be a PNG, JPEG or WebP image")


def checked_url(text: str) -> str:
    """Returns the URL of a link to the shop, in ASCII. Raises CommandError if it is invalid.

    The URL may contain the placeholder `{invoice}`. A vertical bar is percent-encoded:
    OpenCart's URLs contain one, although the standard does not allow it, and browsers
    do not encode it.
    """
    url = _in_ascii(text.strip().replace("|", "%7C"))
    if len(url) > MAX_URL_CHARACTERS or not re.fullmatch(r"https?://[!-~]+", url):
        raise CommandError(
            f"{text!a} must be an address of at most {MAX_URL_CHARACTERS} characters that begins"
            " with https:// or http://, other letters than ASCII percent-encoded"
        )
    if _UNSAFE_CHARACTERS.intersection(url.replace(INVOICE, "")):
        raise CommandError(
            f"{url}: {INVOICE} is the only thing in braces, other signs are encoded"
        )
    if not _has_valid_host(url):
        raise CommandError(
            f"{url} must name a host such as shop.example, without user, password or {INVOICE}"
        )
    return url


def _has_valid_host(url: str) -> bool:
    """True if the URL has a valid host, and no user and no password."""
    try:
        return "@" not in web_parts(url).netloc
    except ValueError:
        return False


def _in_ascii(url: str) -> str:
    """Returns the URL with its host in ASCII; unchanged if it cannot be parsed."""
    try:
        return web_url(url)
    except ValueError:
        return url


def brand_columns(logo: bytes | None = None, **texts: str | None) -> dict[str, Any]:
    """Validates the given values, and returns them as columns of the table of brands.

    `logo` is the content of an image file. `texts` are the name, accent and contact.
    Values of None are left out. Raises CommandError if a value is invalid.
    """
    columns: dict[str, Any] = {}
    for name, text in texts.items():
        if text is None:
            continue
        if name == "accent":
            columns[name] = checked_accent(text)
        else:
            columns[name] = checked_line(name, text)
    if logo is not None:
        columns |= {
            "logo": logo,
            "logo_type": image_type(logo),
            "logo_sha256": hashlib.sha256(logo).hexdigest(),
        }
    return columns
