"""Finds and parses extended public keys in a text, with the origin of each key."""

import re
from collections.abc import Iterator
from typing import NamedTuple

from btcpay.bitcoin.base58 import b58check_decode
from btcpay.bitcoin.extended_key import SERIALIZED_SIZE, ExtendedKey
from btcpay.bitcoin.slip132 import VERSIONS, KeyVersion, as_xpub
from btcpay.bitcoin.wire import DecodeError
from btcpay.merchants.wallet_text.contents import TextProblem, TextRefused

# Every extended public key has this many characters in Base58Check.
KEY_CHARS = 111
BASE58 = "[1-9A-HJ-NP-Za-km-z]"
# A line may break within a key, and the next line may be indented. The limit keeps the time linear.
BREAK = r"\s{0,5}"
ORIGIN = (
    rf"\[{BREAK}[0-9a-fA-F]{{8}}(?:{BREAK}/{BREAK}[0-9]+(?:{BREAK}['hH])?)*{BREAK}\]"
)
# A text that begins like a key counts as a key, perhaps a damaged one. The mere word "xpub" does
# not count.
KEY = re.compile(
    rf"(?:(?P<origin>{ORIGIN}){BREAK})?(?<![0-9A-Za-z])"
    rf"(?P<key>[xyzYZtuvUV]pub{BREAK}[4-8D](?:{BREAK}{BASE58}){{15,{KEY_CHARS - 5}}})"
)
# The script types by the first step of an account's path (BIP44, 49, 84, 86).
PURPOSES = {44: "p2pkh", 49: "p2sh-p2wpkh", 84: "p2wpkh", 86: "p2tr"}
_TYPES_OF_BIP48 = {"1": "p2sh-p2wsh", "2": "p2wsh"}
# The first steps of paths of multisig accounts (BIP45, 48, 87).
PURPOSES_OF_SEVERAL = (45, 48, 87)
# The first steps of paths whose second step is the coin type (SLIP-44).
PURPOSES_WITH_COIN = (44, 48, 49, 84, 86, 87)
_NUMBER_AT = 9  # index of the child number's first byte in the 78 bytes (BIP32)
BROKEN_KEY = (
    "a key in it is not complete: a character is wrong or missing; check that all of it was"
    " copied"
)


class WalletKey(NamedTuple):
    """An extended public key from a text.

    - `xpub`: the key with the prefix xpub or tpub.
    - `origin`: the key's origin in normal form, for example "73c5da0a/84'/0'/0'", or
      "".
    - `is_hardened`: True if the key's child number is hardened.
    """

    xpub: str
    version: KeyVersion
    origin: str
    depth: int
    is_hardened: bool

    @property
    def purpose(self) -> int | None:
        """The first step of the origin's path; None if it is unknown or not hardened."""
        return purpose_of(self.origin.partition("/")[2])

    @property
    def expression(self) -> str:
        """The key with its origin in brackets, as in a descriptor, without a path after it."""
        if self.origin:
            return f"[{self.origin}]{self.xpub}"
        return self.xpub


def purpose_of(path: str) -> int | None:
    """Returns the first step of a path: 84 for m/84'/0'/0'. None if it is not hardened."""
    match = re.match(r"(?:m/)?([0-9]{1,3})['hH](?:/|$)", path.strip())
    if match is None:
        return None
    return int(match.group(1))


def script_type_of_path(path: str) -> str | None:
    """Returns the script type of accounts at this path, by BIP44, 48, 49, 84 and 86.

    `path` is in normal form without m/. Returns None if these BIPs do not define it.
    """
    several = re.fullmatch(r"48'/[0-9]+'/[0-9]+'/([12])'", path)
    if several:
        return _TYPES_OF_BIP48[several.group(1)]
    purpose = purpose_of(path)
    if purpose is None:
        return None
    return PURPOSES.get(purpose)


def read_key(text: str, origin: str = "") -> WalletKey:
    """Parses an extended public key of any prefix (SLIP-132), and adds its origin.

    Raises TextRefused if the text is damaged, or is no extended public key.
    """
    try:
        payload = b58check_decode(re.sub(r"\s+", "", text))
        if len(payload) != SERIALIZED_SIZE or payload[:4] not in VERSIONS:
            raise DecodeError("no extended public key")
        key = ExtendedKey.parse(payload)
    except DecodeError:
        raise TextRefused(BROKEN_KEY, TextProblem.DAMAGED) from None
    version = VERSIONS[payload[:4]]
    return WalletKey(
        xpub=as_xpub(payload, version.is_main),
        version=version,
        origin=clean_origin(origin),
        depth=key.depth,
        is_hardened=payload[_NUMBER_AT] >= 0x80,  # numbers from 2**31 on (BIP32)
    )


def clean_origin(origin: str) -> str:
    """Returns the origin in its normal form: `[73C5DA0A/84h/0H/0']` as `73c5da0a/84'/0'/0'`."""
    plain = re.sub(r"[\[\]\s]+", "", origin)
    return re.sub("[hH]", "'", plain).lower()


def origin_of(fingerprint: object, path: object) -> str:
    """Returns the origin of a key from the fingerprint and the path in a file.

    Returns "" if the fingerprint or the path is missing or malformed.
    """
    if not isinstance(fingerprint, str) or not isinstance(path, str):
        return ""
    steps = path.strip().removeprefix("m").removeprefix("M").strip("/")
    origin = f"[{fingerprint.strip()}/{steps}]"
    if not steps:
        origin = f"[{fingerprint.strip()}]"
    if not re.fullmatch(ORIGIN, origin):
        return ""
    return clean_origin(origin)


def find_keys(text: str) -> Iterator[tuple[re.Match[str], WalletKey]]:
    """Yields (match of `KEY`, key) for each extended public key in the text.

    Raises TextRefused if a key is damaged.
    """
    for match in KEY.finditer(text):
        yield match, read_key(match["key"], match["origin"] or "")
