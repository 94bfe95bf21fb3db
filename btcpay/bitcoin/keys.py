"""Extended public keys and the keys below them (BIP32), and how output descriptors write them.

Key expressions are those of BIP380; of several branches (BIP389) the first counts. Nothing here
knows a private key.
"""

import hmac
import re
from dataclasses import dataclass
from functools import cached_property
from typing import Self

from btcpay.bitcoin.address import b58check_decode
from btcpay.bitcoin.secp256k1 import Point
from btcpay.bitcoin.wire import DecodeError

HARDENED = 0x80000000  # BIP32: the first of the indexes that need the private key
SERIALIZED_SIZE = 78


class InvalidChild(ValueError):
    """An index that has no key, or whose key needs the private one."""


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
        if depth == 0 and any(payload[5:13]):
            raise DecodeError(
                "its depth is 0, and yet it has a parent or a child number"
            )
        try:
            point = Point.parse(payload[45:])
        except ValueError:
            raise DecodeError("its public key is no point of the curve") from None
        return cls(point, payload[13:45], depth)

    @cached_property
    def public_key(self) -> bytes:
        """The point, compressed: 33 bytes."""
        return self.point.format()

    def child(self, index: int) -> Self:
        """CKDpub: the key at `index`, from 0 to 2**31 - 1.

        Raises InvalidChild for any other index, and for one that BIP32 says to skip because its
        tweak is no scalar or its point is at infinity (one index in 2**127).
        """
        if not 0 <= index < HARDENED:
            raise InvalidChild(f"index {index} is not from 0 to 2**31 - 1")
        digest = hmac.digest(
            self.chain_code, self.public_key + index.to_bytes(4, "big"), "sha512"
        )
        try:
            point = self.point.add(int.from_bytes(digest[:32], "big"))
        except ValueError:
            raise InvalidChild(
                f"index {index} has no valid key: use the next"
            ) from None
        return type(self)(point, digest[32:], self.depth + 1)


MAX_STEPS = 10
_MAIN_BY_VERSION = {bytes.fromhex("0488b21e"): True, bytes.fromhex("043587cf"): False}
_KEY_AT = 45  # a 0 stands before a private key, whatever the version says (BIP32)
_WIF = (b"\x80", b"\xef")
_STEP = re.compile("[0-9]{1,10}|<[0-9]{1,10}(;[0-9]{1,10})+>")
_ORIGIN = re.compile(r"\[([0-9a-fA-F]{8})((?:/[0-9]{1,10}['h]?)*)\](.*)", re.DOTALL)


class InvalidDescriptor(ValueError):
    """The text is no descriptor of an account; the message says why, and never repeats a key."""


@dataclass(frozen=True)
class KeyExpression:
    """An extended key and the steps from it to the range, with the first of its branches.

    `origin` is the master key's fingerprint and the path from it, as 73c5da0a/84'/0'/0', or empty.
    """

    origin: str
    text: str
    key: ExtendedKey
    is_main: bool
    steps: tuple[int, ...]
    branches: int  # 1 where the path has no <0;1>

    @cached_property
    def chain(self) -> ExtendedKey:
        """The key whose children are the keys of the addresses."""
        node = self.key
        for step in self.steps:
            node = node.child(step)
        return node

    def __str__(self) -> str:
        origin = f"[{self.origin}]" if self.origin else ""
        return f"{origin}{self.text}{''.join(f'/{step}' for step in self.steps)}/*"


def parse_key(text: str) -> KeyExpression:
    """Raises InvalidDescriptor."""
    origin = ""
    if text.startswith("["):
        found = _ORIGIN.fullmatch(text)
        numbers = re.findall("[0-9]+", found[2]) if found else ()
        if not found or any(int(number) >= HARDENED for number in numbers):
            raise InvalidDescriptor("a key's origin looks like [73c5da0a/84h/0h/0h]")
        origin = found[1].lower() + found[2].replace("h", "'")
        text = found[3]
    xpub, *steps = text.split("/")
    key, is_main = _extended(xpub)
    taken, branches = _steps(steps)
    if key.depth + len(taken) + 1 > 255:
        raise InvalidDescriptor("its path is deeper than 255 steps (BIP32)")
    return KeyExpression(origin, xpub, key, is_main, taken, branches)


def is_private(text: str) -> bool:
    """True for an extended private key, whatever its version says, and for a lone one (WIF)."""
    try:
        payload = b58check_decode(text)
    except DecodeError:
        return False
    is_extended = len(payload) == SERIALIZED_SIZE and payload[_KEY_AT] == 0
    return is_extended or (payload[:1] in _WIF and len(payload) in (33, 34))


def _extended(text: str) -> tuple[ExtendedKey, bool]:
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
    if payload[:4] not in _MAIN_BY_VERSION:
        raise InvalidDescriptor("a descriptor's keys begin with xpub or tpub (BIP380)")
    try:
        return ExtendedKey.parse(payload), _MAIN_BY_VERSION[payload[:4]]
    except DecodeError as error:
        raise InvalidDescriptor(f"a key in it is invalid: {error}") from None


def _steps(steps: list[str]) -> tuple[tuple[int, ...], int]:
    """The steps before the range, with the first of the branches; and the number of branches."""
    if re.search("[h']", "".join(steps)):
        raise InvalidDescriptor("a hardened step after a key needs the private key")
    if not steps or steps[-1] != "*":
        raise InvalidDescriptor(
            "its range is missing: each key ends in /0/* or /<0;1>/*"
        )
    found = [[int(n) for n in re.findall("[0-9]+", step)] for step in steps[:-1]]
    for step, numbers in zip(steps, found, strict=False):
        is_known = _STEP.fullmatch(step) and max(numbers) < HARDENED
        if not is_known or len(set(numbers)) < len(numbers):
            raise InvalidDescriptor(
                "a step after a key is a number below 2**31, or branches such as <0;1> (BIP389)"
            )
    several = [len(numbers) for numbers in found if len(numbers) > 1]
    if len(several) > 1 or len(steps) > MAX_STEPS:
        raise InvalidDescriptor("a key has branches once, and at most ten steps")
    return tuple(numbers[0] for numbers in found), max(several, default=1)
