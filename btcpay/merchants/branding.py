"""Pure checks of a merchant's logo, accent and way back.

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

MAX_LOGO_BYTES = 65_536  # it is the heaviest part of a page that is about 17 kB
INVOICE = "{invoice}"  # in an address, the place of the invoice's id
# No SVG: it can carry scripts.
_SIGNATURES = {
    "image/png": re.compile(rb"\x89PNG\r\n\x1a\n.{4}IHDR", re.DOTALL),
    "image/jpeg": re.compile(rb"\xff\xd8\xff"),
    "image/webp": re.compile(rb"RIFF.{4}WEBPVP8[ LX]", re.DOTALL),
}


def luminance(colour: str) -> float:
    """Relative luminance of `#rrggbb`, 0 to 1 (WCAG 2.2, "relative luminance")."""
    red, green, blue = (
        _linear(int(colour[place : place + 2], 16) / 255) for place in (1, 3, 5)
    )
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
    for page, name, advice in (
        (LIGHT_PAGE, "the light page", "a darker"),
        (DARK_PAGE, "the dark page", "a lighter"),
    ):
        if (low := contrast(accent, page)) < SHAPE_CONTRAST:
            raise CommandError(
                f"the contrast of {accent} is too low ({low:.1f}:1 against {name},"
                f" {SHAPE_CONTRAST}:1 is needed): choose {advice} one"
            )
    return accent


def image_type(content: bytes) -> str:
    """The media type by the first bytes. Raises CommandError for anything else, or too much."""
    if len(content) > MAX_LOGO_BYTES:
        raise CommandError(f"the logo must have at most {MAX_LOGO_BYTES} bytes")
    for media_type, signature in _SIGNATURES.items():
        if signature.match(content):
            return media_type
    raise CommandError("the logo must be a PNG, JPEG or WebP image")


def checked_url(text: str) -> str:
    """An address to lead back to. Raises CommandError for anything but a plain web address.

    A bar, as in OpenCart's, is encoded: URLs may not contain one, and browsers leave it.
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
    """The address with a host of other letters in ASCII; any other address as it is."""
    try:
        return web_url(url)
    except ValueError:
        return url


def brand_columns(logo: bytes | None = None, **texts: str | None) -> dict[str, Any]:
    """The given logo, name, accent and contact as columns of the brand. Raises CommandError."""
    columns: dict[str, Any] = {
        name: checked_accent(text) if name == "accent" else checked_line(name, text)
        for name, text in texts.items()
        if text is not None
    }
    if logo is not None:
        columns |= {
            "logo": logo,
            "logo_type": image_type(logo),
            "logo_sha256": hashlib.sha256(logo).hexdigest(),
        }
    return columns
