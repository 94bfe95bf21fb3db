"""Output descriptors of wallets: extended public keys and a range of addresses below them.

Source: BIP380 (keys, checksum), 381 (pkh, sh), 382 (wpkh, wsh), 383 (multi, sortedmulti), 386 (tr,
the key path alone) and 389 (the first branch). A descriptor that is no account is refused.
"""

import hashlib
import re
from dataclasses import dataclass

from btcpay.bitcoin.address import BECH32, p2pkh, p2sh, witness_script
from btcpay.bitcoin.keys import (
    ExtendedKey,
    InvalidChild,
    InvalidDescriptor,
    KeyExpression,
    parse_key,
)
from btcpay.bitcoin.secp256k1 import Point
from btcpay.bitcoin.wire import hash160

MAX_CHARS = 8_000  # 20 keys with their origins have 4,000
MOST_KEYS = {
    ("sh",): 15,
    ("wsh",): 20,
    ("sh", "wsh"): 20,
}  # BIP383: a P2SH script has 520 bytes
_MULTI = ("multi", "sortedmulti")
FORMS = {
    *[("pkh",), ("wpkh",), ("sh", "wpkh"), ("tr",)],
    *((*outer, inner) for outer in MOST_KEYS for inner in _MULTI),
}
# The checksum (BIP380): its characters in groups of 32; its symbols are those of Bech32.
_INPUT = (
    "0123456789()[],'/*abcdefgh@:$%{}"
    "IJKLMNOPQRSTUVWXYZ&+-.;<=>?!^_|~"
    'ijklmnopqrstuvwxyzABCDEFGH`#"\\ '
)
_REMAINDERS = [0]  # of the division by the generator, a polynomial over GF(32)
for _generator in (
    0xF5DEE51989,
    0xA9FDCA3312,
    0x1BAB10E32D,
    0x3706B1677A,
    0x644D626FFD,
):
    _REMAINDERS += [each ^ _generator for each in _REMAINDERS]
_CHECKSUM_SYMBOLS = 8


@dataclass(frozen=True)
class Descriptor:
    """`form`: the names around the keys, the outermost first; `threshold` of the keys sign."""

    form: tuple[str, ...]
    threshold: int
    keys: tuple[KeyExpression, ...]

    @property
    def is_multi(self) -> bool:
        return self.form[-1] in _MULTI

    @property
    def is_main(self) -> bool:
        return self.keys[0].is_main

    @property
    def script_type(self) -> str:
        """Such as p2wpkh, p2sh-p2wpkh, p2wsh."""
        return "-".join(f"p2{name}" for name in self.form if name not in _MULTI)

    @property
    def identity(self) -> str:
        """A hash of the keys in any order and form: the same keys may have the same scripts."""
        nodes = sorted(key.chain.chain_code + key.chain.public_key for key in self.keys)
        return hashlib.sha256(b"".join(nodes)).hexdigest()

    def script(self, index: int) -> bytes:
        """The scriptPubKey at `index` of the range. Raises InvalidChild as `ExtendedKey.child`."""
        keys = [key.chain.child(index) for key in self.keys]
        script = self._innermost(keys)
        for name in reversed(self.form[:-1]):
            if name == "sh":
                script = p2sh(hash160(script))
            else:
                script = witness_script(0, hashlib.sha256(script).digest())
        return script

    def _innermost(self, keys: list[ExtendedKey]) -> bytes:
        if self.form[-1] == "pkh":
            return p2pkh(hash160(keys[0].public_key))
        if self.form[-1] == "wpkh":
            return witness_script(0, hash160(keys[0].public_key))
        if self.form[-1] == "tr":
            return witness_script(1, taproot_output_key(keys[0].point))
        points = [key.public_key for key in keys]
        if self.form[-1] == "sortedmulti":
            points.sort()
        pushed = b"".join(b"\x21" + point for point in points)
        return _number(self.threshold) + pushed + _number(len(points)) + b"\xae"

    def __str__(self) -> str:
        """Without the checksum."""
        threshold = [str(self.threshold)] if self.is_multi else []
        inner = ",".join([*threshold, *map(str, self.keys)])
        return f"{'('.join(self.form)}({inner}{')' * len(self.form)}"


def _number(number: int) -> bytes:
    """The bytes that push a number of 1 to 20 in a script."""
    if number <= 16:
        return bytes([0x50 + number])
    return bytes([1, number])


