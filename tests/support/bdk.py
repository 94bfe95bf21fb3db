"""The Bitcoin Dev Kit's addresses of random accounts, to compare with ours."""

import secrets

import pytest
from builders import REGTEST
from hd_wallet import HdWallet

from btcpay.bitcoin.hd import HARDENED
from btcpay.merchants.account import derive, parse_account
from btcpay.merchants.wallet_export import receiving

FORMS = {
    "pkh": "pkh({}/0/*)",
    "wpkh": "wpkh({}/0/*)",
    "sh(wpkh)": "sh(wpkh({}/0/*))",
    "tr": "tr({}/0/*)",
    "wsh(sortedmulti)": "wsh(sortedmulti(2,{}/0/*,{}/<0;1>/*,{}/5/7/*))",
    "wsh(multi)": "wsh(multi(3,{}/*,{}/0/*,{}/0/*))",
    "sh(wsh)": "sh(wsh(multi(1,{}/0/*,{}/0/*)))",
    "sh": "sh(sortedmulti(2,{}/0/*,{}/0/*))",
}


def compare(form: str, accounts: int, each: int) -> None:
    """`each` addresses of so many accounts of this form."""
    bdk = pytest.importorskip("bdkpython")
    for _ in range(accounts):
        wallets = (HdWallet.from_seed(secrets.token_bytes(32)) for _ in range(form.count("{}")))
        text = form.format(*(wallet.xpub() for wallet in wallets))
        exported = receiving(parse_account(text, REGTEST))  # with a checksum, which is verified
        theirs = bdk.Descriptor(exported, bdk.NetworkKind.TEST)
        for index in (secrets.randbelow(HARDENED) for _ in range(each)):
            wanted = str(theirs.derive_address(index, bdk.Network.REGTEST))
            assert derive(text, index, REGTEST) == wanted, (text, index)
