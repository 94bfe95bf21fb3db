"""Converts a pasted text to plain ASCII: quotes, dashes, blanks and invisible characters."""

import html
import re
import unicodedata

from btcpay.merchants.wallet_text.contents import TextRefused

MAX_CHARS = 400_000  # the size of a wallet's file with some thousand transactions
_NOT_ASCII = re.compile(r"[^\x00-\x7f]")
_SIGNS = {
    **dict.fromkeys("‘’‚‛ʹʼ′´＇`", "'"),
    **dict.fromkeys("“”„‟″«»＂", '"'),
    **dict.fromkeys("‐‑‒–—−", "-"),
}
_AFTER_DIGIT = re.compile(r"(?<=[0-9])`")
_LINE_BREAKS = ("Zl", "Zp")
_INVISIBLE = ("Cf", "Cc")


def clean_text(text: str) -> str:
    """Returns the text in plain characters.

    - Typographic quotes, dashes and blanks become those of ASCII.
    - Invisible characters are removed; line breaks are kept.
    - An HTML entity such as `&quot;` becomes its character.
    - If each line begins with the `>` of a quoted mail, this sign is removed.

    Raises TextRefused if an HTML entity is malformed.
    """
    try:
        plain = html.unescape(text)
    except ValueError:  # an HTML entity with thousands of digits
        raise TextRefused(
            "something in the text is not readable here: give the key or the descriptor alone"
        ) from None
    plain = _NOT_ASCII.sub(_plain_sign, plain)
    plain = _AFTER_DIGIT.sub("'", plain)
    plain = plain.replace("\r\n", "\n").replace("\r", "\n").replace("\x00", "")
    return _without_quoting(plain.strip())


def _without_quoting(text: str) -> str:
    """Returns the text without the `>` before each line of a quoted mail."""
    lines = text.split("\n")
    if any(line.strip() and not line.startswith(">") for line in lines):
        return text
    return "\n".join(line.lstrip("> ") for line in lines)


def unescape_lines(text: str) -> str:
    r"""Returns a piece of JSON text with its escapes resolved, such as `\/` and `\n`."""
    plain = re.sub(r"\\[nrt]", "\n", text)
    return re.sub(r"\\(?=[/\"'])", "", plain)


def _plain_sign(match: re.Match[str]) -> str:
    """Returns ASCII characters for a character outside ASCII; "" if it is invisible."""
    sign = match.group()
    if sign in _SIGNS:
        return _SIGNS[sign]
    category = unicodedata.category(sign)
    if category in _INVISIBLE:
        return ""
    if category in _LINE_BREAKS:
        return "\n"
    return unicodedata.normalize("NFKC", sign)
