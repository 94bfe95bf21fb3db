"""Parses output descriptors of wallets, and derives their scriptPubKeys.

Source: BIP380 (keys, checksum), 381 (pkh, sh), 382 (wpkh, wsh), 383 (multi,
sortedmulti), 386 (tr, only the key path) and 389 (only the first branch). Each key must
be an extended public key with a range (`/*`). Other descriptors are rejected.
"""

import hashlib
import re
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import chain, takewhile

from btcpay.bitcoin.address import p2pkh, p2sh, witness_script
from btcpay.bitcoin.descriptor_checksum import has_valid_checksum
from btcpay.bitcoin.extended_key import ExtendedKey
from btcpay.bitcoin.keys import InvalidDescriptor, KeyExpression, parse_key
from btcpay.bitcoin.output_scripts import multisig_script, taproot_output_key
from btcpay.bitcoin.wire import hash160

MAX_CHARS = 8_000  # a descriptor with 20 keys and origins has about 4,000
# The maximum number of keys by the functions around `multi`. P2SH limits a script to 520 bytes, and
# so to 15 keys (BIP383).
MAX_KEYS = {("sh",): 15, ("wsh",): 20, ("sh", "wsh"): 20}
_MULTI = ("multi", "sortedmulti")
FORMS = {
    ("pkh",),
    ("wpkh",),
    ("sh", "wpkh"),
    ("tr",),
    *((*outer, multi) for outer in MAX_KEYS for multi in _MULTI),
}
_FUNCTIONS = frozenset(chain.from_iterable(FORMS))


class UnsupportedDescriptor(InvalidDescriptor):
    """The descriptor has functions that are not supported here."""


@dataclass(frozen=True)
class Descriptor:
    """A parsed output descriptor.

    `form`: the names of its functions, the outermost first, e.g. ("sh", "wpkh").
    `threshold`: the number of `keys` that must sign.
    """

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
        """The script type, e.g. p2wpkh, p2sh-p2wpkh or p2wsh."""
        return "-".join(f"p2{name}" for name in self.form if name not in _MULTI)

    @property
    def identity(self) -> str:
        """A SHA-256 (hex) of the extended keys whose children the account uses.

        The hash depends neither on the order of the keys nor on `form`. Two accounts
        with different identities never share an address. Two accounts with the same
        identity may share addresses, so no two merchants may have them.
        """
        parents = [key.chain for key in self.keys]
        serialized = sorted(key.chain_code + key.public_key for key in parents)
        return hashlib.sha256(b"".join(serialized)).hexdigest()

    def script(self, index: int) -> bytes:
        """Returns the scriptPubKey at `index` of the range.

        Raises InvalidChild if the index is out of range, or has no valid key.
        """
        return self._script_of([key.chain.child(index) for key in self.keys])

    def scripts(self, indexes: Sequence[int]) -> list[bytes]:
        """Returns the scriptPubKey at each index, faster than a call of `script` for each.

        Raises InvalidChild if an index is out of range, or has no valid key.
        """
        children_by_key = [key.chain.children(indexes) for key in self.keys]
        keys_by_index = zip(*children_by_key, strict=True)
        return [self._script_of(keys) for keys in keys_by_index]

    def _script_of(self, keys: Sequence[ExtendedKey]) -> bytes:
        """Returns the scriptPubKey for these keys, the children at one index."""
        script = self._innermost_script(keys)
        for name in reversed(self.form[:-1]):
            if name == "sh":
                script = p2sh(hash160(script))
            else:  # wsh
                script = witness_script(0, hashlib.sha256(script).digest())
        return script

    def _innermost_script(self, keys: Sequence[ExtendedKey]) -> bytes:
        name = self.form[-1]
        if name == "pkh":
            return p2pkh(hash160(keys[0].public_key))
        if name == "wpkh":
            return witness_script(0, hash160(keys[0].public_key))
        if name == "tr":
            return witness_script(1, taproot_output_key(keys[0].point))
        public_keys = [key.public_key for key in keys]
        if name == "sortedmulti":
            public_keys.sort()
        return multisig_script(self.threshold, public_keys)

    def __str__(self) -> str:
        """Returns the descriptor without its checksum."""
        arguments = [str(key) for key in self.keys]
        if self.is_multi:
            arguments.insert(0, str(self.threshold))
        opening = "".join(f"{name}(" for name in self.form)
        closing = ")" * len(self.form)
        return opening + ",".join(arguments) + closing


