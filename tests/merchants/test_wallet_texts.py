"""Texts that wallets export or people paste, and the accounts that they hold."""

import json
import re

import pytest

from btcpay.bitcoin.base58 import b58check_decode, b58check_encode
from btcpay.bitcoin.descriptor_checksum import checksum
from btcpay.merchants.secret import SecretShown, SeedWordsShown, holds_secret
from btcpay.merchants.wallet_text.clean import MAX_CHARS
from btcpay.merchants.wallet_text.read import read_wallet_text
from btcpay.values.errors import CommandError
from btcpay.values.networks import NETWORKS
from tests.support.hd_wallet import HdWallet
from tests.support.hostile import TEXTS, text_of
from tests.support.paths import VECTORS
from tests.support.processor_time import takes_less_than

MAINNET = NETWORKS["mainnet"]
EXPORTS = json.loads((VECTORS / "wallet_exports.json").read_text(encoding="utf-8"))
CASES = {case["name"]: case for case in EXPORTS["cases"]}
# Words that the sentence of a refusal must have, by what the case says.
WORDS = {
    "one key of several: the wallet's descriptor is needed":
        "one key of several: the wallet's descriptor is needed",
    "another network": "another network",
    "a descriptor holds an xpub, not a zpub": "a descriptor holds an xpub, not a zpub",
    "a multisig of three of which two keys are in the file: export an output descriptor":
        "a multisig of three of which two keys are in the file: export an output descriptor",
    "not readable here: says which export to choose": "not readable here: choose the export",
    "secret": "holds a secret",
}  # fmt: skip


def outcome(text, script=None, network=MAINNET):
    """The first addresses of the accounts by name, or the sentence of the refusal."""
    try:
        read = read_wallet_text(text, network, script)
    except CommandError as error:
        return str(error)
    return {
        account.name: account.first_addresses(network, 1)[0]
        for account in read.accounts
    }


def fits(expected, text):
    got = outcome(text)
    if "either" in expected:
        return any(fits(one, text) for one in expected["either"])
    if "refused" in expected:
        return isinstance(got, str) and WORDS[expected["refused"]] in got
    if "choice" in expected:
        return list(got) == expected["choice"]
    return list(got.values()) == [expected["first_address"]]


@pytest.mark.parametrize("name", CASES)
def test_a_wallets_text_gives_what_it_holds(name):
    case = CASES[name]
    assert fits(case["expect"], case["text"]), outcome(case["text"])


def with_version(key, version):
    return b58check_encode(bytes.fromhex(version) + b58check_decode(key)[4:])


def checked(script):
    return f"{script}#{checksum(script)}"


MAIN = bytes.fromhex("0488b21e")
WALLET = HdWallet.from_seed(b"a wallet of these tests")
OTHER = HdWallet.from_seed(b"another wallet of these tests")
X44, X49, X84, X86 = (
    WALLET.at(f"m/{purpose}'/0'/0'").xpub(MAIN) for purpose in (44, 49, 84, 86)
)
X48, Y48 = (wallet.at("m/48'/0'/0'/2'").xpub(MAIN) for wallet in (WALLET, OTHER))
MASTER = WALLET.xpub(MAIN)
ZPUB = with_version(X84, "04b24746")
YPUB = with_version(X49, "049d7cb2")
ZPUBS = [with_version(key, "02aa7ed3") for key in (X48, Y48)]


def first(script):
    """The first address of a descriptor without a checksum."""
    return list(outcome(script).values())[0]


