"""Texts of people: names, notes, titles, numbers of orders, as their script writes them.

Any blank of Unicode becomes a blank. Joiners and variation selectors stay, since words and emoji
are written with them, and so does a sign that is newer than Python's tables. Controls, ends of
lines and marks of direction are refused: they change how the text beside them is read.
"""

import unicodedata
from collections.abc import Mapping
from typing import Any

from btcpay.values.errors import CommandError

MAX_CHARACTERS = {"name": 60, "reference": 200, "contact": 200, "reason": 200}
MAX_TYPED = {"title": 200, "description": 500}  # texts that may be left out
_WITH_LINES = ("description",)
# Direction marks (UAX 9), line and paragraph separators, marks of annotations.
_REFUSED = frozenset(
    "\u061c\u200e\u200f\u202a\u202b\u202c\u202d\u202e\u2066\u2067\u2068\u2069\u2028\u2029"
    "\ufff9\ufffa\ufffb\ufeff"
)
_REFUSED_KINDS = ("Cc", "Cs")  # controls, and halves of signs, which no database takes
_UNSEEN_KINDS = ("Cf", "Mn", "Me", "Zs")  # a text of these alone shows nothing
# fillers of Hangul, blank Braille
_UNSEEN_LETTERS = frozenset("\u115f\u1160\u2800\u3164\uffa0")


class TextRefused(CommandError):
    """A text that cannot be taken; `sign`: the first that is refused in it, such as U+202E.

    `what`: the name with which the text was given.
    """

    def __init__(self, message: str, what: str = "", sign: str = "") -> None:
        super().__init__(message)
        self.what = what
        self.sign = sign


def line_of(what: str, text: str, most: int) -> str:
    """The text as one line, "" for blanks alone. Raises TextRefused, which calls it `what`."""
    # with blanks around it; before each sign is looked at
    if len(text) > 2 * most + 100:
        raise TextRefused(f"the {what} has more than {most} characters", what)
    line = "".join(" " if is_blank(sign) else sign for sign in text).strip()
    refused = next(filter(is_refused, line), None)
    if refused is not None:
        code = f"U+{ord(refused):04X}"
        raise TextRefused(
            f"the {what} contains {code}, which cannot be seen: a control character, a line break"
            " or a mark of direction; type it again without",
            what,
            code,
        )
    if len(line) > most:
        raise TextRefused(f"the {what} has more than {most} characters", what)
    if all(map(is_unseen, line)):
        return ""
    return line


def lines_of(what: str, text: str, most: int) -> str:
    """The same of a text that may have several lines. Raises TextRefused."""
    text = text.replace("\r\n", "\n").strip()
    if len(text) > most:
        raise TextRefused(f"the {what} has more than {most} characters", what)
    return "\n".join(line_of(what, line, most) for line in text.split("\n"))


def checked_line(what: str, text: str) -> str:
    """The line without blanks around it; `what` is a key of MAX_CHARACTERS. Raises TextRefused."""
    line = line_of(what, text, MAX_CHARACTERS[what])
    if not line:
        raise TextRefused(
            f"the {what} must have 1 to {MAX_CHARACTERS[what]} characters", what
        )
    return line


def typed_texts(fields: Mapping[str, Any]) -> dict[str, Any]:
    """The fields, with the title and the description as people's texts. Raises TextRefused.

    One that shows nothing is None.
    """
    texts = dict(fields)
    for what, most in MAX_TYPED.items():
        if texts.get(what) is None:
            continue
        read = lines_of if what in _WITH_LINES else line_of
        texts[what] = read(what, texts[what], most) or None
    return texts


def one_line(value: Any, most: int) -> str | None:
    """A stranger's text as one line that a page may show; None for anything else."""
    if isinstance(value, str):
        return shown_line(value)[:most].strip() or None
    return None


def shown_line(text: str) -> str:
    """The text as one line, with a blank for each sign that is refused of people."""
    return "".join(
        " " if is_blank(sign) or is_refused(sign) else sign for sign in text
    ).strip()


def is_unseen(sign: str) -> bool:
    return sign in _UNSEEN_LETTERS or unicodedata.category(sign) in _UNSEEN_KINDS


def is_blank(sign: str) -> bool:
    return sign == "\t" or unicodedata.category(sign) == "Zs"


def is_refused(sign: str) -> bool:
    return sign in _REFUSED or unicodedata.category(sign) in _REFUSED_KINDS
