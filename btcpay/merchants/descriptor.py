"""Output descriptors: an account's addresses as Bitcoin Core understands them.

Source: BIP380 (general, checksum), BIP381 (pkh, sh), BIP382 (wpkh); Bitcoin Core's descriptors.md.
"""

import re

from btcpay.merchants.account import ACCOUNT_DEPTH, Account, parse_account, plain_key
from btcpay.values.errors import AccountKeyRefused
from btcpay.values.networks import Network
from storage.database import Row

MOST_IN_RANGE = 1_000_000  # Bitcoin Core refuses a longer range
MS_PER_S = 1000

_INPUT = (
    "0123456789()[],'/*abcdefgh@:$%{}"
    "IJKLMNOPQRSTUVWXYZ&+-.;<=>?!^_|~"
    'ijklmnopqrstuvwxyzABCDEFGH`#"\\ '
)
_OUTPUT = "qpzry9x8gf2tvdw0s3jn54khce6mua7l"
_GENERATOR = (0xF5DEE51989, 0xA9FDCA3312, 0x1BAB10E32D, 0x3706B1677A, 0x644D626FFD)
_CHECKSUM_SYMBOLS = 8

# The script expression around the key, and the purpose (BIP44) of the path that goes with it.
_FORMS = {"p2wpkh": ("wpkh({})", 84), "p2sh-p2wpkh": ("sh(wpkh({}))", 49), "p2pkh": ("pkh({})", 44)}


def checksum(script: str) -> str:
    """The eight symbols that follow `#` (BIP380). Raises ValueError for a foreign character."""
    remainder = 1
    for symbol in [*_symbols(script), *[0] * _CHECKSUM_SYMBOLS]:
        remainder = _step(remainder, symbol)
    remainder ^= 1
    return "".join(_OUTPUT[remainder >> 5 * place & 31] for place in reversed(range(8)))


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


def _step(remainder: int, symbol: int) -> int:
    """One step of the division by the generator, a polynomial over GF(32)."""
    top = remainder >> 35
    remainder = (remainder & 0x7FFFFFFFF) << 5 ^ symbol
    for bit, generator in enumerate(_GENERATOR):
        if top >> bit & 1:
            remainder ^= generator
    return remainder


def receiving(account: Account, network: Network, fingerprint: str | None = None) -> str:
    """The descriptor of m/.../0/*, the addresses that invoices get, with its checksum.

    `fingerprint`, the master key's in 8 hex digits, adds the key's origin, which signing devices
    ask for. Raises AccountKeyRefused when the key has no path of BIP44.
    """
    form, purpose = _FORMS[account.script_type]
    origin = "" if fingerprint is None else _origin(account, network, purpose, fingerprint)
    script = form.format(f"{origin}{plain_key(account.text, network)}/0/*")
    return f"{script}#{checksum(script)}"


def import_request(
    merchant: Row, network: Network, indexes: range, fingerprint: str | None = None
) -> Row:
    """One request of Bitcoin Core's importdescriptors: addresses to watch, none to hand out.

    No address was paid before `timestamp`, in unix seconds, when the merchant was added.
    """
    account = parse_account(merchant["xpub"], network, merchant["script_type"])
    return {
        "desc": receiving(account, network, fingerprint and fingerprint.lower()),
        "active": False,
        "range": [indexes[0], indexes[-1]],
        "timestamp": merchant["created_at"] // MS_PER_S,
        "internal": False,
    }


def _origin(account: Account, network: Network, purpose: int, fingerprint: str) -> str:
    if not re.fullmatch("[0-9a-f]{8}", fingerprint):
        raise AccountKeyRefused("a fingerprint has 8 hex digits, such as 73c5da0a")
    if account.depth != ACCOUNT_DEPTH or account.number is None:
        raise AccountKeyRefused("this is no account key (BIP44): its path is not known")
    coin = 0 if network.main_keys else 1
    return f"[{fingerprint}/{purpose}'/{coin}'/{account.number}']"
