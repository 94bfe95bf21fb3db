"""Wallet accounts: their public keys, descriptors and addresses.

Sources: BIP32, BIP44, BIP49, BIP84, BIP86, SLIP-132, BIP380; Bitcoin Core's
descriptors.md.
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

# The maximum length of a range in Bitcoin Core's importdescriptors.
MOST_IN_RANGE = 1_000_000
# The descriptor that is used if only an account key is given, by script type.
_DESCRIPTORS = {
    "p2wpkh": "wpkh({}/0/*)",  # BIP84
    "p2sh-p2wpkh": "sh(wpkh({}/0/*))",  # BIP49
    "p2pkh": "pkh({}/0/*)",  # BIP44
    "p2tr": "tr({}/0/*)",  # BIP86
}
SCRIPT_TYPES = tuple(_DESCRIPTORS)
# The length of an account's scripts in bytes, by its descriptor's outermost function.
_SCRIPT_BYTES = {"wpkh": 22, "sh": 23, "pkh": 25, "tr": 34, "wsh": 34}
# The maximum length of a seed word with its number, in code points. It has up to 16 letters
# with up to four code points each (Korean in NFD).
MAX_WORD = 70
_BETWEEN_WORDS = re.compile(r"[\s,;]+")
_SEED_WORD = re.compile(r"([0-9]{1,2}[.):])?[^\W\d_]{1,16}")


class KeyVersion(NamedTuple):
    """The meaning of an extended public key's version bytes (SLIP-132).

    `is_main` is True for mainnet. `script_type` is None for xpub and tpub, which do not
    define one. These use p2wpkh (BIP84) unless --script says otherwise.
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
# The version bytes that are valid in descriptors (BIP380).
_XPUB = bytes.fromhex("0488b21e")
_TPUB = bytes.fromhex("043587cf")


def parse_account(
    text: str, network: Network, script_type: str | None = None
) -> Descriptor:
    """Parses a descriptor or an extended public key into an account.

    `script_type` is used if the key's prefix does not define one. Raises CommandError,
    whose message never contains the key.
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
    """True if the text looks like a mnemonic (BIP39), numbered or not.

    The language of the words does not matter.
    """
    words = [
        word for word in _BETWEEN_WORDS.split(text.strip()) if not _is_number(word)
    ]
    if not 12 <= len(words) <= 24 or max(map(len, words)) > MAX_WORD:
        return False
    return all(
        _SEED_WORD.fullmatch(unicodedata.normalize("NFC", word)) for word in words
    )


def _is_number(word: str) -> bool:
    """True for the number before a seed word, for example "1", "1." or "1)"."""
    return re.fullmatch(r"[0-9]{1,2}[.):]?", word) is not None


def holds_secret(text: str) -> bool:
    """True if the text looks like seed words, or if a word in it is a private key."""
    if are_seed_words(text):
        return True
    long_words = re.findall(r"\b\w{51,112}\b", text)
    return any(is_private(word) for word in long_words)


@functools.lru_cache(maxsize=1024)
def stored_account(descriptor: str) -> Descriptor:
    """Parses the descriptor, and caches the result. Raises CommandError."""
    try:
        return parse(descriptor)
    except InvalidDescriptor as error:
        raise CommandError(str(error)) from None


def derive(descriptor: str, index: int, network: Network) -> str:
    """Returns the address at `index` of the descriptor.

    Raises InvalidChild if `index` is 2**31 or more. It also does so, with probability
    2**-127, if the derived key is invalid (BIP32).
    """
    return at_index(descriptor, index, network)[1]


def at_index(descriptor: str, index: int, network: Network) -> tuple[bytes, str]:
    """Returns the script and the address at `index`.

    Raises InvalidChild like `derive`.
    """
    script = stored_account(descriptor).script(index)
    return script, address_of(script, network)


def dust_limit_of(script: str) -> int:
    """Returns the dust limit of an invoice's script (in hex), in satoshis.

    Raises BadRow. It is the minimum amount that nodes relay to such a script.
    """
    script_bytes = len(script) // 2
    if script_bytes not in DUST_LIMITS_SATS:
        raise BadRow(f"{script!r} is no script of ours")
    return DUST_LIMITS_SATS[script_bytes]


def dust_limit_of_account(descriptor: str) -> int:
    """Returns the dust limit of the account's addresses, in satoshis.

    Raises CommandError.
    """
    outermost = stored_account(descriptor).form[0]
    return DUST_LIMITS_SATS[_SCRIPT_BYTES[outermost]]


def import_request(merchant: Merchant, indexes: range) -> Row:
    """Returns a request for Bitcoin Core's importdescriptors, to watch the addresses.

    The node does not give out these addresses itself (`active` is False). `timestamp`
    is the merchant's creation in unix seconds; no address was paid before.
    """
    account = str(stored_account(merchant.descriptor))
    return {
        "desc": f"{account}#{checksum(account)}",
        "active": False,
        "range": [indexes[0], indexes[-1]],
        "timestamp": merchant.created_ms // 1000,
        "internal": False,
    }