P2PKH, P2SH, P2WPKH, P2TR = (
    first(form)
    for form in (
        f"pkh({X44}/0/*)", f"sh(wpkh({X49}/0/*))", f"wpkh({X84}/0/*)", f"tr({X86}/0/*)",
    )
)  # fmt: skip
INNER = f"sortedmulti(2,{X48}/0/*,{Y48}/0/*)"
P2WSH = first(f"wsh({INNER})")
P2SH_P2WSH = first(f"sh(wsh({INNER}))")
P2SH_MULTI = first(f"sh({INNER})")
ORIGIN = "[73c5da0a/84h/0h/0h]"
SETUP = f"""# Coldcard Multisig setup file (created by Sparrow)
#
Name: Shop
Policy: 2 of 2
Derivation: m/48'/0'/0'/2'
Format: P2WSH

73C5DA0A: {X48}
A1B2C3D4: {Y48}
"""
BSMS = f"""BSMS 1.0
wsh(sortedmulti(2,[73c5da0a/48'/0'/0'/2']{X48}/**,[a1b2c3d4/48'/0'/0'/2']{Y48}/**))
/0/*,/1/*
"""
LEDGER = {
    "data": {
        "accounts": [
            {
                "data": {
                    "id": f"js:2:bitcoin:{X84}:native_segwit",
                    "seedIdentifier": "04" + "ab" * 64,
                    "name": "Bitcoin 1",
                    "derivationMode": "native_segwit",
                    "index": 0,
                    "currencyId": "bitcoin",
                    "freshAddressPath": "84'/0'/0'/0/3",
                    "xpub": X84,
                }
            },
            {
                "data": {
                    "id": f"js:2:bitcoin_cash:{X44}:",
                    "name": "Bitcoin Cash 1",
                    "derivationMode": "",
                    "currencyId": "bitcoin_cash",
                    "xpub": X44,
                }
            },
        ]
    }
}
ELECTRUM = {
    "seed_version": 59,
    "use_encryption": False,
    "wallet_type": "standard",
    "keystore": {
        "type": "bip32",
        "xpub": ZPUB,
        "xprv": None,
        "derivation": "m/84h/0h/0h",
        "root_fingerprint": "73c5da0a",
    },
    "addresses": {"receiving": [P2WPKH], "change": []},
}
ELECTRUM_2_OF_2 = {
    "wallet_type": "2of2",
    "x1/": {"type": "bip32", "xpub": ZPUBS[0]},
    "x2/": {"type": "bip32", "xpub": ZPUBS[1]},
}
PASSPORT = {
    "xfp": "73C5DA0A",
    "xpub": MASTER,
    "bip44": {"deriv": "m/44'/0'/0'", "name": "p2pkh", "xpub": X44, "first": P2PKH},
    "bip49": {"deriv": "m/49'/0'/0'", "name": "p2sh-p2wpkh", "xpub": X49, "_pub": YPUB},
    "bip84": {"deriv": "m/84'/0'/0'", "name": "p2wpkh", "xpub": X84, "_pub": ZPUB},
    "bip48_2": {
        "deriv": "m/48'/0'/0'/2'",
        "name": "p2wsh",
        "xpub": X48,
        "_pub": ZPUBS[0],
    },
}
CORE_NEW = {
    "descriptors": [
        {
            "desc": checked(form.format(key, branch)),
            "internal": branch == 1,
            "active": True,
        }
        for form, key in (
            ("pkh({}/{}/*)", X44),
            ("sh(wpkh({}/{}/*))", X49),
            ("wpkh({}/{}/*)", X84),
            ("tr({}/{}/*)", X86),
        )
        for branch in (0, 1)
    ]
}
BTCPAY = {
    "accountDerivation": f"{X49}-[p2sh]",
    "accountOriginal": YPUB,
    "accountKeySettings": [
        {
            "rootFingerprint": "73c5da0a",
            "accountKeyPath": "49'/0'/0'",
            "accountKey": X49,
        }
    ],
    "signingKey": X49,
}
POLICY = {
    "name": "Shop",
    "description_template": "wsh(sortedmulti(2,@0/**,@1/**))",
    "keys_info": [f"[73c5da0a/48'/0'/0'/2']{X48}", f"[a1b2c3d4/48'/0'/0'/2']{Y48}"],
}
CARAVAN = {
    "name": "Shop",
    "addressType": "P2SH-P2WSH",
    "quorum": {"requiredSigners": 2, "totalSigners": 2},
    "extendedPublicKeys": [
        {"name": "a", "bip32Path": "m/48'/0'/0'/1'", "xpub": X48, "xfp": "73c5da0a"},
        {"name": "b", "bip32Path": "Unknown", "xpub": Y48, "xfp": "a1b2c3d4"},
    ],
}
JADE = {
    "network": "mainnet",
    "multisig_name": "shop",
    "descriptor": {
        "variant": "wsh(multi(k))",
        "sorted": True,
        "threshold": 2,
        "signers": [
            {
                "fingerprint": fingerprint,
                "derivation": [2147483696, 2147483648, 2147483648, 2147483650],
                "xpub": key,
                "path": [],
            }
            for fingerprint, key in (("73c5da0a", X48), ("a1b2c3d4", Y48))
        ],
    },
}
SPARROW = {
    "label": "Shop",
    "network": "MAINNET",
    "policyType": "MULTI",
    "scriptType": "P2SH_P2WSH",
    "defaultPolicy": {
        "name": "Default",
        "miniscript": {"script": "sh(wsh(sortedmulti(2,key1,key2)))"},
    },
    "keystores": [
        {
            "label": name,
            "source": "HW_USB",
            "keyDerivation": {
                "masterFingerprint": "73c5da0a",
                "derivation": "m/48'/0'/0'/1'",
            },
            "extendedPublicKey": key,
        }
        for name, key in (("key1", X48), ("key2", Y48))
    ],
}
SPARROW_SINGLE = {
    "policyType": "SINGLE",
    "scriptType": "P2TR",
    "keystores": [{"extendedPublicKey": X86}],
}
CORE_TEXT = f"""# Bitcoin Core Wallet Import File
## For wallet with master key fingerprint: 73C5DA0A
importdescriptors '[{{"timestamp": "now", "active": true, "internal": false, "desc":
"{checked(f"wpkh({ORIGIN}{X84}/0/*)")}"}}, {{"internal": true, "desc":
"{checked(f"wpkh({ORIGIN}{X84}/1/*)")}"}}]'
importmulti '[{{"range": [0, 1000], "internal": false, "watchonly": true, "desc":
"{checked(f"wpkh({ORIGIN}{X84}/0/*)")}"}}]'
"""
READ = {
    "a label before the key": (f"My account: {ZPUB}", [P2WPKH]),
    "a key in brackets of words": (f"The key ({ZPUB}) is for the shop.", [P2WPKH]),
    "line breaks inside a key": (f"{ZPUB[:40]}\n{ZPUB[40:80]}\r\n  {ZPUB[80:]}", [P2WPKH]),
    "a key twice": (f"{ZPUB}{ZPUB}\n{ZPUB}", [P2WPKH]),
    "the word xpub before the key": (f"My xpub {ZPUB}", [P2WPKH]),
    "a key in groups of four": (
        " ".join(ZPUB[place : place + 4] for place in range(0, 111, 4)), [P2WPKH]),
    "a quoted mail": (f"> My key:\n> {ZPUB[:60]}\n> {ZPUB[60:]}", [P2WPKH]),
    "Specter's old branches": (f"wpkh({ORIGIN}{X84}/{{0,1}}/*)", [P2WPKH]),
    "Ledger Live's table of operations": (
        f"Currency,Account Name,Account xpub\nBTC,Bitcoin 1,{X84}\nBTC,Bitcoin 1,{X84}\n",
        [first(f"wpkh({X84}/0/*)")]),
    "a JSON list of a key": (json.dumps([ZPUB]), [P2WPKH]),
    "Blockstream's list of both branches": (
        json.dumps({"core_descriptors": [checked(f"sh(wpkh({X49}/{n}/*))") for n in (0, 1)],
            "slip132_extended_pubkey": YPUB, "type": "p2sh-p2wpkh"}), [P2SH]),
    "Keystone": (
        json.dumps({"ExtPubKey": ZPUB, "MasterFingerprint": "73c5da0a",
            "AccountKeyPath": "m/84'/0'/0'", "CoboVaultFirmwareVersion": "1"}), [P2WPKH]),
    "three keys in lines": (f"{X44[:4]}: {X44}\nypub: {YPUB}\nzpub: {ZPUB}", [
        first(f"wpkh({X44}/0/*)"), P2SH, P2WPKH]),
    "a path beside the key": (f"Path: m/49'/0'/0'\nxpub: {X49}", [P2SH]),
    "an origin of taproot": (f"[73c5da0a/86'/0'/0']{X86}", [P2TR]),
    "an origin with H, and blanks": (f"[ 73C5DA0A / 44H / 0H / 0H ] {X44}", [P2PKH]),
    "a key with its receiving path": (f"[73c5da0a/84h/0h/0h]{X84}/<0;1>/*", [P2WPKH]),
    "two spellings of a key": (f"xpub: {X84}\nzpub: {ZPUB}", [P2WPKH]),
    "BIP388's path": (f"wpkh({ORIGIN}{X84}/**)", [P2WPKH]),
    "BIP388's path with its own checksum": (checked(f"wpkh({ORIGIN}{X84}/**)"), [P2WPKH]),
    "a checksum of the other path": (
        f"wpkh({X84}/**)#{checksum(f'wpkh({X84}/<0;1>/*)')}", [P2WPKH]),
    "H in a descriptor, and the checksum of h": (
        f"wpkh([73c5da0a/84H/0H/0H]{X84}/0/*)#{checksum(f'wpkh({ORIGIN}{X84}/0/*)')}", [P2WPKH]),
    "a descriptor in lines": (
        checked(f"wpkh({ORIGIN}{X84}/0/*)").replace("/", "/\n").replace("#", "#"), [P2WPKH]),
    "escapes of JSON": (
        json.dumps(f"wpkh([73c5da0a/84'/0'/0']{X84}/0/*)").replace("/", r"\/"), [P2WPKH]),
    "marks of HTML": (f"wpkh([73c5da0a/84&#39;/0&#39;/0&#39;]{X84}/&lt;0;1&gt;/*)", [P2WPKH]),
    "brackets of a Chinese keyboard": (f"wpkh（{X84}/0/*）", [P2WPKH]),
    "Bitkey's two lines": (
        f"External: wpkh({ORIGIN}{X84}/0/*)\nInternal: wpkh({ORIGIN}{X84}/1/*)", [P2WPKH]),
    "Zpubs in a descriptor": (
        f"wsh(sortedmulti(2,{ZPUBS[0]}/0/*,{ZPUBS[1]}/0/*))", [P2WSH]),
    "a setup file with xpubs": (SETUP, [P2WSH]),
    "a setup file twice": (SETUP + SETUP, [P2WSH]),
    "a setup file of P2SH-P2WSH": (SETUP.replace("P2WSH", "P2WSH-P2SH"), [P2SH_P2WSH]),
    "a BSMS file": (BSMS + P2WSH, [P2WSH]),
    "Ledger Live, without the account of another coin": (json.dumps(LEDGER), [P2WPKH]),
    "Ledger Live's advanced log": (
        f'"xpub": "{X84[:60]}\n{X84[60:]}", "index": 0, "freshAddressPath":\n"84\'/0\'/0\'/0/2",'
        f'"id": "js:2:bitcoin:{X84}:native_segwit",\n"blockHeight": 2410257', [P2WPKH]),
    "Electrum": (json.dumps(ELECTRUM), [P2WPKH]),
    "Electrum with changes at the end": (
        json.dumps(ELECTRUM) + ',\n{"op": "add", "path": "/a", "value": 1}', [P2WPKH]),
    "Electrum, whose xpub means P2PKH": (
        json.dumps({"wallet_type": "standard", "keystore": {"xpub": X44}}), [P2PKH]),
    "Electrum with several signers": (json.dumps(ELECTRUM_2_OF_2), [P2WSH]),
    "Electrum with several signers of P2SH": (
        json.dumps({"wallet_type": "2of2", "x1/": {"xpub": X48}, "x2/": {"xpub": Y48}}),
        [P2SH_MULTI]),
    "Passport, whose three accounts are for one signer": (
        json.dumps(PASSPORT), [P2PKH, P2SH, P2WPKH]),
    "Bitcoin Core's new wallet": (json.dumps(CORE_NEW), [P2PKH, P2SH, P2WPKH, P2TR]),
    "Coldcard's file for Bitcoin Core": (CORE_TEXT, [P2WPKH]),
    "importmulti": (
        json.dumps([{"desc": checked(f"wpkh({X84}/0/*)"), "internal": False, "keypool": True},
            {"desc": checked(f"wpkh({X84}/1/*)"), "internal": True}]), [P2WPKH]),
    "BTCPay Server's settings": (json.dumps(BTCPAY), [P2SH]),
    "BTCPay Server's scheme": (f"{X49}-[p2sh]", [P2SH]),
    "BTCPay Server's scheme of several signers": (f"2-of-{X48}-{Y48}", [P2WSH]),
    "BTCPay Server's scheme of P2SH-P2WSH": (f"2-of-{X48}-{Y48}-[p2sh]", [P2SH_P2WSH]),
    "a wallet policy": (json.dumps(POLICY), [P2WSH]),
    "Caravan with all keys": (json.dumps(CARAVAN), [P2SH_P2WSH]),
    "Wasabi with taproot": (
        json.dumps({"ExtPubKey": X84, "TaprootExtPubKey": X86, "MasterFingerprint": "73c5da0a",
            "AccountKeyPath": "84'/0'/0'", "EncryptedSecret": None}), [P2WPKH, P2TR]),
    "a file after words": (f"Here is it:\n{json.dumps(ELECTRUM)}", [P2WPKH]),
    "a checksum with a full stop behind it": (
        f"It is {checked(f'wpkh({ORIGIN}{X84}/0/*)')}.", [P2WPKH]),
    "a checksum in brackets of words": (
        f"(It is {checked(f'wpkh({ORIGIN}{X84}/0/*)')})", [P2WPKH]),
    "a policy above the descriptor": (
        f"Policy: 2 of 2\n{checked(f'wsh({INNER})')}", [P2WSH]),
    "Jade": (json.dumps(JADE), [P2WSH]),
    "Sparrow's JSON of several signers": (json.dumps(SPARROW), [P2SH_P2WSH]),
    "Sparrow's JSON of one signer": (json.dumps(SPARROW_SINGLE), [P2TR]),
    "an id that is no account of Ledger Live": (
        json.dumps({"id": "urn:uuid:f81d4fae:7dec:11d0", "xpub": ZPUB}), [P2WPKH]),
    "Specter's devices": (
        json.dumps({"label": "cc", "keys": [
            {"original": f"[73c5da0a/84h/0h/0h]{ZPUB}", "fingerprint": "73c5da0a",
             "derivation": "m/84h/0h/0h", "type": "wpkh", "xpub": X84}]}), [P2WPKH]),
}  # fmt: skip


