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
        """Returns the header unchanged. Raises ValueError if a line of it is invalid."""
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


def text(header: str, words: str) -> str:
    """Returns `words` as the value of the header called `header`.

    The words stay as they are if they are ASCII and fit on the line. Otherwise the value
    consists of encoded words (RFC 2047).
    """
    if _is_plain(words) and len(f"{header}: {words}") <= LINE_CHARACTERS:
        return words
    return _encode(header, words)


def mailbox(header: str, sender: Sender) -> str:
    """Returns the sender's name and address, as the value of the header called `header`.

    The sender's name may contain any characters.
    """
    if not sender.name:
        return sender.address
    name = f'"{sender.name.translate(_QUOTED)}"'
    if not _is_plain(sender.name) or len(f"{header}: {name}") > LINE_CHARACTERS:
        name = _encode(header, sender.name)
    address = f"<{sender.address}>"
    last_line = f"{header}: {name}".rpartition("\r\n")[2]
    fits_on_last_line = len(f"{last_line} {address}") <= LINE_CHARACTERS
    if fits_on_last_line:
        return f"{name} {address}"
    return f"{name}\r\n {address}"


def _is_plain(words: str) -> bool:
    """True if the words may stand in a header, and do not look like an encoded word."""
    return words.isascii() and "=?" not in words


def _encode(header: str, words: str) -> str:
    encoded = Header(words, "utf-8", LINE_CHARACTERS - 1, header_name=header)
    return encoded.encode(linesep="\r\n")
