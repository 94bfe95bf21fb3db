"""The addresses in a text that somebody pastes: alone, or in a `bitcoin:` URI (BIP21, BIP321).

The text may be spelled in many ways, since the checksum of an address reveals a wrong reading.
"""

import re
import unicodedata
from urllib.parse import unquote

from btcpay.bitcoin.wire import DecodeError

MAX_CHARACTERS = 2000  # of a `bitcoin:` URI, which may hold more than an address
# Unicode's categories of blanks, line ends, controls, and marks of format such as U+200B.
_UNSEEN_CATEGORIES = {"Zs", "Zl", "Zp", "Cc", "Cf"}
_DASH_CATEGORY = "Pd"
# Letters and marks that look like a blank or like nothing.
_BLANK_LETTERS = set("\u034f\u115f\u1160\u2800\u3164\ufe0e\ufe0f\uffa0")
_SCHEME = re.compile("bitcoin:/*", re.IGNORECASE)
# What people and chat programs write around an address: quotes, brackets, the end of a sentence.
_SIGNS_BEFORE = re.compile(r"\A\W+")
_SIGNS_BEHIND = re.compile(r"\W+\Z")
# BIP321: an address in a parameter that is named after its human-readable part.
_ADDRESS_PARAMETERS = ("bc", "tb", "bcrt")
_OTHER_PARAMETERS = ("lightning", "lno", "sp", "pay")
# What wallets copy in place of addresses, by kind.
_OTHER_KINDS = {
    "lightning": re.compile(
        "(?:lightning|keyauth):|lnurl|ln[oir]1|ln(?:bc|tbs?|bcrt)[0-9]*[munp]?1|[^@/:?]+@[^@/:?]+$",
        re.IGNORECASE,
    ),
    "silent": re.compile("(?:sp|tsp|sprt)1", re.IGNORECASE),
    "payment_code": re.compile(
        "PM8T[1-9A-HJ-NP-Za-km-z]{100,}|[a-zA-Z]pub[1-9A-HJ-NP-Za-km-z]{50,}"
    ),
}
_REASONS = {
    "lightning": "this is for Lightning: copy a Bitcoin address instead",
    "silent": "silent payment addresses cannot be paid here: copy an ordinary Bitcoin address",
    "payment_code": "this stands for many addresses: copy a single Bitcoin address",
}


class InvalidAddress(DecodeError):
    """The text holds no address to use.

    `kind` is `malformed`, `demanding`, or the kind of payment that the text is for: `lightning`,
    `silent` or `payment_code`.
    """

    def __init__(self, kind: str, message: str) -> None:
        super().__init__(message)
        self.kind = kind


def strip_unseen(text: str) -> str:
    """The text without characters that cannot be seen, from its first letter or digit on.

    Signs of full width become ASCII. The caller bounds the text's length.
    """
    plain = unicodedata.normalize("NFKC", text)
    visible = "".join(char for char in plain if not _is_unseen(char))
    return _SIGNS_BEFORE.sub("", visible)


def strip_scheme(text: str) -> str:
    """The text without `bitcoin:` and slashes at its beginning, in letters of any case."""
    match = _SCHEME.match(text)
    if match:
        return text[match.end() :]
    return text


def addresses_of(text: str) -> list[str]:
    """The texts that stand where addresses stand, at least one. They may be invalid.

    A URI may have several, of which the payer may use any (BIP321). Raises InvalidAddress if a URI
    demands something unknown, or if something else than an address was copied.
    """
    if len(text) > MAX_CHARACTERS:
        raise InvalidAddress(
            "malformed", f"it has more than {MAX_CHARACTERS} characters"
        )
    path, _, query = strip_scheme(strip_unseen(text)).partition("?")
    address = _trim_address(unquote(path))
    parameters = _parameters(query)
    for name, _ in parameters:
        if name.startswith("req-"):
            raise InvalidAddress(
                "demanding", f"it demands {name[:40]!a}, which is not known here"
            )
    candidates = []
    if address:
        candidates.append(address)
    for name, value in parameters:
        if value and name in _ADDRESS_PARAMETERS:
            candidates.append(_trim_address(value))
    if not candidates:
        candidates = [value for name, value in parameters if name in _OTHER_PARAMETERS]
    for kind, pattern in _OTHER_KINDS.items():
        if any(pattern.match(candidate) for candidate in candidates):
            raise InvalidAddress(kind, _REASONS[kind])
    if not candidates:
        raise InvalidAddress("malformed", "there is nothing in it")
    return candidates


def _is_unseen(char: str) -> bool:
    return unicodedata.category(char) in _UNSEEN_CATEGORIES or char in _BLANK_LETTERS


def _is_dash(char: str) -> bool:
    return unicodedata.category(char) == _DASH_CATEGORY


def _trim_address(text: str) -> str:
    """The address without the signs behind it, and without dashes between groups of four."""
    trimmed = _SIGNS_BEHIND.sub("", text.strip())
    return "".join(char for char in trimmed if not _is_dash(char))


def _parameters(query: str) -> list[tuple[str, str]]:
    """Names in lower case and their values, both without percent-encoding (RFC 3986)."""
    parameters = []
    for pair in query.split("&"):
        if pair:
            name, _, value = pair.partition("=")
            parameters.append((unquote(name).strip().lower(), unquote(value).strip()))
    return parameters