@pytest.mark.parametrize("case", READ)
def test_a_text_of_another_wallet_is_read_too(case):
    text, expected = READ[case]
    got = outcome(text)
    assert isinstance(got, dict), got
    assert list(got.values()) == expected


REFUSED = {
    "a policy that contradicts the descriptor": (
        f"Policy: 1 of 2\n{checked(f'wsh({INNER})')}", "`Policy` contradicts the descriptor"),
    "brackets that are no file": (f"{{my key}} {ZPUB}", "no whole file (JSON)"),
    "Caravan's file for fewer than no signers": (
        json.dumps(CARAVAN | {"quorum": {"requiredSigners": 2, "totalSigners": -1}}),
        "does not say how many of its keys must sign"),
    "Jade's file that does not say if its keys are sorted": (
        json.dumps({"variant": "wsh(multi(k))", "threshold": 2,
            "signers": JADE["descriptor"]["signers"]}), "does not say how many"),
    "Jade's file with a path behind a key": (
        json.dumps(JADE).replace('"path": []', '"path": [3]', 1), "a path that is not read here"),
    "Sparrow's file of another policy": (
        json.dumps(SPARROW).replace("sortedmulti(2,key1,key2)", "or_d(pk(key1),pk(key2))"),
        "does not say how many"),
    "Sparrow's file without a key": (
        json.dumps(SPARROW).replace(Y48, ""), "lacks its key"),
    "nothing": ("", "all of it was copied"),
    "words": ("What is this?", "all of it was copied"),
    "a key whose end is missing": (ZPUB[:-1], "all of it was copied"),
    "a key of which a character is wrong": (ZPUB[:50] + "x" + ZPUB[51:], "all of it was copied"),
    "a Zpub": (ZPUBS[0], "one key of several: the wallet's descriptor"),
    "an xpub of BIP48's depth": (X48, "one key of several: the wallet's descriptor"),
    "an xpub of BIP48's origin": (f"[73c5da0a/48'/0'/0'/2']{X48}", "one key of several"),
    "Coldcard's file for one of several signers": (
        json.dumps({"p2wsh_deriv": "m/48'/0'/0'/2'", "p2wsh": ZPUBS[0], "xfp": "73C5DA0A"}),
        "one key of several"),
    "an origin that contradicts the prefix": (f"[73c5da0a/49'/0'/0']{ZPUB}", "contradicts itself"),
    "a zpub in a function for several signers": (
        f"wsh(sortedmulti(1,{ZPUB}/0/*,{ZPUBS[1]}/0/*))", "a descriptor holds an xpub, not a zpub"),
    "a wrong checksum": (f"wpkh({X84}/0/*)#qqqqqqqq", "checksum is wrong"),
    "a checksum whose end is missing": (checked(f"wpkh({X84}/0/*)")[:-2], "checksum is wrong"),
    "a descriptor whose end is missing": (f"wpkh({ORIGIN}{X84}/0/*", "is cut"),
    "a descriptor whose beginning is missing": (f"kh({ORIGIN}{X84}/0/*)", "is cut"),
    "a part of a JSON file": (json.dumps(PASSPORT)[:-1], "is no whole file (JSON)"),
    "a setup file without the last key": (
        SETUP.rpartition("A1B2")[0], "a multisig of two of which one key is in the file"),
    "a setup file without its policy": (SETUP.replace("Policy", "Polcy"), "line `Policy`"),
    "a setup file with two policies": (SETUP + SETUP.replace("2 of 2", "1 of 2"), "`Policy`"),
    "a setup file of an unknown format": (SETUP.replace("P2WSH", "P2XSH"), "`Format`"),
    "a setup file that contradicts its keys": (
        SETUP.replace(X48, ZPUBS[0]).replace("P2WSH", "P2SH"), "a Zpub means p2wsh"),
    "a BSMS file with another first address": (BSMS + P2WPKH, "first address in the file is not"),
    "a file with another first address": (
        json.dumps(ELECTRUM).replace(P2WPKH, P2TR), "first address in the file is not"),
    "miniscript": (f"wsh(or_d(pk({X84}/0/*),pk({X86}/0/*)))", "not supported"),
    "a function whose name may be a secret": (
        f"wsh(9f86d181884c7d659a2feaa1c55ad115({X84}/0/*))", "wsh(...) is not supported"),
    "a path whose number is too large": (f"[73c5da0a/84'/0'/2147483648']{X84}", "origin looks"),
    "a path whose number is too long": (f"[73c5da0a/84'/0'/{'1' * 20}']{X84}", "origin looks"),
    "an encrypted file of Electrum": ("QklFMQN4bHJvY2s" * 20, "encrypted: open the wallet in"),
    "a BBQr code": ("B$2J0100" + "A" * 60, "BBQr code, which is not readable here"),
    "a PSBT": ("cHNidP8BAH0CAAAAAe" * 5, "transaction to sign (PSBT)"),
    "an address": (P2WPKH, "one address is no account"),
    "Electrum's imported addresses": (
        json.dumps({"wallet_type": "imported", "addresses": {P2WPKH: {}}}), "master public key"),
    "a file of BlueWallet without keys": ("# BlueWallet Multisig setup file", "in BlueWallet the"),
    "a file of Coldcard without keys": ('{"ColdCardFirmwareVersion": "5"}', "in Coldcard Advanced"),
    "an account of another coin": (
        f"js:2:bitcoin_cash:{X44}:", "another coin than Bitcoin"),
    "a name that is twice in an object": (f'{{"xpub": "{X84}", "xpub": "{X86}"}}', "is twice"),
    "more than it reads": ("a" * (MAX_CHARS + 1), f"more than {MAX_CHARS} characters"),
    "more keys than it reads": (f"{ZPUB} " * 301, "more than 300 keys"),
    "a change branch alone": (f"{ZPUB}/1/*", "the change branch"),
    "a number of HTML without end": (f"{ZPUB} &#{'1' * 5000};", "is not readable here"),
    "a signer of Caravan that is no object": (
        json.dumps(CARAVAN | {"extendedPublicKeys": ["a"]}), "of which no keys are"),
    "a wallet of Electrum for no signers": (
        json.dumps({"wallet_type": "0of0"}), "no account of its own keys"),
    "a wallet of Electrum for one signer with a zpub": (
        json.dumps({"wallet_type": "1of1", "x1/": {"xpub": ZPUB}}), "export an output descriptor"),
    "objects within objects, too many": (
        '{"a":' * 31 + json.dumps({"xpub": ZPUB}) + "}" * 31, "within each other"),
    "BTCPay Server's scheme of one of several keys": (
        json.dumps({"accountDerivation": ZPUBS[0]}), "one key of several"),
    "BTCPay Server's scheme that contradicts its key": (
        json.dumps({"derivationScheme": f"{YPUB}-[legacy]"}), "contradicts itself"),
    "several signers in an unknown file": (
        json.dumps({"requiredSignatures": 2, "keys": [{"xpub": X84}, {"xpub": X49}]}),
        "of several signers"),
    "Electrum's file whose key was changed afterwards": (
        json.dumps(ELECTRUM) + ',{"op": "replace", "path": "/keystore/xpub", "value": "x"}',
        "changes of the wallet's keys"),
    "objects within objects without end": ("[[" * 50_000, "is no whole file (JSON)"),
}  # fmt: skip


