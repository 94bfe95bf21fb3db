"""Accounts of wallets: their keys, the addresses below them, and their descriptors.

Source: BIP32, BIP44, BIP49, BIP84, BIP86, SLIP-132, BIP380; Bitcoin Core's descriptors.md.
"""

import functools
import re
import unicodedata
from typing import NamedTuple

from btcpay.bitcoin.address import (
    DUST_LIMITS_SATS,
    address_of,
    b58check_decode,
    b58check_encode,
)
from btcpay.bitcoin.descriptor import Descriptor, parse
from btcpay.bitcoin.descriptor_checksum import checksum
from btcpay.bitcoin.keys import (
    SERIALIZED_SIZE,
    ExtendedKey,
    InvalidDescriptor,
    is_private,
)
from btcpay.bitcoin.wire import DecodeError
from btcpay.values.errors import BadRow, CommandError
from btcpay.values.networks import Network
from storage.database import Row
from storage.models import Merchant

# Bitcoin Core refuses a longer range.
MOST_IN_RANGE = 1_000_000
# The account's descriptor if only its key is given, by the type of its scripts.
_DESCRIPTORS = {
    "p2wpkh": "wpkh({}/0/*)",  # BIP84
    "p2sh-p2wpkh": "sh(wpkh({}/0/*))",  # BIP49
    "p2pkh": "pkh({}/0/*)",  # BIP44
    "p2tr": "tr({}/0/*)",  # BIP86
}
SCRIPT_TYPES = tuple(_DESCRIPTORS)
# The length of an account's scripts, by the outermost name of its descriptor.
_SCRIPT_BYTES = {"wpkh": 22, "sh": 23, "pkh": 25, "tr": 34, "wsh": 34}
# Code points of a seed word with its number: 16 letters, each with up to four (Korean in NFD).
MAX_WORD = 70
_BETWEEN_WORDS = re.compile(r"[\s,;]+")
_SEED_WORD = re.compile(r"([0-9]{1,2}[.):])?[^\W\d_]{1,16}")


class KeyVersion(NamedTuple):
    """The meaning of an extended public key's version bytes (SLIP-132).

    `script_type` is None for xpub and tpub, which name none: BIP84 holds unless --script says
    otherwise.
    """

    is_main: bool
    script_type: str | None
    prefix: str


_PUBLIC_VERSIONS = {
    bytes.fromhex("0488b21e"): KeyVersion(True, None, "xpub"),
    bytes.fromhex("049d7cb2"): KeyVersion(True, "p2sh-p2wpkh", "ypub"),
    bytes.fromhex("04b24746"): KeyVersion(True, "p2wpkh", "zpub"),
    bytes.fromhex("043587cf"): KeyVersion(False, None, "tpub"),
    bytes.fromhex("044a5262"): KeyVersion(False, "p2sh-p2wpkh", "upub"),
    bytes.fromhex("045f1cf6"): KeyVersion(False, "p2wpkh", "vpub"),
}
# The versions that descriptors know (BIP380).
_XPUB = bytes.fromhex("0488b21e")
_TPUB = bytes.fromhex("043587cf")


def parse_account(
    text: str, network: Network, script_type: str | None = None
) -> Descriptor:
    """The account that a descriptor or an extended public key names.

    `script_type`: the kind of addresses if the key's prefix names none. Raises CommandError, whose
    message never repeats the key.
    """
    if are_seed_words(text):
        raise CommandError(
            "these look like the seed words of a wallet. This machine has now been shown them, and"
            " its shell keeps what is typed: whoever reads them can take the money. Make a new"
            " wallet, move all money there, and give the PUBLIC key of one of its accounts instead"
        )
    if "(" not in text:
        return stored_account(_descriptor_of(text, network, script_type))
    if script_type:
        raise CommandError(
            "a descriptor says its own kind of addresses: leave out --script"
        )
    account = stored_account(text)
    if account.is_main != network.main_keys:
        raise CommandError(
            f"its keys are for {_network_kind(account.is_main)},"
            f" but BLOCKTILL_NETWORK is {network.name}"
        )
    return account


def _network_kind(is_main: bool) -> str:
    if is_main:
        return "mainnet"
    return "a test network"


