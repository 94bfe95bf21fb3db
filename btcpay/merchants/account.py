"""Account keys and the addresses under them: BIP32, BIP44, BIP49, BIP84, SLIP-132."""

import functools
import re
import unicodedata
from dataclasses import dataclass

from btcpay.bitcoin.address import (
    b58check_decode,
    b58check_encode,
    p2pkh,
    p2sh,
    segwit_decode,
    segwit_encode,
    witness_script,
)
from btcpay.bitcoin.hd import HARDENED, SERIALIZED_SIZE, ExtendedKey
from btcpay.bitcoin.wire import Malformed, hash160
from btcpay.values.errors import AccountKeyRefused, BadRow
from btcpay.values.networks import Network

ACCOUNT_DEPTH = 3  # BIP44: m / purpose' / coin_type' / account'
SCRIPT_TYPES = ("p2wpkh", "p2sh-p2wpkh", "p2pkh")
# The least that nodes relay to such an address: Bitcoin Core's dust limit (policy/policy.cpp,
# GetDustThreshold), 3 satoshis for each virtual byte of the output and of the input that spends it.
DUST_SATS = {"p2wpkh": 294, "p2sh-p2wpkh": 540, "p2pkh": 546}

# SLIP-132 version bytes: (main network?, the script type that the prefix promises, prefix).
# xpub and tpub promise none: BIP84 unless --script says otherwise.
_PUBLIC_VERSIONS = {
    bytes.fromhex("0488b21e"): (True, None, "xpub"),
    bytes.fromhex("049d7cb2"): (True, "p2sh-p2wpkh", "ypub"),
    bytes.fromhex("04b24746"): (True, "p2wpkh", "zpub"),
    bytes.fromhex("043587cf"): (False, None, "tpub"),
    bytes.fromhex("044a5262"): (False, "p2sh-p2wpkh", "upub"),
    bytes.fromhex("045f1cf6"): (False, "p2wpkh", "vpub"),
}
_PRIVATE_VERSIONS = {
    bytes.fromhex(version)
    for version in ("0488ade4", "049d7878", "04b2430c", "04358394", "044a4e28", "045f18bc")
}


@dataclass(frozen=True)
class Account:
    """An account key: `identity` is chain code and public key, in hex, whatever the prefix.

    `number` is the account's in BIP44's path; None when the key was not derived hardened.
    """

    text: str
    script_type: str
    identity: str
    depth: int
    number: int | None = None


def parse_account(text: str, network: Network, script_type: str | None = None) -> Account:
    """The account of an extended public key; without `script_type` the prefix says it.

    Raises AccountKeyRefused, whose message never repeats the key.
    """
    if are_seed_words(text):
        raise AccountKeyRefused(
            "these look like the seed words of a wallet. This machine has now been shown them, and"
            " its shell keeps what is typed: whoever reads them can take the money. Make a new"
            " wallet, move all money there, and give the PUBLIC key of one of its accounts instead"
        )
    payload = _payload(text)
    if payload[:4] in _PRIVATE_VERSIONS:
        raise AccountKeyRefused(
            "this is a private key: never give it to a server; export the account's PUBLIC key"
            " (xpub, zpub, ypub, tpub, vpub or upub) and treat this one as seen by others"
        )
    if payload[:4] not in _PUBLIC_VERSIONS:
        raise AccountKeyRefused("this is no xpub, ypub, zpub, tpub, upub or vpub")
    main, promised, prefix = _PUBLIC_VERSIONS[payload[:4]]
    if main != network.main_keys:
        other = "mainnet" if main else "a test network"
        raise AccountKeyRefused(f"a {prefix} is a key of {other}, BTCPAY_NETWORK is {network.name}")
    if promised and script_type and promised != script_type:
        raise AccountKeyRefused(f"a {prefix} means {promised}, --script says {script_type}")
    key = _node(payload)
    identity = (key.chain_code + key.public_key).hex()
    number = key.child_number - HARDENED if key.child_number >= HARDENED else None
    return Account(text, script_type or promised or "p2wpkh", identity, key.depth, number)


def are_seed_words(text: str) -> bool:
    """Whether the text looks like a wallet's mnemonic (BIP39), numbered or not, in any language."""
    words = re.split(r"[\s,;]+", unicodedata.normalize("NFC", text).strip())
    words = [word for word in words if not re.fullmatch(r"[0-9]{1,2}[.):]?", word)]
    letters = (re.fullmatch(r"([0-9]{1,2}[.):])?[^\W\d_]{1,16}", word) for word in words)
    return 12 <= len(words) <= 24 and all(letters)


def plain_key(text: str, network: Network) -> str:
    """The same key as xpub or tpub, the only prefixes that descriptors know (BIP380)."""
    version = "0488b21e" if network.main_keys else "043587cf"
    return b58check_encode(bytes.fromhex(version) + _payload(text)[4:])


def derive(xpub: str, script_type: str, index: int, network: Network) -> str:
    """The address m/.../0/index below the account key (BIP84, BIP49, BIP44).

    Raises InvalidChild for an index of 2**31 and more, and for the one in 2**127 that has no key.
    """
    key_hash = hash160(_external_chain(xpub).child(index).public_key)
    if script_type == "p2wpkh":
        return segwit_encode(network.bech32_hrp, 0, key_hash)
    if script_type == "p2sh-p2wpkh":
        return b58check_encode(network.p2sh + hash160(witness_script(0, key_hash)))
    return b58check_encode(network.p2pkh + key_hash)


def script_of(address: str, script_type: str) -> bytes:
    """The scriptPubKey of a stored address that `derive` made. Raises BadRow."""
    try:
        if script_type == "p2wpkh":
            _, version, program = segwit_decode(address)
            return witness_script(version, program)
        payload = b58check_decode(address)[1:]
    except Malformed as error:
        raise BadRow(f"{address!r} is no address: {error}") from error
    return p2sh(payload) if script_type == "p2sh-p2wpkh" else p2pkh(payload)


def least_sats_of(address: str, network: Network) -> int:
    """The least that can be sent to an address that `derive` made, in satoshis."""
    if address.startswith(f"{network.bech32_hrp}1"):
        return DUST_SATS["p2wpkh"]
    is_nested = b58check_decode(address)[:1] == network.p2sh
    return DUST_SATS["p2sh-p2wpkh" if is_nested else "p2pkh"]


@functools.lru_cache(maxsize=1024)
def _external_chain(xpub: str) -> ExtendedKey:
    """The node m/.../0, derived once for each merchant and process."""
    return _node(_payload(xpub)).child(0)


def _payload(text: str) -> bytes:
    try:
        payload = b58check_decode(text)
    except Malformed:
        payload = b""
    if len(payload) != SERIALIZED_SIZE:
        raise AccountKeyRefused("this is no extended key: check that it was copied whole")
    return payload


def _node(payload: bytes) -> ExtendedKey:
    try:
        return ExtendedKey.parse(payload)
    except Malformed as error:
        raise AccountKeyRefused(f"this extended key is invalid: {error}") from None
