"""Output descriptors of accounts as Bitcoin Core imports them (its descriptors.md, BIP380)."""

import re
from dataclasses import replace

from btcpay.bitcoin.descriptor import Descriptor, checksum
from btcpay.bitcoin.hd import HARDENED
from btcpay.merchants.account import ACCOUNT_DEPTH, stored_account
from btcpay.values.errors import CommandError
from storage.database import Row
from storage.models import Merchant

MOST_IN_RANGE = 1_000_000  # Bitcoin Core refuses a longer range
MS_PER_S = 1000
# The first step of the path to an account of that kind: BIP84, 49, 44, 86.
_PURPOSES = {"p2wpkh": 84, "p2sh-p2wpkh": 49, "p2pkh": 44, "p2tr": 86}


def receiving(account: Descriptor, fingerprint: str | None = None) -> str:
    """The descriptor of the addresses that invoices get, with its checksum.

    `fingerprint`, the master key's in 8 hex digits, adds the key's origin, which signing devices
    ask for. Raises CommandError when the key has no path of BIP44.
    """
    if fingerprint is not None:
        account = _with_origin(account, fingerprint)
    return f"{account}#{checksum(str(account))}"


def import_request(merchant: Merchant, indexes: range, fingerprint: str | None = None) -> Row:
    """One request of Bitcoin Core's importdescriptors: addresses to watch, none to hand out.

    No address was paid before `timestamp`, in unix seconds, when the merchant was added.
    """
    account = stored_account(merchant.descriptor)
    return {
        "desc": receiving(account, fingerprint and fingerprint.lower()),
        "active": False,
        "range": [indexes[0], indexes[-1]],
        "timestamp": merchant.created_at // MS_PER_S,
        "internal": False,
    }


def _with_origin(account: Descriptor, fingerprint: str) -> Descriptor:
    if not re.fullmatch("[0-9a-f]{8}", fingerprint):
        raise CommandError("a fingerprint has 8 hex digits, such as 73c5da0a")
    key, *others = account.keys
    if others or key.origin:
        raise CommandError("the account was added with its keys' origin")
    number = key.key.child_number - HARDENED
    if key.key.depth != ACCOUNT_DEPTH or number < 0 or key.steps != (0,):
        raise CommandError("this is not an account key (BIP44): its path is not known")
    coin = 0 if key.is_main else 1
    path = f"{_PURPOSES[account.script_type]}'/{coin}'/{number}'"
    return replace(account, keys=(replace(key, origin=f"{fingerprint}/{path}"),))
