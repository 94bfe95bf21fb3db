"""Output descriptors: an account's addresses as Bitcoin Core understands them.

Source: BIP380 (general), BIP381 (pkh, sh), BIP382 (wpkh); Bitcoin Core's descriptors.md.
"""

import re

from btcpay.bitcoin.descriptor_checksum import checksum
from btcpay.merchants.account import ACCOUNT_DEPTH, Account, parse_account, plain_key
from btcpay.values.errors import AccountKeyRefused
from btcpay.values.networks import Network
from storage.database import Row

MOST_IN_RANGE = 1_000_000  # Bitcoin Core refuses a longer range
MS_PER_S = 1000

# The script expression around the key, and the purpose (BIP44) of the path that goes with it.
_FORMS = {"p2wpkh": ("wpkh({})", 84), "p2sh-p2wpkh": ("sh(wpkh({}))", 49), "p2pkh": ("pkh({})", 44)}


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
