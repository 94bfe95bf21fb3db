"""Extended public keys (BIP32), and how output descriptors write them (BIP380).

If a key expression has several branches (BIP389), only the first counts. Nothing here knows a
private key.
"""

import hmac
import re
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Self

from btcpay.bitcoin.address import b58check_decode
from btcpay.bitcoin.secp256k1 import Point
from btcpay.bitcoin.wire import DecodeError

HARDENED = 0x80000000  # BIP32: the first of the indexes that need the private key
SERIALIZED_SIZE = 78
MAX_DEPTH = 255
MAX_STEPS = 10
_IS_MAIN_BY_VERSION = {
    bytes.fromhex("0488b21e"): True,
    bytes.fromhex("043587cf"): False,
}
# Where the key begins among the 78 bytes. A private key has a 0 there, whatever the version says.
_KEY_AT = 45
_WIF_VERSIONS = (b"\x80", b"\xef")
_STEP = re.compile("[0-9]{1,10}|<[0-9]{1,10}(;[0-9]{1,10})+>")
_ORIGIN = re.compile(r"\[([0-9a-fA-F]{8})((?:/[0-9]{1,10}['h]?)*)\](.*)", re.DOTALL)


class InvalidChild(ValueError):
    """An index that has no key, or whose key needs the private one."""


class InvalidDescriptor(ValueError):
    """The text is no descriptor of an account; the message says why, and never repeats a key."""


@dataclass(frozen=True)
class ExtendedKey:
    """A point and its chain code; `depth` is the number of steps from the master key."""

    point: Point
    chain_code: bytes
    depth: int = 0

    @classmethod
    def parse(cls, payload: bytes) -> Self:
        """From BIP32's 78 bytes: version 4, depth 1, parent 4, number 4, chain code 32, key 33.

        The caller judges the version. Raises DecodeError for a key that BIP32 calls invalid.
        """
        if len(payload) != SERIALIZED_SIZE:
            raise DecodeError(f"it has {len(payload)} bytes, not {SERIALIZED_SIZE}")
        depth = payload[4]
        parent_and_number = payload[5:13]
        if depth == 0 and any(parent_and_number):
            raise DecodeError(
                "its depth is 0, and yet it has a parent or a child number"
            )
        try:
            point = Point.parse(payload[_KEY_AT:])
        except ValueError:
            raise DecodeError("its public key is no point of the curve") from None
        return cls(point, payload[13:_KEY_AT], depth)

    @cached_property
    def public_key(self) -> bytes:
        """The point, compressed: 33 bytes."""
        return self.point.format()

    def child(self, index: int) -> Self:
        """BIP32's CKDpub: the key at `index`, from 0 to 2**31 - 1.

        Raises InvalidChild for any other index. Also for one that BIP32 says to skip, as its tweak
        is no scalar or its point is at infinity (one index in 2**127).
        """
        if not 0 <= index < HARDENED:
            raise InvalidChild(f"index {index} is not from 0 to 2**31 - 1")
        data = self.public_key + index.to_bytes(4, "big")
        digest = hmac.digest(self.chain_code, data, "sha512")
        tweak = int.from_bytes(digest[:32], "big")
        try:
            point = self.point.add(tweak)
        except ValueError:
            raise InvalidChild(
                f"index {index} has no valid key: use the next"
            ) from None
        return type(self)(point, digest[32:], self.depth + 1)


@dataclass(frozen=True)
class KeyExpression:
    """An extended key, and the steps from it to the range (of the first branch).

    `origin` is the master key's fingerprint and the path from it, as 73c5da0a/84'/0'/0', or empty.
    `branches` is the number of branches, 1 for a path without <0;1>.
    """

    origin: str
    text: str
    key: ExtendedKey
    is_main: bool
    steps: tuple[int, ...]
    branches: int

    @cached_property
    def chain(self) -> ExtendedKey:
        """The key whose children are the keys of the addresses."""
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
    """The key expression. Raises InvalidDescriptor."""
    origin = ""
    if text.startswith("["):
        origin, text = _split_origin(text)
    xpub, *path = text.split("/")
    key, is_main = _parse_extended_key(xpub)
    branches_by_step = _parse_path(path)
    steps = tuple(branches[0] for branches in branches_by_step)
    if key.depth + len(steps) + 1 > MAX_DEPTH:
        raise InvalidDescriptor("its path is deeper than 255 steps (BIP32)")
    branches = max(map(len, branches_by_step), default=1)
    return KeyExpression(origin, xpub, key, is_main, steps, branches)


def is_private(text: str) -> bool:
    """True for an extended private key, whatever its version, and for a single one (WIF)."""
    try:
        payload = b58check_decode(text)
    except DecodeError:
        return False
    if len(payload) == SERIALIZED_SIZE:
        return payload[_KEY_AT] == 0
    return payload[:1] in _WIF_VERSIONS and len(payload) in (33, 34)


def _split_origin(text: str) -> tuple[str, str]:
    """The origin as `KeyExpression` writes it, and the text behind it."""
    match = _ORIGIN.fullmatch(text)
    if not match:
        raise InvalidDescriptor("a key's origin looks like [73c5da0a/84h/0h/0h]")
    fingerprint, path, rest = match.groups()
    if any(int(number) >= HARDENED for number in re.findall("[0-9]+", path)):
        raise InvalidDescriptor("a key's origin looks like [73c5da0a/84h/0h/0h]")
    return fingerprint.lower() + path.replace("h", "'"), rest


def _parse_extended_key(text: str) -> tuple[ExtendedKey, bool]:
    """The key, and whether it is for mainnet."""
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
    """The steps before the range, each with its branches; one of them at most has several."""
    if re.search("[h']", "".join(path)):
        raise InvalidDescriptor("a hardened step after a key needs the private key")
    if not path or path[-1] != "*":
        raise InvalidDescriptor(
            "its range is missing: each key ends in /0/* or /<0;1>/*"
        )
    steps = [_parse_step(text) for text in path[:-1]]
    branching_steps = [branches for branches in steps if len(branches) > 1]
    if len(branching_steps) > 1 or len(path) > MAX_STEPS:
        raise InvalidDescriptor("a key has branches once, and at most ten steps")
    return steps


def _parse_step(text: str) -> list[int]:
    """The index of each branch; of most steps there is one."""
    indexes = [int(number) for number in re.findall("[0-9]+", text)]
    is_valid = bool(_STEP.fullmatch(text)) and max(indexes) < HARDENED
    is_unique = len(set(indexes)) == len(indexes)
    if not is_valid or not is_unique:
        raise InvalidDescriptor(
            "a step after a key is a number below 2**31, or branches such as <0;1> (BIP389)"
        )
    return indexes