def _descriptor_of(text: str, network: Network, script_type: str | None) -> str:
    if is_private(text):
        raise CommandError(
            "this is a private key: never give it to a server; export the account's PUBLIC key"
            " (xpub, zpub, ypub, tpub, vpub or upub) and treat this one as seen by others"
        )
    try:
        payload = b58check_decode(text)
    except DecodeError:
        payload = b""
    if len(payload) != SERIALIZED_SIZE:
        raise CommandError(
            "this is not an extended key: check that all of it was copied"
        )
    if payload[:4] not in _PUBLIC_VERSIONS:
        raise CommandError("this is not an xpub, ypub, zpub, tpub, upub or vpub")
    version = _PUBLIC_VERSIONS[payload[:4]]
    if version.is_main != network.main_keys:
        raise CommandError(
            f"this {version.prefix} is for {_network_kind(version.is_main)},"
            f" but BLOCKTILL_NETWORK is {network.name}"
        )
    if version.script_type and script_type and version.script_type != script_type:
        raise CommandError(
            f"a {version.prefix} means {version.script_type},"
            f" but --script says {script_type}"
        )
    try:
        ExtendedKey.parse(payload)
    except DecodeError as error:
        raise CommandError(f"this extended key is invalid: {error}") from None
    version_bytes = _TPUB
    if version.is_main:
        version_bytes = _XPUB
    key = b58check_encode(version_bytes + payload[4:])
    descriptor = _DESCRIPTORS[script_type or version.script_type or "p2wpkh"]
    return descriptor.format(key)


def are_seed_words(text: str) -> bool:
    """True for a text like a wallet's mnemonic (BIP39), numbered or not, in any language."""
    words = [
        word for word in _BETWEEN_WORDS.split(text.strip()) if not _is_number(word)
    ]
    if not 12 <= len(words) <= 24 or max(map(len, words)) > MAX_WORD:
        return False
    return all(
        _SEED_WORD.fullmatch(unicodedata.normalize("NFC", word)) for word in words
    )


def _is_number(word: str) -> bool:
    """True for the number before a seed word, as in "1", "1." and "1)"."""
    return re.fullmatch(r"[0-9]{1,2}[.):]?", word) is not None


def holds_secret(text: str) -> bool:
    """True if the text looks like seed words, or if any word of it is a private key."""
    if are_seed_words(text):
        return True
    long_words = re.findall(r"\b\w{51,112}\b", text)
    return any(is_private(word) for word in long_words)


@functools.lru_cache(maxsize=1024)
def stored_account(descriptor: str) -> Descriptor:
    """The parsed descriptor; each is parsed once for each process. Raises CommandError."""
    try:
        return parse(descriptor)
    except InvalidDescriptor as error:
        raise CommandError(str(error)) from None


def derive(descriptor: str, index: int, network: Network) -> str:
    """The address at `index` of the descriptor's range.

    Raises InvalidChild for an index of 2**31 and more, and for the one in 2**127 that has no key.
    """
    return at_index(descriptor, index, network)[1]


def at_index(descriptor: str, index: int, network: Network) -> tuple[bytes, str]:
    """The script and the address there. Raises InvalidChild, as `derive` does."""
    script = stored_account(descriptor).script(index)
    return script, address_of(script, network)


def dust_limit_of(script: str) -> int:
    """The least that can be sent to an invoice's script, which is in hex. Raises BadRow."""
    script_bytes = len(script) // 2
    if script_bytes not in DUST_LIMITS_SATS:
        raise BadRow(f"{script!r} is no script of ours")
    return DUST_LIMITS_SATS[script_bytes]


def dust_limit_of_account(descriptor: str) -> int:
    """The least that can be sent to any address of the account. Raises CommandError."""
    outermost = stored_account(descriptor).form[0]
    return DUST_LIMITS_SATS[_SCRIPT_BYTES[outermost]]


def import_request(merchant: Merchant, indexes: range) -> Row:
    """One request of Bitcoin Core's importdescriptors: addresses to watch, none to hand out.

    No address was paid before `timestamp`, in unix seconds, when the merchant was added.
    """
    account = str(stored_account(merchant.descriptor))
    return {
        "desc": f"{account}#{checksum(account)}",
        "active": False,
        "range": [indexes[0], indexes[-1]],
        "timestamp": merchant.created_ms // 1000,
        "internal": False,
    }
