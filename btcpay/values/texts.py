"""Checks texts that people type in any script: names, notes, titles, order numbers.

Every Unicode blank becomes a space. Joiners and variation selectors are kept, because
words and emoji need them. Characters that are newer than Python's Unicode tables are
kept too. Controls, line breaks and direction marks are refused, because they change how
the surrounding text is displayed.
"""

import unicodedata
from collections.abc import Mapping
from typing import Any

from btcpay.values.errors import CommandError

MAX_CHARACTERS = {
    "name": 60,
    "reference": 200,
    "contact": 200,
    "reason": 200,
    "tax number": 60,
}
MAX_OPTIONAL = {"title": 200, "description": 500}  # optional texts
_WITH_LINES = ("description",)
# Direction marks (UAX #9), line and paragraph separators, annotation characters.
_REFUSED = frozenset(
    "\u061c\u200e\u200f\u202a\u202b\u202c\u202d\u202e\u2066\u2067\u2068\u2069\u2028\u2029"
    "\ufff9\ufffa\ufffb\ufeff"
)
_REFUSED_KINDS = ("Cc", "Cs")  # controls, and surrogates, which no database accepts
_UNSEEN_KINDS = ("Cf", "Mn", "Me", "Zs")  # a text of only these is displayed as a blank
# Hangul fillers and the blank Braille pattern
_UNSEEN_LETTERS = frozenset("\u115f\u1160\u2800\u3164\uffa0")


class TextRefused(CommandError):
    """A text is too long, is empty, or has a character that is refused.

    `what` is the text's name in the message, such as "title". `sign` is the first
    refused character as a code point, such as U+202E, else "".
    """

    def __init__(self, message: str, what: str = "", sign: str = "") -> None:
        super().__init__(message)
        self.what = what
        self.sign = sign


def line_of(what: str, text: str, most: int) -> str:
    """Returns the text as one line; "" if it has no visible character.

    Raises TextRefused for a refused character, or for more than `most` characters.
    `what` is the text's name in the message.
    """
    # limits the work below; surrounding blanks are stripped later
    if len(text) > 2 * most + 100:
        raise TextRefused(f"the {what} has more than {most} characters", what)
    line = "".join(" " if is_blank(sign) else sign for sign in text).strip()
    refused_signs = [sign for sign in line if is_refused(sign)]
    if refused_signs:
        code_point = f"U+{ord(refused_signs[0]):04X}"
        raise TextRefused(
            f"the {what} contains {code_point}, which cannot be seen: a control character, a"
            " line break or a mark of direction; type it again without",
            what,
            code_point,
        )
    if len(line) > most:
        raise TextRefused(f"the {what} has more than {most} characters", what)
    is_visible = any(not is_unseen(sign) for sign in line)
    if not is_visible:
        return ""
    return line


def lines_of(what: str, text: str, most: int) -> str:
    """Returns the text with blanks removed at both ends of each line.

    A line without visible characters becomes "", and such lines are removed at both ends
    of the text. Raises TextRefused for a refused character, or if the whole text has
    more than `most` characters. `what` is the text's name in the message.
    """
    text = text.replace("\r\n", "\n").strip()
    if len(text) > most:
        raise TextRefused(f"the {what} has more than {most} characters", what)
    lines = [line_of(what, line, most) for line in text.split("\n")]
    # Lines of invisible characters have become empty only now.
    return "\n".join(lines).strip("\n")


def checked_line(what: str, text: str) -> str:
    """Returns the text as one line with at least one visible character.

    `what` is a key of MAX_CHARACTERS, which has the maximum length. Raises TextRefused
    if no character is visible, if one is refused, or if there are too many.
    """
    line = line_of(what, text, MAX_CHARACTERS[what])
    if not line:
        raise TextRefused(
            f"the {what} must have 1 to {MAX_CHARACTERS[what]} characters", what
        )
    return line


def check_texts(fields: Mapping[str, Any]) -> dict[str, Any]:
    """Returns a copy of the fields with `title` and `description` checked.

    The title becomes one line; the description may have several. A text without visible
    characters becomes None. Raises TextRefused for a refused character, or for too many
    characters.
    """
    texts = dict(fields)
    for what, most in MAX_OPTIONAL.items():
        if texts.get(what) is None:
            continue
        check = line_of
        if what in _WITH_LINES:
            check = lines_of
        texts[what] = check(what, texts[what], most) or None
    return texts


def one_line(value: Any, most: int) -> str | None:
    """Returns an untrusted value as one displayable line of at most `most` characters.

    Returns None if the value is not a text or has no visible character.
    """
    if not isinstance(value, str):
        return None
    line = display_line(value)[:most].strip()
    return line or None


def display_line(text: str) -> str:
    """Returns the text as one line, with each refused character replaced by a space."""
    signs = []
    for sign in text:
        if is_blank(sign) or is_refused(sign):
            signs.append(" ")
        else:
            signs.append(sign)
    return "".join(signs).strip()


def is_unseen(sign: str) -> bool:
    return sign in _UNSEEN_LETTERS or unicodedata.category(sign) in _UNSEEN_KINDS


def is_blank(sign: str) -> bool:
    return sign == "\t" or unicodedata.category(sign) == "Zs"


def is_refused(sign: str) -> bool:
    return sign in _REFUSED or unicodedata.category(sign) in _REFUSED_KINDS