@pytest.mark.parametrize("case", REFUSED)
def test_a_text_without_a_whole_account_is_refused_and_not_repeated(case):
    text, reason = REFUSED[case]
    got = outcome(text)
    assert isinstance(got, str) and reason in got, got
    assert not re.search("[1-9A-HJ-NP-Za-km-z]{30}", got)


def test_what_was_read_and_left_out_is_said():
    read = read_wallet_text(SETUP, MAINNET)
    (account,) = read.accounts
    assert account.name == "Shop"
    assert account.description == "2 of 2, P2WSH, from Sparrow's file"
    read = read_wallet_text(json.dumps(LEDGER), MAINNET)
    assert (read.accounts[0].name, read.left_out) == (
        "Bitcoin 1",
        ("this is an account of another coin than Bitcoin",),
    )
    read = read_wallet_text(json.dumps(PASSPORT), MAINNET)
    assert [account.name for account in read.accounts] == ["bip44", "bip49", "bip84"]
    assert "master key" in read.left_out[0] and "one key of several" in read.left_out[1]
    skeleton = {"ckcc_xpub": MASTER, "xpub": ZPUB, "hw_type": "coldcard"}
    read = read_wallet_text(
        json.dumps({"wallet_type": "standard", "keystore": skeleton}), MAINNET
    )
    assert read.left_out == ("the master key itself, which is no account",)
    read = read_wallet_text(json.dumps(CORE_NEW), MAINNET)
    assert read.left_out == ("the change branch, whose addresses are the wallet's own",)
    assert [account.name for account in read.accounts] == [
        "p2pkh",
        "p2sh-p2wpkh",
        "p2wpkh",
        "p2tr",
    ]


