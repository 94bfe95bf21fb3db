"""The headers of mail, in the form in which they go out: ASCII, folded here and nowhere else.

Python's own folding is wrong: it makes a long URL an encoded word, by which nobody can unsubscribe,
and splits a long name into mailboxes at its commas.
"""

from email.header import Header
from email.policy import EmailPolicy

from btcpay.settings.mail_settings import Sender

# The most characters of a line: with an encoded word (RFC 2047, 2), and of any (RFC 5322, 2.1.1).
LINE_CHARACTERS = 76
MOST_CHARACTERS = 998
_QUOTED = str.maketrans({"\\": "\\\\", '"': '\\"'})


class AsWritten(EmailPolicy):
    """Stores each header as the text that it is sent as. Raises ValueError for any other text."""

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
    """The words as the value of the header of that name: plain, or in encoded words (RFC 2047)."""
    if _is_plain(words) and len(f"{name}: {words}") <= LINE_CHARACTERS:
        return words
    return _encode(name, words)


def mailbox(name: str, sender: Sender) -> str:
    """One mailbox as the value of the header of that name, whatever signs its name has."""
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
