"""Key expressions of output descriptors (BIP380).

If a key expression has several branches (BIP389), only the first is used. Private keys
are rejected.
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

from btcpay.bitcoin.base58 import b58check_decode
from btcpay.bitcoin.extended_key import HARDENED, KEY_AT, SERIALIZED_SIZE, ExtendedKey
from btcpay.bitcoin.wire import DecodeError

MAX_DEPTH = 255
MAX_STEPS = 10
_IS_MAIN_BY_VERSION = {
    bytes.fromhex("0488b21e"): True,
    bytes.fromhex("043587cf"): False,
}
_WIF_VERSIONS = (b"\x80", b"\xef")
# A version byte and the key; a key whose public key is compressed has a byte more.
_WIF_SIZES = (33, 34)
_STEP = re.compile("[0-9]{1,10}|<[0-9]{1,10}(;[0-9]{1,10})+>")
_ORIGIN = re.compile(r"\[([0-9a-fA-F]{8})((?:/[0-9]{1,10}['h]?)*)\](.*)", re.DOTALL)


class InvalidDescriptor(ValueError):
    """The text is not a supported descriptor.

    The message gives the reason, and never contains a key.
    """


@dataclass(frozen=True)
class KeyExpression:
    """An extended key with its origin and its derivation path (BIP380).

    `origin`: the fingerprint of the master key and the path from it, e.g.
    73c5da0a/84'/0'/0', or "".
    `text`: the extended key in Base58Check.
    `is_main`: True if the key is for mainnet.
    `steps`: the path from `key` to the range (`/*`), in the first branch.
    `branches`: the number of branches (BIP389); 1 if the path has no <0;1>.
    """

    origin: str
    text: str
    key: ExtendedKey
    is_main: bool
    steps: tuple[int, ...]
    branches: int

    @cached_property
    def chain(self) -> ExtendedKey:
        """The extended key at the end of `steps`. Each address has one of its children."""
        key = self.key
        for step in self.steps:
            key = key.child(step)
        return key

    def __str__(self) -> str:
        path = "".join(f"/{step}" for step in self.steps)
        if self.origin:
            return f"[{self.origin}]{self.text}{path}/*"
        return f"{self.text}{path}/*"


def parse_key(text: str) -> KeyExpression:
    """Parses a key expression.

    Raises InvalidDescriptor if it is invalid, has a private key, or is not supported.
    """
    origin = ""
    if text.startswith("["):
        origin, text = _split_origin(text)
    xpub, *path = text.split("/")
    key, is_main = _parse_extended_key(xpub)
    indexes_by_step = _parse_path(path)
    steps = tuple(indexes[0] for indexes in indexes_by_step)
    if key.depth + len(steps) + 1 > MAX_DEPTH:
        raise InvalidDescriptor("its path is deeper than 255 steps (BIP32)")
    return KeyExpression(
        origin=origin,
        text=xpub,
        key=key,
        is_main=is_main,
        steps=steps,
        branches=max(map(len, indexes_by_step), default=1),
    )


def is_private(text: str) -> bool:
    """True if the text is an extended private key of any version, or a WIF key."""
    try:
        payload = b58check_decode(text)
    except DecodeError:
        return False
    if len(payload) == SERIALIZED_SIZE:
        # BIP32 puts a zero byte before the 32 bytes of a private key.
        return payload[KEY_AT] == 0
    return payload[:1] in _WIF_VERSIONS and len(payload) in _WIF_SIZES


def is_public(text: str) -> bool:
    """True if the text is an extended public key of any version."""
    try:
        payload = b58check_decode(text)
    except DecodeError:
        return False
    return len(payload) == SERIALIZED_SIZE and payload[KEY_AT] in (2, 3)


def _split_origin(text: str) -> tuple[str, str]:
    """Splits `[origin]rest` into the origin and the rest.

    The origin is returned in lower case, with `'` for hardened steps instead of `h`.
    Raises InvalidDescriptor if it is malformed.
    """
    match = _ORIGIN.fullmatch(text)
    if not match:
        raise InvalidDescriptor("a key's origin looks like [73c5da0a/84h/0h/0h]")
    fingerprint, path, rest = match.groups()
    if any(int(number) >= HARDENED for number in re.findall("[0-9]+", path)):
        raise InvalidDescriptor("a key's origin looks like [73c5da0a/84h/0h/0h]")
    return fingerprint.lower() + path.replace("h", "'"), rest


def _parse_extended_key(text: str) -> tuple[ExtendedKey, bool]:
    """Returns the extended key, and True if it is for mainnet.

    Raises InvalidDescriptor.
    """
    if re.fullmatch("[0-9a-fA-F]{64,130}", text):
        raise InvalidDescriptor(
            "a single public key has one address: give an extended one, xpub"
        )
    try:
        payload = b58check_decode(text)
    except DecodeError:
        raise InvalidDescriptor(
            "a key in it is not an xpub or tpub: copy all of it"
        ) from None
    if is_private(text):
        raise InvalidDescriptor(
            "it holds a private key: never give one to a server; export the PUBLIC descriptor, and"
            " treat this key as seen by others"
        )
    version = payload[:4]
    if version not in _IS_MAIN_BY_VERSION:
        raise InvalidDescriptor("a descriptor's keys begin with xpub or tpub (BIP380)")
    try:
        key = ExtendedKey.parse(payload)
    except DecodeError as error:
        raise InvalidDescriptor(f"a key in it is invalid: {error}") from None
    return key, _IS_MAIN_BY_VERSION[version]


def _parse_path(path: Sequence[str]) -> list[list[int]]:
    """Returns the indexes of each step before the range (`*`).

    A step with branches has several indexes, one for each branch; at most one step has
    branches. Raises InvalidDescriptor.
    """
    if re.search("[h']", "".join(path)):
        raise InvalidDescriptor("a hardened step after a key needs the private key")
    if not path or path[-1] != "*":
        raise InvalidDescriptor(
            "its range is missing: each key ends in /0/* or /<0;1>/*"
        )
    steps = [_parse_step(text) for text in path[:-1]]
    branching_steps = [indexes for indexes in steps if len(indexes) > 1]
    if len(branching_steps) > 1 or len(path) > MAX_STEPS:
        raise InvalidDescriptor("a key has branches once, and at most ten steps")
    return steps


def _parse_step(text: str) -> list[int]:
    """Returns the indexes of a step: one for each branch, one if it has no branches.

    Raises InvalidDescriptor.
    """
    indexes = [int(number) for number in re.findall("[0-9]+", text)]
    is_valid = bool(_STEP.fullmatch(text)) and max(indexes) < HARDENED
    has_duplicates = len(set(indexes)) < len(indexes)
    if not is_valid or has_duplicates:
        raise InvalidDescriptor(
            "a step after a key is a number below 2**31, or branches such as <0;1> (BIP389)"
        )
    return indexes
