"""Recognises the wallet that a text comes from, and advises which text to export from it."""

import re
from typing import NamedTuple

from btcpay.merchants.wallet_text.contents import TextProblem, TextRefused


class Wallet(NamedTuple):
    """A wallet, or another program that writes wallets' files.

    - `pattern`: matches the texts that come from this wallet.
    - `text_name`: the name of such a text, for example "BlueWallet's file".
    - `menu`: the menu items, in English, that lead to the text to export.
    - `menu_of_several`: the same for a wallet with several signers; () if it is the same.
    - `advice`: the text to export, if `menu` is ().
    """

    name: str
    pattern: re.Pattern[str]
    text_name: str
    menu: tuple[str, ...]
    menu_of_several: tuple[str, ...]
    advice: str

    @property
    def export(self) -> str:
        """The text to export from the wallet, as a phrase within a sentence."""
        if not self.menu:
            return self.advice
        text = f"in {self.name} {', '.join(self.menu)}"
        if self.menu_of_several:
            text += f"; with several signers {', '.join(self.menu_of_several)}"
        return text


def _wallet(
    name: str,
    pattern: str,
    text_name: str,
    menu: str = "",
    menu_of_several: str = "",
    advice: str = "",
) -> Wallet:
    """Returns the wallet. The steps of a menu are separated by `>`."""
    return Wallet(
        name=name,
        pattern=re.compile(pattern),
        text_name=text_name,
        menu=_steps(menu),
        menu_of_several=_steps(menu_of_several),
        advice=advice,
    )


def _steps(menu: str) -> tuple[str, ...]:
    return tuple(step.strip() for step in menu.split(">") if step.strip())


NO_PATTERN = "(?!)"  # matches nothing: the wallet's texts are like those of others
# The first wallet whose pattern matches is the one that a text comes from.
# docs/operators/commands.md says which wallets were tried.
WALLETS = (
    _wallet("BlueWallet", r"(?i)bluewallet", "BlueWallet's file",
        "the wallet's settings > Show Wallet XPUB",
        "the wallet's settings > Export Coordination Setup"),
    _wallet("BSMS", r"BSMS 1\.0", "a BSMS file",
        advice="a BSMS file whose second line is the descriptor"),
    _wallet("Caravan", r'"extendedPublicKeys"', "Caravan's file", "Download Wallet Details"),
    _wallet("BTCPay Server",
        r'(?i)"(?:account)?derivation(?:scheme)?"\s*:\s*"[^"]*pub|"accountKeySettings"',
        "BTCPay Server's wallet settings", "Wallet > Settings > Derivation Scheme"),
    _wallet("Electrum", r'"wallet_type"|"seed_version"', "Electrum's file",
        "Wallet > Information > Master Public Key", "File > Save backup"),
    _wallet("Ledger", r'(?i)"derivationMode"|"freshAddress|(?:js|libcore):[0-9]:bitcoin',
        "Ledger Live's data", "Edit account > Advanced logs > xpub"),
    _wallet("Jade", r'"multisig_name"|"variant"\s*:\s*"(?:sh|wsh)\(', "Jade's file",
        advice="in the program that made the wallet its output descriptor"),
    _wallet("Sparrow", r"(?i)sparrow|\"policyType\"|# Receive and change descriptor",
        "Sparrow's file", "Settings > Export > Output Descriptor"),
    _wallet("Specter", r'(?i)specter|"blockheight"', "Specter's file", "Settings > Export"),
    _wallet("Coldcard", r'(?i)coldcard|ckcc|"bip(?:44|49|84)"', "Coldcard's file",
        "Advanced > Export Wallet > Descriptor"),
    _wallet("Keystone", r"(?i)keystone|cobovault", "Keystone's file",
        advice="on Keystone the account's extended public key"),
    _wallet("Wasabi", r'(?i)"ExtPubKey"|wasabi', "Wasabi's file",
        "Wallet Info > Extended Account Public Key"),
    _wallet("Bitcoin Core",
        r'"wallet_name"|"timestamp"|importdescriptors|importmulti|listdescriptors',
        "Bitcoin Core", "Window > Console > listdescriptors"),
    _wallet("Nunchuk", r"(?i)nunchuk", "Nunchuk's file",
        "View wallet config > Export wallet configuration"),
    _wallet("Passport", r"(?i)passport", "Passport's file", "Connect Wallet > microSD"),
    _wallet("Bitkey", r"(?i)bitkey", "Bitkey's file", "Export wallet descriptor"),
    _wallet("Trezor", NO_PATTERN, "", "Details > Show public key"),
)  # fmt: skip


_ANY_EXPORT = (
    "export the wallet's output descriptor, or the account's extended public key (xpub, zpub),"
    " as text"
)
_UNREADABLE = (
    (re.compile(r"(?i)^\s*ur:[a-z-]"),
        "this is a code of an animated QR code (UR), which is not readable here: choose the export"
        " as text or file instead, as an output descriptor or as an extended public key (xpub,"
        " zpub)", TextProblem.ANIMATED_CODE),
    (re.compile(r"^\s*B\$[2HZ]"),
        "this is a part of a BBQr code, which is not readable here: export the output descriptor"
        " as text or file", TextProblem.ANIMATED_CODE),
    (re.compile(r"(?i)^\s*(?:cHNidP|70736274ff)"),
        "this is a transaction to sign (PSBT), not an account: ", TextProblem.TRANSACTION),
    (re.compile(r"^\s*QklF"),
        "this file of Electrum is encrypted: open the wallet in Electrum, and give the master"
        " public key that Wallet, Information shows; of a multisig wallet the file from File, Save"
        " backup, without a password", TextProblem.ENCRYPTED),
    (re.compile(r"^\s*SQLite format 3|^\s*H:2,block"),
        "this is a wallet's own database, which is not readable here: ", TextProblem.DATABASE),
    (re.compile(r"^\s*(?i:(?:bitcoin:)?(?:bc1|tb1|bcrt1)[0-9a-z]{20,80}|[123mn][1-9A-HJ-NP-Za-km-z]{25,34})\s*$"),
        "this is an address, and one address is no account: ", TextProblem.ADDRESS),
)  # fmt: skip


def wallet_of(text: str) -> Wallet | None:
    """Returns the wallet that the text comes from; None if it is not recognised."""
    for wallet in WALLETS:
        if wallet.pattern.search(text):
            return wallet
    return None


def refuse_unreadable(text: str) -> None:
    """Raises TextRefused if the text is of a known kind from which no account can be read.

    Such kinds are, for example, a PSBT, a single address and an encrypted file.
    """
    for pattern, sentence, problem in _UNREADABLE:
        if pattern.search(text):
            if sentence.endswith(": "):
                sentence += _ANY_EXPORT
            raise TextRefused(sentence, problem)


def what_to_export(text: str) -> str:
    """Returns advice on which text to export.

    If the wallet is recognised, the advice has the menu items that lead to this text.
    """
    wallet = wallet_of(text)
    if wallet is None:
        return _ANY_EXPORT
    return f"{_ANY_EXPORT}; {wallet.export}"
