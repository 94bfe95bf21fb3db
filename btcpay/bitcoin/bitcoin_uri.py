"""Extracts addresses from pasted text: a bare address or a `bitcoin:` URI.

URIs follow BIP21 and BIP321. The parser accepts many spellings. A misread address is
harmless, since its checksum fails.
"""

import re
import unicodedata
from collections.abc import Sequence
from urllib.parse import unquote

from btcpay.bitcoin.wire import DecodeError

MAX_CHARACTERS = 2000  # a URI has parameters besides the address
# Unicode categories of spaces, line and paragraph separators, controls, and format characters
# (e.g. U+200B).
_UNSEEN_CATEGORIES = {"Zs", "Zl", "Zp", "Cc", "Cf"}
_DASH_CATEGORY = "Pd"
# Characters of other categories that are displayed as a blank or not at all.
_BLANK_LETTERS = set("\u034f\u115f\u1160\u2800\u3164\ufe0e\ufe0f\uffa0")
_SCHEME = re.compile("bitcoin:/*", re.IGNORECASE)
# Signs that people and chat programs put around an address: quotes, brackets, full stops.
_SIGNS_BEFORE = re.compile(r"\A\W+")
_SIGNS_BEHIND = re.compile(r"\W+\Z")
# BIP321: the parameter of a segwit address is named after its human-readable part.
_ADDRESS_PARAMETERS = ("bc", "tb", "bcrt")
_OTHER_PARAMETERS = ("lightning", "lno", "sp", "pay")
# Patterns of texts that wallets copy instead of an address, by kind of payment.
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
    """The pasted text contains no address that can be paid.

    `kind` is `malformed`, `demanding` (the URI has an unknown `req-` parameter), or the
    other kind of payment that the text is for: `lightning`, `silent` or `payment_code`.
    """

    def __init__(self, kind: str, message: str) -> None:
        super().__init__(message)
        self.kind = kind


def strip_unseen(text: str) -> str:
    """Removes blanks, invisible characters, and signs before the first letter or digit.

    Full-width characters become ASCII (NFKC). The caller must limit the length of the
    text.
    """
    plain = unicodedata.normalize("NFKC", text)
    visible = "".join(char for char in plain if not _is_unseen(char))
    return _SIGNS_BEFORE.sub("", visible)


def strip_scheme(text: str) -> str:
    """Removes a leading `bitcoin:` and the slashes after it, in upper or lower case."""
    match = _SCHEME.match(text)
    if match:
        return text[match.end() :]
    return text


def addresses_of(text: str) -> list[str]:
    """Returns the possible addresses in a pasted text, at least one.

    The addresses are not validated. A URI may contain several, and the payer may use
    any of them (BIP321). Raises InvalidAddress if the text is empty or too long, if a
    URI has a `req-` parameter (all are unknown here), or if the text is for another
    kind of payment.
    """
    if len(text) > MAX_CHARACTERS:
        raise InvalidAddress(
            "malformed", f"it has more than {MAX_CHARACTERS} characters"
        )
    address_and_query = strip_scheme(strip_unseen(text))
    path, _, query = address_and_query.partition("?")
    parameters = _parameters(query)
    for name, _ in parameters:
        if name.startswith("req-"):
            raise InvalidAddress(
                "demanding", f"it demands {name[:40]!a}, which is not known here"
            )
    candidates = _candidates(path, parameters)
    for kind, pattern in _OTHER_KINDS.items():
        if any(pattern.match(candidate) for candidate in candidates):
            raise InvalidAddress(kind, _REASONS[kind])
    if not candidates:
        raise InvalidAddress("malformed", "there is nothing in it")
    return candidates


def _candidates(path: str, parameters: Sequence[tuple[str, str]]) -> list[str]:
    """Returns the texts of a URI that may be addresses.

    If there are none, returns the values of its parameters for other kinds of payment.
    """
    candidates = []
    address = _trim_address(unquote(path))
    if address:
        candidates.append(address)
    for name, value in parameters:
        if value and name in _ADDRESS_PARAMETERS:
            candidates.append(_trim_address(value))
    if candidates:
        return candidates
    return [value for name, value in parameters if name in _OTHER_PARAMETERS]


def _is_unseen(char: str) -> bool:
    return unicodedata.category(char) in _UNSEEN_CATEGORIES or char in _BLANK_LETTERS


def _is_dash(char: str) -> bool:
    return unicodedata.category(char) == _DASH_CATEGORY


def _trim_address(text: str) -> str:
    """Removes blanks and trailing signs, and all dashes.

    Some programs write dashes between groups of four characters.
    """
    trimmed = _SIGNS_BEHIND.sub("", text.strip())
    return "".join(char for char in trimmed if not _is_dash(char))


def _parameters(query: str) -> list[tuple[str, str]]:
    """Returns (name, value) for each parameter of a URI's query.

    Names are in lower case. Percent-encoding (RFC 3986) is decoded in names and values.
    """
    parameters = []
    for pair in query.split("&"):
        if not pair:
            continue
        raw_name, _, raw_value = pair.partition("=")
        name = unquote(raw_name).strip().lower()
        value = unquote(raw_value).strip()
        parameters.append((name, value))
    return parameters
