"""Encodes mail headers in ASCII, and folds (breaks) their long lines.

Python's own folding is not used, since it has two faults. It turns a long URL into an
encoded word, which breaks List-Unsubscribe. It splits a long name at its commas, as if
the name were several mailboxes.
"""

from email.header import Header
from email.policy import EmailPolicy

from btcpay.settings.mail_settings import Sender

# The maximum length of a line with an encoded word (section 2 of RFC 2047), and of any line
# (section 2.1.1 of RFC 5322).
LINE_CHARACTERS = 76
MOST_CHARACTERS = 998
_QUOTED = str.maketrans({"\\": "\\\\", '"': '\\"'})


class AsWritten(EmailPolicy):
    """A policy of Python's `email` that sends each header exactly as it was set.

    Setting a header raises ValueError if a line of it is empty, too long, or not
    printable ASCII.
    """

    def header_store_parse(self, name: str, value: str) -> tuple[str, str]:
        lines = f"{name}: {value}".split("\r\n ")
        if not all(_may_be_sent(line) for line in lines):
            raise ValueError(f"{name}: a line that is no header")
        return name, value

    def fold(self, name: str, value: str) -> str:
        return f"{name}: {value}{self.linesep}"

    def fold_binary(self, name: str, value: str) -> bytes:
        return self.fold(name, value).encode("ascii")


def _may_be_sent(line: str) -> bool:
    return line.isascii() and line.isprintable() and 0 < len(line) <= MOST_CHARACTERS


POLICY = AsWritten(linesep="\r\n")


def text(name: str, words: str) -> str:
    """Returns `words` as the value of the header `name`.

    The words stay as they are if they are short ASCII. Otherwise the value consists of
    encoded words (RFC 2047).
    """
    if _is_plain(words) and len(f"{name}: {words}") <= LINE_CHARACTERS:
        return words
    return _encode(name, words)


def mailbox(name: str, sender: Sender) -> str:
    """Returns the sender's name and address as the value of the header `name`.

    The sender's name may contain any characters.
    """
    address = f"<{sender.address}>"
    if not sender.name:
        return sender.address
    quoted = f'"{sender.name.translate(_QUOTED)}"'
    if not _is_plain(sender.name) or len(f"{name}: {quoted}") > LINE_CHARACTERS:
        quoted = _encode(name, sender.name)
    last_line = f"{name}: {quoted}".rpartition("\r\n")[2]
    is_short = len(f"{last_line} {address}") <= LINE_CHARACTERS
    if is_short:
        return f"{quoted} {address}"
    return f"{quoted}\r\n {address}"


def _is_plain(words: str) -> bool:
    return words.isascii() and "=?" not in words


def _encode(name: str, words: str) -> str:
    header = Header(words, "utf-8", LINE_CHARACTERS - 1, name)
    return header.encode(linesep="\r\n")