def test_of_several_accounts_one_is_named():
    read = read_wallet_text(json.dumps(PASSPORT), MAINNET)
    assert read.choose("BIP84 ").first_addresses(MAINNET, 1) == [P2WPKH]
    for name, words in (
        (None, "choose one of bip44, bip49"),
        ("bip86", "of that name"),
    ):
        with pytest.raises(CommandError, match=words):
            read.choose(name)
    only = read_wallet_text(ZPUB, MAINNET)
    assert only.choose(None) == only.choose("p2wpkh")


def test_a_kind_of_addresses_is_asked_only_of_a_key_that_does_not_say_it():
    (account,) = read_wallet_text(X86, MAINNET).accounts
    assert account.is_assumed and "P2WPKH is assumed" in account.notes[0]
    assert outcome(X86, "p2tr") == {"p2tr": P2TR}
    assert outcome(ZPUB, "p2wpkh") == {"p2wpkh": P2WPKH}
    assert "a zpub means p2wpkh here, but --script says p2pkh" in outcome(ZPUB, "p2pkh")
    assert "leave out --script" in outcome(f"wpkh({X84}/0/*)", "p2wpkh")


def test_a_path_is_not_that_of_a_key_with_an_unknown_name():
    file = {"ExtPubKey": X84, "ExtraPubKey": X86, "AccountKeyPath": "84'/0'/0'"}
    accounts = read_wallet_text(json.dumps(file), MAINNET).accounts
    assert [account.is_assumed for account in accounts] == [False, True]