def parse(text: str) -> Descriptor:
    """Parses a descriptor. Verifies its checksum if it has one.

    Raises UnsupportedDescriptor if the descriptor is not supported, and
    InvalidDescriptor if the text is invalid. The message gives the reason.
    """
    if len(text) > MAX_CHARS:
        raise InvalidDescriptor(f"a descriptor has at most {MAX_CHARS} characters")
    script, mark, _ = text.partition("#")
    if mark and not has_valid_checksum(text):
        raise InvalidDescriptor(
            "its checksum is wrong: check that all of it was copied"
        )
    form, arguments = _split_form(script)
    if form not in FORMS:
        raise UnsupportedDescriptor(_refusal_reason(form))
    threshold, keys = _split_arguments(form, arguments)
    expressions = tuple(map(parse_key, keys))
    _require_agreement(expressions)
    return Descriptor(form, threshold, expressions)


def _split_form(script: str) -> tuple[tuple[str, ...], str]:
    """Returns the names of the functions, and the arguments of the innermost one.

    The outermost name is the first.
    """
    names: list[str] = []
    arguments = script
    while call := re.fullmatch(r"([a-z_:0-9]+)\((.*)\)", arguments, re.DOTALL):
        name, arguments = call.groups()
        names.append(name)
    return tuple(names), arguments


def _split_arguments(form: tuple[str, ...], arguments: str) -> tuple[int, list[str]]:
    """Returns the threshold, and the texts of the keys.

    Raises InvalidDescriptor if one of the two numbers is invalid, and
    UnsupportedDescriptor if there is a script tree (BIP386).
    """
    threshold = "1"
    keys = [arguments]
    if form[-1] in _MULTI:
        threshold, *keys = arguments.split(",")
    elif "," in arguments:
        raise UnsupportedDescriptor(
            "a script tree is not supported, only taproot with a single key"
        )
    max_keys = MAX_KEYS.get(form[:-1], 1)
    if len(keys) > max_keys:
        raise InvalidDescriptor(
            f"it has {len(keys)} keys, and such a script at most {max_keys}"
        )
    is_number = re.fullmatch("[1-9][0-9]?", threshold)
    if not is_number or int(threshold) > len(keys):
        raise InvalidDescriptor(
            "the number of keys that must sign is from 1 to the number of keys"
        )
    return int(threshold), keys


def _refusal_reason(form: tuple[str, ...]) -> str:
    """Returns the reason why a descriptor with these functions is not supported.

    The text repeats only known names, since another one could be a part of a secret.
    """
    if not form:
        return "this is not a descriptor: one begins with wpkh( tr( wsh( sh( or pkh("
    if form[0] == "tr":
        return "taproot is supported with one key alone, as tr(KEY)"
    known_names = list(takewhile(lambda name: name in _FUNCTIONS, form))
    script = "this"
    if known_names:
        script = "(".join(known_names) + "(...)"
    return (
        f"{script} is not supported: pkh, wpkh, sh(wpkh), tr, and multi or sortedmulti"
        " in wsh, sh(wsh) or sh are; other scripts (miniscript) are not"
    )


def _require_agreement(keys: tuple[KeyExpression, ...]) -> None:
    """Raises InvalidDescriptor if the keys do not fit together.

    No key may appear twice, and all must be for the same network. Keys with branches
    must have the same number of branches.
    """
    if len({key.is_main for key in keys}) > 1:
        raise InvalidDescriptor("some keys are of mainnet, others of a test network")
    branch_counts = {key.branches for key in keys if key.branches > 1}
    if len(branch_counts) > 1:
        raise InvalidDescriptor(
            "the keys have different numbers of branches, as <0;1> (BIP389)"
        )
    different_keys = {(key.chain.chain_code, key.chain.public_key) for key in keys}
    if len(different_keys) < len(keys):
        raise InvalidDescriptor(
            "the same key appears twice: one signer would sign for two"
        )
