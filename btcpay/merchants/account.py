"""Accounts of wallets: their keys, the addresses below them, and their descriptors.

Source: BIP32, BIP44, BIP49, BIP84, BIP86, SLIP-132, BIP380; Bitcoin Core's descriptors.md.
"""

import functools
import re
import unicodedata

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

MOST_IN_RANGE = 1_000_000  # Bitcoin Core refuses a longer range
# The descriptor of an account whose key alone is given.
_FORMS = {
    "p2wpkh": "wpkh({}/0/*)",  # BIP84
    "p2sh-p2wpkh": "sh(wpkh({}/0/*))",  # BIP49
    "p2pkh": "pkh({}/0/*)",  # BIP44
    "p2tr": "tr({}/0/*)",  # BIP86
}
SCRIPT_TYPES = tuple(_FORMS)
# The length of an account's scripts, by the outermost name of its descriptor.
_SCRIPT_BYTES = {"wpkh": 22, "sh": 23, "pkh": 25, "tr": 34, "wsh": 34}
# Code points of a seed word with its number: 16 letters, each of up to four parts (Korean, NFD).
MAX_WORD = 70

# SLIP-132 version bytes: (main network?, the script type that the prefix promises, prefix).
# xpub and tpub promise none, so BIP84 holds unless --script says otherwise.
_PUBLIC_VERSIONS = {
    bytes.fromhex("0488b21e"): (True, None, "xpub"),
    bytes.fromhex("049d7cb2"): (True, "p2sh-p2wpkh", "ypub"),
    bytes.fromhex("04b24746"): (True, "p2wpkh", "zpub"),
    bytes.fromhex("043587cf"): (False, None, "tpub"),
    bytes.fromhex("044a5262"): (False, "p2sh-p2wpkh", "upub"),
    bytes.fromhex("045f1cf6"): (False, "p2wpkh", "vpub"),
}


def parse_account(
    text: str, network: Network, script_type: str | None = None
) -> Descriptor:
    """The account that a descriptor or an extended public key names.

    `script_type` overrides the kind of addresses that a key's prefix says. Raises CommandError,
    whose message never repeats the key.
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
        other = "mainnet" if account.is_main else "a test network"
        raise CommandError(
            f"its keys are for {other}, but BLOCKTILL_NETWORK is {network.name}"
        )
    return account


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
    main, promised, prefix = _PUBLIC_VERSIONS[payload[:4]]
    if main != network.main_keys:
        other = "mainnet" if main else "a test network"
        raise CommandError(
            f"this {prefix} is for {other}, but BLOCKTILL_NETWORK is {network.name}"
        )
    if promised and script_type and promised != script_type:
        raise CommandError(
            f"a {prefix} means {promised}, but --script says {script_type}"
        )
    try:
        ExtendedKey.parse(payload)
    except DecodeError as error:
        raise CommandError(f"this extended key is invalid: {error}") from None
    version = (
        "0488b21e" if main else "043587cf"
    )  # the only ones that descriptors know (BIP380)
    plain = b58check_encode(bytes.fromhex(version) + payload[4:])
    return _FORMS[script_type or promised or "p2wpkh"].format(plain)


def are_seed_words(text: str) -> bool:
    """True for a text like a wallet's mnemonic (BIP39), numbered or not, in any language."""
    words = re.split(r"[\s,;]+", text.strip())
    words = [word for word in words if not re.fullmatch(r"[0-9]{1,2}[.):]?", word)]
    if not 12 <= len(words) <= 24 or max(map(len, words)) > MAX_WORD:
        return False
    return all(
        re.fullmatch(
            r"([0-9]{1,2}[.):])?[^\W\d_]{1,16}", unicodedata.normalize("NFC", word)
        )
        for word in words
    )


def holds_secret(text: str) -> bool:
    """True for what looks like seed words, and where any word is a private key."""
    return are_seed_words(text) or any(
        map(is_private, re.findall(r"\b\w{51,112}\b", text))
    )


@functools.lru_cache(maxsize=1024)
def stored_account(descriptor: str) -> Descriptor:
    """Parsed once for each merchant and process. Raises CommandError."""
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
    if len(script) // 2 not in DUST_LIMITS_SATS:
        raise BadRow(f"{script!r} is no script of ours")
    return DUST_LIMITS_SATS[len(script) // 2]


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
        "timestamp": merchant.created_at // 1000,
        "internal": False,
    }