def test_what_could_be_lost_unnoticed_is_said():
    (account,) = read_wallet_text(f"wpkh({X84}/0/0/*)", MAINNET).accounts
    assert (
        "no checksum" in account.notes[0] and "not the usual /0/*" in account.notes[1]
    )
    (account,) = read_wallet_text(f"pkh({ORIGIN}{X84}/0/*)", MAINNET).accounts
    assert "a part of it may be lost" in account.notes[1]
    (account,) = read_wallet_text(checked(f"wpkh({X84}/1/*)"), MAINNET).accounts
    assert "the wallet's own change would pay invoices" in account.notes[0]


def test_a_scheme_of_btcpay_server_means_what_its_key_says():
    scheme = json.dumps({"derivationScheme": YPUB})
    assert list(outcome(scheme).values()) == [P2SH]


def test_a_path_beside_one_key_says_nothing_of_another():
    text = f"[73c5da0a/49'/0'/0']{YPUB}\n{X86}"
    assumed = [
        account.is_assumed for account in read_wallet_text(text, MAINNET).accounts
    ]
    assert assumed == [False, True]


@pytest.mark.parametrize(
    "text, note",
    [
        (f"[73c5da0a/84'/2'/0']{ZPUB}", "another coin than Bitcoin"),
        (f"[73c5da0a/84'/1'/0']{ZPUB}", "a test network"),
        (checked(f"wpkh([73c5da0a/84h/2h/0h]{X84}/0/*)"), "another coin than Bitcoin"),
        (WALLET.at("m/84'/0'/0'/0").xpub(MAIN), "below the account"),
        (f"[73c5da0a/84'/0']{ZPUB}", "as many steps"),
    ],
)
def test_a_path_that_does_not_fit_is_said(text, note):
    (account,) = read_wallet_text(text, MAINNET).accounts
    assert note in " ".join(account.notes)


