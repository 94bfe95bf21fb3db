"""Accounts of every form on regtest, whose private keys the tests have."""

from hd_wallet import HdWallet

WALLETS = [HdWallet.from_seed(f"signer {n} of the tests".encode()) for n in range(3)]
PATH = "m/48'/1'/0'/2'"
KEY, *_ = KEYS = [f"{wallet.at(PATH).xpub()}/0/*" for wallet in WALLETS]
ALL = ",".join(KEYS)
# What is added, and the least that can be sent to its addresses.
ACCOUNTS = {
    "p2pkh": (f"pkh({KEY})", 546),
    "p2wpkh": (f"wpkh({KEY})", 294),
    "p2sh-p2wpkh": (f"sh(wpkh({KEY}))", 540),
    "p2tr": (f"tr({KEY})", 330),
    "p2wsh": (f"wsh(sortedmulti(2,{ALL}))", 330),
    "p2sh-p2wsh": (f"sh(wsh(multi(2,{ALL})))", 540),
    "p2sh": (f"sh(sortedmulti(2,{ALL}))", 540),
}
