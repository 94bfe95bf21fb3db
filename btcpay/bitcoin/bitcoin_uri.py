"""The addresses in a text that somebody pastes: alone, or in a `bitcoin:` URI (BIP21, BIP321).

The checksum of an address shows whether the reading was right, so its spelling matters little.
"""

import re
import unicodedata
from urllib.parse import unquote

from btcpay.bitcoin.wire import DecodeError

MAX_CHARACTERS = 2000  # of a `bitcoin:` URI, which may hold more than an address
# Categories of Unicode: blanks, line ends, controls, and marks of format such as U+200B.
_UNSEEN = {"Zs", "Zl", "Zp", "Cc", "Cf"}
# Letters and marks that look like a blank or like nothing.
_BLANK_LETTERS = set("\u034f\u115f\u1160\u2800\u3164\ufe0e\ufe0f\uffa0")
_SCHEME = re.compile("bitcoin:/*", re.IGNORECASE)
# What people and programs of chat write around an address: quotes, brackets, the end of a sentence.
_BEFORE = re.compile(r"\A\W+")
_BEHIND = re.compile(r"\W+\Z")
# BIP321: an address in a parameter that is named after its human-readable part.
_ADDRESS_NAMES = ("bc", "tb", "bcrt")
_OTHER_WAYS = ("lightning", "lno", "sp", "pay")
# What wallets copy beside addresses, by the name of its kind.
_KINDS = {
    "lightning": re.compile(
        "(?:lightning|keyauth):|lnurl|ln[oir]1|ln(?:bc|tbs?|bcrt)[0-9]*[munp]?1|[^@/:?]+@[^@/:?]+$",
        re.IGNORECASE,
    ),
    "silent": re.compile("(?:sp|tsp|sprt)1", re.IGNORECASE),
    "payment_code": re.compile(
        "PM8T[1-9A-HJ-NP-Za-km-z]{100,}|[a-zA-Z]pub[1-9A-HJ-NP-Za-km-z]{50,}"
    ),
}


class InvalidAddress(DecodeError):
    """The text holds no address to use. `kind`: `malformed`, `demanding`, or a key of _KINDS."""

    def __init__(self, kind: str, message: str) -> None:
        super().__init__(message)
        self.kind = kind


def strip_unseen(text: str) -> str:
    """The text without all that cannot be seen, and without signs before its first letter or digit.

    Signs of full width become ASCII. The text's length is bounded by who calls.
    """
    plain = unicodedata.normalize("NFKC", text)
    seen = "".join(sign for sign in plain if not _is_unseen(sign))
    return _BEFORE.sub("", seen)


def _is_unseen(sign: str) -> bool:
    return unicodedata.category(sign) in _UNSEEN or sign in _BLANK_LETTERS


def _alone(text: str) -> str:
    """An address without the signs behind it, and without dashes between its groups of four."""
    return "".join(sign for sign in _BEHIND.sub("", text.strip()) if not _is_dash(sign))


def _is_dash(sign: str) -> bool:
    return unicodedata.category(sign) == "Pd"


def strip_scheme(text: str) -> str:
    """The text behind `bitcoin:` and slashes, in letters of any size."""
    if _SCHEME.match(text):
        return _SCHEME.sub("", text, count=1)
    return text


def addresses_of(text: str) -> list[str]:
    """The texts that stand where addresses stand, at least one; nobody has judged them yet.

    A URI may have several, of which the payer may use any (BIP321). Raises NotAddress for a URI
    that demands what is not known here, and where something else than an address was copied.
    """
    if len(text) > MAX_CHARACTERS:
        raise InvalidAddress(
            "malformed", f"it has more than {MAX_CHARACTERS} characters"
        )
    path, _, query = strip_scheme(strip_unseen(text)).partition("?")
    address = _alone(unquote(path))
    parameters = _parameters(query)
    for name, _ in parameters:
        if name.startswith("req-"):
            raise InvalidAddress(
                "demanding", f"it demands {name[:40]!a}, which is not known here"
            )
    found = [address] if address else []
    found += [
        _alone(value) for name, value in parameters if value and name in _ADDRESS_NAMES
    ]
    if not found:
        found = [value for name, value in parameters if name in _OTHER_WAYS]
    for kind, pattern in _KINDS.items():
        if any(pattern.match(each) for each in found):
            raise InvalidAddress(kind, _SENTENCES[kind])
    if not found:
        raise InvalidAddress("malformed", "there is nothing in it")
    return found


_SENTENCES = {
    "lightning": "this is for Lightning: copy a Bitcoin address instead",
    "silent": "silent payment addresses cannot be paid here: copy an ordinary Bitcoin address",
    "payment_code": "this stands for many addresses: copy a single Bitcoin address",
}


def _parameters(query: str) -> list[tuple[str, str]]:
    """Names in small letters, and values, both without percent-encoding (RFC 3986)."""
    pairs = [pair.partition("=") for pair in query.split("&") if pair]
    return [
        (unquote(name).strip().lower(), unquote(value).strip())
        for name, _, value in pairs
    ]