def test_a_setup_files_key_without_a_path_has_not_the_path_of_another():
    other = SETUP.replace("A1B2C3D4:", "Derivation: unknown\nA1B2C3D4:")
    (account,) = read_wallet_text(other, MAINNET).accounts
    assert sorted(key.origin for key in account.descriptor.keys) == [
        "",
        "73c5da0a/48'/0'/0'/2'",
    ]


def test_a_key_of_no_signer_in_a_setup_file_is_said():
    read = read_wallet_text(f"{SETUP}\n{X84}\n", MAINNET)
    assert read.left_out == ("a key that is no signer's",)


SEED = [
    "legal",
    "winner",
    "thank",
    "year",
    "wave",
    "sausage",
    "worth",
    "useful",
    "legal",
    "winner",
    "thank",
    "yellow",
]
XPRV = WALLET.xprv()
WIF = "L1aW4aubDFB7yfras2S1mN3bqg9nwySY8nkoLmJebSLD5BWv3ENZ"  # BIP38's test vectors
# SLIP-39's first test vector.
SHARE = (
    "duckling enlarge academic academic agency result length solution fridge kidney coal piece"
    " deal husband erode duke ajar critical decision keyboard"
)
SECRETS = {
    "a WIF key in two lines with words beside": f"My key {WIF[:30]}\n{WIF[30:]} is this",
    "a WIF key in two lines of JSON": json.dumps({"note": f"key {WIF[:9]}\n  {WIF[9:]} x"}),
    "an xprv in three lines with words beside":
        f"The key: {XPRV[:40]}\n{XPRV[40:80]}\n{XPRV[80:]} of mine",
    "a share of Shamir's with a label": f"My share: {SHARE}",
    "a share of Shamir's with numbers and a key": f"{ZPUB}\n" + "\n".join(
        f"{n}. {word}" for n, word in enumerate(SHARE.split(), 1)),
    "a share of which two words were lost": f"Share 1: {SHARE.rpartition(' critical')[0]} end",
    "seed words with numbers": " ".join(f"{n}. {word}" for n, word in enumerate(SEED, 1)),
    "a SeedQR": "073318950739065415961602009907670428187212261116",  # SeedSigner's vector 4
    "seed words in JSON": json.dumps({"xpub": ZPUB, "words": SEED}),
    "seed words in JSON with numbers as names": json.dumps(dict(enumerate(SEED))),
    "seed words in lines with labels": "\n".join(f"Wort {n}: {w}" for n, w in enumerate(SEED)),
    "seed words of a plate": " ".join(word[:4].upper() for word in SEED),
    "seed words after a key": f"{ZPUB}\n{' '.join(SEED)}",
    "seed words of which one is misspelt": f"{ZPUB} {' '.join(SEED).replace('sausage', 'sausege')}",
    "eleven of the seed words": f"{ZPUB} {' '.join(SEED[:11])}",
    "seed words with invisible signs": "\u200b".join(f"{word} " for word in SEED),
    "Spanish seed words in a sentence": "Mis palabras, en papel: "
        + "ábaco abdomen abeja abierto abogado abono aborto abrazo abrir abuelo abuso acabar",
    "Japanese seed words after a key": f"{ZPUB}\n" + "\u3000".join(["あいこくしん"] * 12),
    "an extended private key in a file": json.dumps({"xpub": ZPUB, "xprv": XPRV}),
    "an extended private key in lines": f"{ZPUB}\n{XPRV[:50]}\n{XPRV[50:]}",
    "a damaged extended private key": f"{ZPUB}\n{XPRV[:-3]}",
    "a key in WIF": f"{ZPUB} {WIF}",
    "a damaged key in WIF": f"{ZPUB} {WIF[:-1]}1",
    "an encrypted key (BIP38)":
        f"{ZPUB} 6PRVWUbkzzsbcVac2qwfssoUJAN1Xhrg6bNk8J7Nzm5H7kxEbn2Nh2ZoGg",
    "a share of a seed (BIP93)": "ms10testsxxxxxxxxxxxxxxxxxxxxxxxxxx4nzvca9cmczlw",
    "a seed in hex": json.dumps({"xpub": ZPUB, "seed": "ab" * 32}),
    "a UR of a seed": "ur:crypto-seed/oyadgdaawzwplrbdhdpabgrnvokorolnrtemksayyadmut",
    "seed words in JSON with escaped line breaks":
        json.dumps({"xpub": ZPUB, "label": "\n".join(SEED)}),
    "an extended private key with an escaped letter":
        json.dumps({"xpub": ZPUB, "label": XPRV}).replace("xprv", "\\u0078prv"),
    "Electrum with its seed": json.dumps(
        ELECTRUM | {"keystore": {"xpub": ZPUB, "seed": " ".join(SEED)}}),
}  # fmt: skip


