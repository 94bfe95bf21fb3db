"""Which wallet a text comes from, and what to export there instead."""

import re
from typing import NamedTuple

from btcpay.merchants.wallet_text.contents import TextRefused


class Wallet(NamedTuple):
    """A wallet. `sign` is in its texts, `text_name` names these; `export` is its menu."""

    sign: re.Pattern[str]
    text_name: str
    export: str


def _wallet(sign: str, text_name: str, export: str) -> Wallet:
    return Wallet(re.compile(sign), text_name, export)


# The first whose sign is in the text.
WALLETS = (
    _wallet(r"(?i)bluewallet", "BlueWallet's file",
        "in BlueWallet the wallet's settings, Export Coordination Setup, or Show Wallet XPUB"),
    _wallet(r"BSMS 1\.0", "a BSMS file", "a BSMS file whose second line is the descriptor"),
    _wallet(r'"extendedPublicKeys"', "Caravan's file",
        "in Caravan Download Wallet Details, with all signers' keys, or an output descriptor"),
    _wallet(r'(?i)"(?:account)?derivation(?:scheme)?"\s*:\s*"[^"]*pub|"accountKeySettings"',
        "BTCPay Server's wallet settings",
        "in BTCPay Server the wallet's Settings, Derivation Scheme"),
    _wallet(r'"wallet_type"|"seed_version"', "Electrum's file",
        "in Electrum Wallet, Information: the master public key; of a multisig wallet the file"
        " from File, Save backup, without a password"),
    _wallet(r'(?i)"derivationMode"|"freshAddress|(?:js|libcore):[0-9]:bitcoin',
        "Ledger Live's data", "in Ledger Live Edit account, Advanced logs: the xpub"),
    _wallet(r'"multisig_name"|"variant"\s*:\s*"(?:sh|wsh)\(', "Jade's file",
        "in the program that made the wallet its output descriptor"),
    _wallet(r"(?i)sparrow|\"policyType\"|# Receive and change descriptor", "Sparrow's file",
        "in Sparrow Settings, Export, Output Descriptor"),
    _wallet(r'(?i)specter|"blockheight"', "Specter's file",
        "in Specter the wallet's Settings, Export"),
    _wallet(r'(?i)coldcard|ckcc|"bip(?:44|49|84)"', "Coldcard's file",
        "on Coldcard Advanced, Export Wallet, Descriptor"),
    _wallet(r"(?i)keystone|cobovault", "Keystone's file",
        "on Keystone the account's extended public key"),
    _wallet(r'(?i)"ExtPubKey"|wasabi', "Wasabi's file",
        "in Wasabi Wallet Info: the extended public key"),
    _wallet(r'"wallet_name"|"timestamp"|importdescriptors|importmulti|listdescriptors',
        "Bitcoin Core", "of Bitcoin Core listdescriptors, without `true` behind it"),
    _wallet(r"(?i)nunchuk", "Nunchuk's file",
        "in Nunchuk View wallet config, Export wallet configuration"),
    _wallet(r"(?i)passport", "Passport's file", "on Passport Connect Wallet, as a file on microSD"),
    _wallet(r"(?i)bitkey", "Bitkey's file", "in Bitkey Export wallet descriptor"),
)  # fmt: skip
_ANY_EXPORT = (
    "export the wallet's output descriptor, or the account's extended public key (xpub, zpub),"
    " as text"
)
_UNREADABLE = (
    (re.compile(r"(?i)^\s*ur:[a-z-]"),
        "this is a code of an animated QR code (UR), which is not readable here: choose the export"
        " as text or file instead, as an output descriptor or as an extended public key (xpub,"
        " zpub)"),
    (re.compile(r"^\s*B\$[2HZ]"),
        "this is a part of a BBQr code, which is not readable here: export the output descriptor"
        " as text or file"),
    (re.compile(r"(?i)^\s*(?:cHNidP|70736274ff)"),
        "this is a transaction to sign (PSBT), not an account: "),
    (re.compile(r"^\s*QklF"),
        "this file of Electrum is encrypted: open the wallet in Electrum, and give the master"
        " public key that Wallet, Information shows; of a multisig wallet the file from File, Save"
        " backup, without a password"),
    (re.compile(r"^\s*SQLite format 3|^\s*H:2,block"),
        "this is a wallet's own database, which is not readable here: "),
    (re.compile(r"^\s*(?i:(?:bitcoin:)?(?:bc1|tb1|bcrt1)[0-9a-z]{20,80}|[123mn][1-9A-HJ-NP-Za-km-z]{25,34})\s*$"),
        "this is an address, and one address is no account: "),
)  # fmt: skip


def wallet_of(text: str) -> Wallet | None:
    """Returns the wallet that the text comes from, None if nothing tells it."""
    for wallet in WALLETS:
        if wallet.sign.search(text):
            return wallet
    return None


def refuse_unreadable(text: str) -> None:
    """Raises TextRefused for a text of a known form that holds no readable account."""
    for sign, sentence in _UNREADABLE:
        if sign.search(text):
            if sentence.endswith(": "):
                sentence += _ANY_EXPORT
            raise TextRefused(sentence)


def what_to_export(text: str) -> str:
    """Returns what to export instead, by the wallet's own menu if the text tells it."""
    wallet = wallet_of(text)
    if wallet is None:
        return _ANY_EXPORT
    return f"{_ANY_EXPORT}; {wallet.export}"
