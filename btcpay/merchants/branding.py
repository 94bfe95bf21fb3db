"""Checks of a merchant's logo, accent and links back to the shop. Pure.

An accent is the colour of the page's one button. Contrast is WCAG 2.2's, from 1 to 21.
"""

import hashlib
import re
from typing import Any

from btcpay.values.errors import CommandError
from btcpay.values.hosts import MAX_URL_CHARACTERS, web_parts, web_url
from btcpay.values.texts import checked_line

# WCAG 1.4.11: the button on the page, whichever theme the visitor has. White or black is readable
# on any colour: the better of both has 4.58 at least (1.4.3 asks for 4.5).
SHAPE_CONTRAST = 3.0
# the backgrounds in static/pages.css
LIGHT_PAGE = "#ffffff"
DARK_PAGE = "#15181d"

# A logo is the heaviest part of a page that otherwise has about 17 kB.
MAX_LOGO_BYTES = 65_536
# Stands in an address for the invoice's id.
INVOICE = "{invoice}"
# No SVG: it can carry scripts.
_SIGNATURES = {
    "image/png": re.compile(rb"\x89PNG\r\n\x1a\n.{4}IHDR", re.DOTALL),
    "image/jpeg": re.compile(rb"\xff\xd8\xff"),
    "image/webp": re.compile(rb"RIFF.{4}WEBPVP8[ LX]", re.DOTALL),
}


def luminance(colour: str) -> float:
    """Relative luminance of `#rrggbb`, 0 to 1 (WCAG 2.2, "relative luminance")."""
    red = _linear(int(colour[1:3], 16) / 255)
    green = _linear(int(colour[3:5], 16) / 255)
    blue = _linear(int(colour[5:7], 16) / 255)
    return 0.2126 * red + 0.7152 * green + 0.0722 * blue


def _linear(share: float) -> float:
    if share <= 0.04045:
        return share / 12.92
    curved: float = ((share + 0.055) / 1.055) ** 2.4
    return curved


def contrast(one: str, other: str) -> float:
    """WCAG contrast of two colours, 1 to 21."""
    low, high = sorted((luminance(one), luminance(other)))
    return (high + 0.05) / (low + 0.05)


def button_text(accent: str) -> str:
    """White or black, whichever has more contrast on the accent."""
    return max("#ffffff", "#000000", key=lambda text: contrast(text, accent))


def checked_accent(text: str) -> str:
    """The colour in lower case. Raises CommandError for another notation or too low a contrast."""
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
    """The media type, by the first bytes. Raises CommandError if it is no image, or too large."""
    if len(content) > MAX_LOGO_BYTES:
        raise CommandError(f"the logo must have at most {MAX_LOGO_BYTES} bytes")
    for media_type, signature in _SIGNATURES.items():
        if signature.match(content):
            return media_type
    raise CommandError("the logo must be a PNG, JPEG or WebP image")


def checked_url(text: str) -> str:
    """The address to lead back to, in ASCII. Raises CommandError if it is no plain web address.

    A bar, which OpenCart's addresses have, is encoded: URLs may not contain one, and browsers leave
    it as it is.
    """
    url = _in_ascii(text.strip().replace("|", "%7C"))
    if len(url) > MAX_URL_CHARACTERS or not re.fullmatch(r"https?://[!-~]+", url):
        raise CommandError(
            f"{text!a} must be an address of at most {MAX_URL_CHARACTERS} characters that begins"
            " with https:// or http://, other letters than ASCII percent-encoded"
        )
    if set(url.replace(INVOICE, "")) & set('{}<>"\\^`'):
        raise CommandError(
            f"{url}: {INVOICE} is the only thing in braces, other signs are encoded"
        )
    try:
        if "@" in web_parts(url).netloc:
            raise ValueError
    except ValueError:
        raise CommandError(
            f"{url} must name a host such as shop.example, without user, password or {INVOICE}"
        ) from None
    return url


def _in_ascii(url: str) -> str:
    """The address with its host in ASCII; if it cannot be read, the address as it is."""
    try:
        return web_url(url)
    except ValueError:
        return url


def brand_columns(logo: bytes | None = None, **texts: str | None) -> dict[str, Any]:
    """The given logo, name, accent and contact as columns of the brand. Raises CommandError."""
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
