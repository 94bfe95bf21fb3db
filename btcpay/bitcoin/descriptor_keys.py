"""The keys in output descriptors (BIP380); of several branches (BIP389) the first."""

import re
from dataclasses import dataclass
from functools import cached_property

from btcpay.bitcoin.address import b58check_decode
from btcpay.bitcoin.hd import HARDENED, SERIALIZED_SIZE, ExtendedKey
from btcpay.bitcoin.wire import Malformed

MAX_STEPS = 10
_MAIN_BY_VERSION = {bytes.fromhex("0488b21e"): True, bytes.fromhex("043587cf"): False}
_KEY_AT = 45  # in an extended key: 00 before a private one, whatever the version says (BIP32)
_WIF = (b"\x80", b"\xef")
_STEP = re.compile("[0-9]{1,10}|<[0-9]{1,10}(;[0-9]{1,10})+>")
_ORIGIN = re.compile(r"\[([0-9a-fA-F]{8})((?:/[0-9]{1,10}['h]?)*)\](.*)", re.DOTALL)


class DescriptorRefused(ValueError):
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
    """Raises DescriptorRefused."""
    origin = ""
    if text.startswith("["):
        found = _ORIGIN.fullmatch(text)
        numbers = re.findall("[0-9]+", found[2]) if found else ()
        if not found or any(int(number) >= HARDENED for number in numbers):
            raise DescriptorRefused("a key's origin looks like [73c5da0a/84h/0h/0h]")
        origin, text = found[1].lower() + found[2].replace("h", "'"), found[3]
    xpub, *steps = text.split("/")
    key, is_main = _extended(xpub)
    taken, branches = _steps(steps)
    if key.depth + len(taken) + 1 > 255:
        raise DescriptorRefused("its path is deeper than 255 steps (BIP32)")
    return KeyExpression(origin, xpub, key, is_main, taken, branches)


def _extended(text: str) -> tuple[ExtendedKey, bool]:
    if re.fullmatch("[0-9a-fA-F]{64,130}", text):
        raise DescriptorRefused("a single public key has one address: give an extended one, xpub")
    try:
        payload = b58check_decode(text)
    except Malformed:
        raise DescriptorRefused("a key in it is not an xpub or tpub: copy all of it") from None
    is_private = len(payload) == SERIALIZED_SIZE and payload[_KEY_AT] == 0
    if is_private or (payload[:1] in _WIF and len(payload) in (33, 34)):
        raise DescriptorRefused(
            "it holds a private key: never give one to a server; export the PUBLIC descriptor, and"
            " treat this key as seen by others"
        )
    if payload[:4] not in _MAIN_BY_VERSION:
        raise DescriptorRefused("a descriptor's keys begin with xpub or tpub (BIP380)")
    try:
        return ExtendedKey.parse(payload), _MAIN_BY_VERSION[payload[:4]]
    except Malformed as error:
        raise DescriptorRefused(f"a key in it is invalid: {error}") from None


def _steps(steps: list[str]) -> tuple[tuple[int, ...], int]:
    """The steps before the range, with the first of the branches; and the number of branches."""
    if re.search("[h']", "".join(steps)):
        raise DescriptorRefused("a hardened step after a key needs the private key")
    if not steps or steps[-1] != "*":
        raise DescriptorRefused("its range is missing: each key ends in /0/* or /<0;1>/*")
    found = [[int(n) for n in re.findall("[0-9]+", step)] for step in steps[:-1]]
    for step, numbers in zip(steps, found, strict=False):
        is_known = _STEP.fullmatch(step) and max(numbers) < HARDENED
        if not is_known or len(set(numbers)) < len(numbers):
            raise DescriptorRefused(
                "a step after a key is a number below 2**31, or branches such as <0;1> (BIP389)"
            )
    several = [len(numbers) for numbers in found if len(numbers) > 1]
    if len(several) > 1 or len(steps) > MAX_STEPS:
        raise DescriptorRefused("a key has branches once, and at most ten steps")
    return tuple(numbers[0] for numbers in found), max(several, default=1)