@pytest.mark.parametrize("case", SECRETS)
def test_a_secret_anywhere_is_warned_of_first_and_not_repeated(case):
    text = SECRETS[case]
    with pytest.raises(SecretShown, match="holds a secret") as shown:
        read_wallet_text(text, MAINNET)
    assert holds_secret(text)
    assert not any(
        part in str(shown.value) for part in ("sausage", "abdomen", XPRV[:20], WIF)
    )


def test_of_two_secrets_the_one_as_written_is_named_before_the_escaped_one():
    escaped_key = json.dumps({"label": XPRV}).replace("xprv", "\\u0078prv")
    for number in range(20):
        with pytest.raises(SeedWordsShown):
            read_wallet_text(f"{' '.join(SEED)}\n{number}: {escaped_key}", MAINNET)


def test_words_that_are_no_seed_are_no_secret():
    for text in (
        SETUP,
        json.dumps(PASSPORT),
        CORE_TEXT,
        "Do not deposit to any address in this file unless you have a working wallet system that"
        " is ready to handle the funds at that address!",
        f"My wallet of the shop, which only has this key: {ZPUB}",
    ):
        assert not holds_secret(text), text


LONG = 60_000  # characters; a form may have 64 KiB
HOSTILE = {name: text_of(name, LONG).decode("utf-8", "ignore") for name in TEXTS}
HOSTILE |= {
    "an origin with blanks": "[73c5da0a" + "/0     " * 9000 + f"x {ZPUB}",
    "an end of BSMS that never comes": f"BSMS 1.0\nwpkh({X84}/0/*)" + "\n" * LONG + "!",
    "names of taproot": json.dumps({f"taproot{n}": 0 for n in range(4000)}),
}
HOSTILE |= {
    part: part * (LONG // len(part))
    for part in (
        "(", "a(", "a (", "wpkh(", "wpkh()#", "[73c5da0a/1/", "[{", '{"a":', '{"a":1}', "xpub6 ",
        "\n", "> \n", "abandon zzz ", "Policy: 2 of 3\n", "73c5da0a: ", '"bip84" ', '"first":"',
        '"descriptor" ', '"derivation":"', "BSMS 1.0\n", "m/84'/0'/0' ", "seed : ",
    )
}  # fmt: skip


@pytest.mark.parametrize("name", HOSTILE)
def test_reading_a_wallets_text_never_costs_much(name):
    assert takes_less_than(2, lambda: outcome(HOSTILE[name]))


# One public key of some two thousand has `prv` in it by chance.
BY_CHANCE = (
    "tpubDDo23vReGQLRXg7j7TAHpfnQ7rwED7Cerprvt3peitLgFyy4EFLNcNuiGfjjVVwm2AsgVt196jo"
    "Fav6WXi823RhVKqVFkDT5x3iKtVpQyiP"
)


@pytest.mark.parametrize(
    "text", ["{}", "[73c5da0a/84h/1h/0h]{}", "wpkh({}/<0;1>/*)", '{{"xpub": "{}"}}']
)
def test_a_public_key_that_spells_prv_by_chance_is_no_secret(text):
    assert not holds_secret(text.format(BY_CHANCE))
    assert holds_secret(text.format(f"{BY_CHANCE[:-1]}Q"))  # its checksum is wrong