def taproot_output_key(internal: Point) -> bytes:
    """x of the key that a P2TR output shows, for the key path alone (BIP341, BIP86): 32 bytes."""
    x = internal.x.to_bytes(32, "big")
    tag = hashlib.sha256(b"TapTweak").digest()
    tweak = int.from_bytes(hashlib.sha256(tag + tag + x).digest(), "big")
    try:
        return internal.even().add(tweak).x.to_bytes(32, "big")
    except ValueError:
        raise InvalidChild(
            "this index has no valid taproot key: use the next"
        ) from None


def parse(text: str) -> Descriptor:
    """The descriptor, with or without its checksum. Raises InvalidDescriptor."""
    if len(text) > MAX_CHARS:
        raise InvalidDescriptor(f"a descriptor has at most {MAX_CHARS} characters")
    script, mark, _ = text.partition("#")
    if mark and not has_valid_checksum(text):
        raise InvalidDescriptor(
            "its checksum is wrong: check that all of it was copied"
        )
    form, inner = _peeled(script)
    if form not in FORMS:
        raise InvalidDescriptor(_why_not(form))
    threshold = "1"
    keys = [inner]
    if form[-1] in _MULTI:
        threshold, *keys = inner.split(",")
    elif "," in inner:
        raise InvalidDescriptor(
            "a script tree is not supported, only taproot with a single key"
        )
    most = MOST_KEYS.get(form[:-1], 1)
    if len(keys) > most:
        raise InvalidDescriptor(
            f"it has {len(keys)} keys, and such a script at most {most}"
        )
    if not re.fullmatch("[1-9][0-9]?", threshold) or int(threshold) > len(keys):
        raise InvalidDescriptor(
            "the number of keys that must sign is from 1 to the number of keys"
        )
    descriptor = Descriptor(form, int(threshold), tuple(map(parse_key, keys)))
    _require_agreement(descriptor.keys)
    return descriptor


def _peeled(script: str) -> tuple[tuple[str, ...], str]:
    names = []
    while call := re.fullmatch(r"([a-z_:0-9]+)\((.*)\)", script, re.DOTALL):
        names.append(call[1])
        script = call[2]
    return tuple(names), script


def _why_not(form: tuple[str, ...]) -> str:
    if not form:
        return "this is not a descriptor: one begins with wpkh( tr( wsh( sh( or pkh("
    if form[0] == "tr":
        return "taproot is supported with one key alone, as tr(KEY)"
    return (
        f"{'('.join(form)}(...) is not supported: pkh, wpkh, sh(wpkh), tr, and multi or sortedmulti"
        " in wsh, sh(wsh) or sh are; other scripts (miniscript) are not"
    )


def _require_agreement(keys: tuple[KeyExpression, ...]) -> None:
    if len({key.is_main for key in keys}) > 1:
        raise InvalidDescriptor("some keys are of mainnet, others of a test network")
    if len({key.branches for key in keys} - {1}) > 1:
        raise InvalidDescriptor(
            "the keys have different numbers of branches, as <0;1> (BIP389)"
        )
    if len({(key.chain.chain_code, key.chain.public_key) for key in keys}) < len(keys):
        raise InvalidDescriptor(
            "the same key appears twice: one signer would sign for two"
        )


def checksum(script: str) -> str:
    """The eight symbols that follow `#` (BIP380). Raises ValueError for a foreign character."""
    remainder = 1
    for symbol in [*_symbols(script), *[0] * _CHECKSUM_SYMBOLS]:
        remainder = (
            (remainder & 0x7FFFFFFFF) << 5 ^ symbol ^ _REMAINDERS[remainder >> 35]
        )
    remainder ^= 1
    return "".join(BECH32[remainder >> 5 * place & 31] for place in reversed(range(8)))


def _symbols(script: str) -> list[int]:
    """Each character's place in its group of 32; after each third one, its groups as one symbol."""
    places = [_INPUT.index(character) for character in script]
    symbols: list[int] = []
    for start in range(0, len(places), 3):
        three = places[start : start + 3]
        symbols += [place & 31 for place in three]
        groups = 0
        for place in three:
            groups = groups * 3 + (place >> 5)
        symbols.append(groups)
    return symbols


def has_valid_checksum(text: str) -> bool:
    """True where the text behind the first `#` is the checksum of the text before it."""
    script, _, given = text.partition("#")
    try:
        return checksum(script) == given
    except ValueError:
        return False
