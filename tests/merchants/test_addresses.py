"""Account keys and addresses against the BIPs' own vectors; every invalid one says why."""

import json
from typing import Any

import pytest
from hd_wallet import HdWallet
from paths import VECTORS

from btcpay.bitcoin.address import b58check_decode, b58check_encode
from btcpay.merchants.account import Account, derive, parse_account, script_of
from btcpay.sandbox.node.script import address_of
from btcpay.sandbox.payer.key import Key
from btcpay.values.errors import AccountKeyRefused
from btcpay.values.networks import NETWORKS

VECTORS: dict[str, Any] = json.loads((VECTORS / "bip_vectors.json").read_text(encoding="utf-8"))
MAINNET, TESTNET, REGTEST = (NETWORKS[name] for name in ("mainnet", "testnet", "regtest"))

# The mnemonic "abandon ... about" of BIP39, account m/44'/0'/0', as wallets everywhere show it.
BIP44_XPUB = (
    "xpub6BosfCnifzxcFwrSzQiqu2DBVTshkCXacvNsWGYJVVhhawA7d4R5"
    "WSWGFNbi8Aw6ZRc1brxMyWMzG3DSSSSoekkudhUd9yLb6qx39T9nMdj"
)
BIP44_FIRST = "1LqBGSKuX5yYUonjxT5qGfpUsXKYYWeabA"

# SLIP-132: prefix, version bytes, main network or not, and the script that it promises.
PREFIXES = [
    ("xpub", "0488b21e", True, None),
    ("ypub", "049d7cb2", True, "p2sh-p2wpkh"),
    ("zpub", "04b24746", True, "p2wpkh"),
    ("tpub", "043587cf", False, None),
    ("upub", "044a5262", False, "p2sh-p2wpkh"),
    ("vpub", "045f1cf6", False, "p2wpkh"),
]
PRIVATE = {
    "xprv": "0488ade4",
    "yprv": "049d7878",
    "zprv": "04b2430c",
    "tprv": "04358394",
    "uprv": "044a4e28",
    "vprv": "045f18bc",
}
SCRIPTS = ["p2wpkh", "p2sh-p2wpkh", "p2pkh"]


def with_version(version: str) -> str:
    """The account key of BIP44_XPUB under other version bytes."""
    return b58check_encode(bytes.fromhex(version) + b58check_decode(BIP44_XPUB)[4:])


def addresses(account: Account, network: Any, count: int) -> list[str]:
    return [derive(account.text, account.script_type, index, network) for index in range(count)]


def test_bip84_vectors():
    account = parse_account(VECTORS["bip84"]["account_zpub"], MAINNET)
    expected = [address for _, address in VECTORS["bip84"]["receive"]]
    assert (account.script_type, account.depth) == ("p2wpkh", 3)
    assert addresses(account, MAINNET, 2) == expected


def test_bip49_vector():
    account = parse_account(VECTORS["bip49"]["account_upub"], TESTNET)
    expected = [address for _, address in VECTORS["bip49"]["receive"]]
    assert account.script_type == "p2sh-p2wpkh"
    assert addresses(account, TESTNET, 1) == expected


def test_bip44_account_of_the_best_known_mnemonic():
    account = parse_account(BIP44_XPUB, MAINNET, "p2pkh")
    assert addresses(account, MAINNET, 1) == [BIP44_FIRST]


@pytest.mark.parametrize(
    ("network", "start"),
    [("mainnet", "bc1q"), ("testnet", "tb1q"), ("testnet4", "tb1q"), ("signet", "tb1q")]
    + [("regtest", "bcrt1q")],
)
def test_addresses_carry_their_networks_prefix(network, start):
    version = "04b24746" if network == "mainnet" else "045f1cf6"
    assert derive(with_version(version), "p2wpkh", 0, NETWORKS[network]).startswith(start)


def test_the_highest_index_is_derived():
    assert derive(BIP44_XPUB, "p2pkh", 2**31 - 1, MAINNET).startswith("1")


@pytest.mark.parametrize("index", [-1, 2**31, 2**32])
def test_an_index_that_is_none_is_refused(index):
    with pytest.raises(ValueError):
        derive(BIP44_XPUB, "p2pkh", index, MAINNET)


def test_what_is_derived_is_what_the_private_keys_holder_can_spend():
    account = HdWallet.from_seed(b"a wallet of the tests").at("m/49'/1'/0'")
    for index in (0, 1, 1_000_000):
        secret = account.at(f"m/0/{index}").secret
        expected = address_of(Key(secret).script)
        assert derive(account.xpub(), "p2sh-p2wpkh", index, REGTEST) == expected


@pytest.mark.parametrize(("prefix", "version", "main", "promised"), PREFIXES)
def test_a_prefix_promises_its_script(prefix, version, main, promised):
    key = with_version(version)
    assert key.startswith(prefix)
    account = parse_account(key, MAINNET if main else REGTEST)
    assert account.script_type == (promised or "p2wpkh")


@pytest.mark.parametrize("script", SCRIPTS)
@pytest.mark.parametrize(("prefix", "version", "main", "promised"), PREFIXES)
def test_a_prefix_that_contradicts_the_script_is_refused(prefix, version, main, promised, script):
    key, network = with_version(version), MAINNET if main else REGTEST
    if promised in (None, script):
        assert parse_account(key, network, script).script_type == script
    else:
        with pytest.raises(AccountKeyRefused, match=f"{prefix} means {promised}"):
            parse_account(key, network, script)


@pytest.mark.parametrize("network", NETWORKS)
@pytest.mark.parametrize(("prefix", "version", "main", "promised"), PREFIXES)
def test_a_key_of_another_network_is_refused(prefix, version, main, promised, network):
    key = with_version(version)
    if main == (network == "mainnet"):
        parse_account(key, NETWORKS[network])
    else:
        with pytest.raises(AccountKeyRefused, match=f"BTCPAY_NETWORK is {network}"):
            parse_account(key, NETWORKS[network])


def test_the_same_wallet_is_known_under_every_prefix():
    main = [with_version(version) for _, version, main, _ in PREFIXES if main]
    assert len({parse_account(key, MAINNET).identity for key in main}) == 1


@pytest.mark.parametrize(
    ("key", "reason"), [pytest.param(k, r, id=r) for k, r in VECTORS["bip32_invalid_extended_keys"]]
)
@pytest.mark.parametrize("network", ["mainnet", "regtest"])
def test_an_invalid_key_of_bip32_is_refused_and_not_repeated(key, reason, network):
    with pytest.raises(AccountKeyRefused) as caught:
        parse_account(key, NETWORKS[network])
    assert key not in str(caught.value) and key[4:20] not in str(caught.value)


@pytest.mark.parametrize("key", VECTORS["bip32_valid_xpubs"])
def test_a_valid_key_of_bip32_is_taken(key):
    assert parse_account(key, MAINNET).text == key


@pytest.mark.parametrize(("prefix", "version"), PRIVATE.items())
@pytest.mark.parametrize("network", ["mainnet", "regtest"])
def test_a_private_key_is_refused_with_a_warning_and_never_repeated(prefix, version, network):
    key = with_version(version)
    assert key.startswith(prefix)
    with pytest.raises(AccountKeyRefused, match="private key") as caught:
        parse_account(key, NETWORKS[network])
    shown = repr(caught.value) + repr(caught.value.__cause__) + repr(caught.value.__context__)
    assert key not in shown and b58check_decode(key)[45:].hex() not in shown


def test_a_real_private_key_is_refused_too():
    key = HdWallet.from_seed(b"a wallet of the tests").at("m/84'/0'/0'").xprv()
    with pytest.raises(AccountKeyRefused, match="private key") as caught:
        parse_account(key, MAINNET)
    assert key not in str(caught.value)


@pytest.mark.parametrize(
    "text",
    [
        pytest.param("", id="nothing"),
        pytest.param(" ", id="a blank"),
        pytest.param("xpub", id="a prefix alone"),
        pytest.param(BIP44_XPUB[:-1], id="the last character is missing"),
        pytest.param(BIP44_XPUB + "1", id="a character too many"),
        pytest.param(BIP44_XPUB[:40] + "0" + BIP44_XPUB[41:], id="a zero, which base58 lacks"),
        pytest.param(BIP44_XPUB[:40] + "\u00e9" + BIP44_XPUB[41:], id="a letter beyond ASCII"),
        pytest.param(BIP44_XPUB[:50] + "\ud800", id="a lone surrogate"),
        pytest.param(BIP44_XPUB.swapcase(), id="upper and lower case swapped"),
        pytest.param(BIP44_FIRST, id="an address"),
        pytest.param("bc1qcr8te4kr609gcawutmrza0j4xv80jy8z306fyu", id="a segwit address"),
        pytest.param("wpkh(" + BIP44_XPUB + "/0/*)", id="a descriptor"),
        pytest.param("abandon " * 11 + "about", id="a mnemonic"),
        pytest.param("1" * 200, id="many ones"),
    ],
)
def test_what_is_no_extended_key_is_refused(text):
    with pytest.raises(AccountKeyRefused) as caught:
        parse_account(text, MAINNET)
    assert not text.strip() or text not in str(caught.value)


V0_20_BYTES = [
    (address, script)
    for address, script in VECTORS["bip350_segwit_valid"]
    if script.startswith("0014")
]


@pytest.mark.parametrize(("address", "script"), V0_20_BYTES)
def test_a_valid_witness_address_has_its_script(address, script):
    assert script_of(address, "p2wpkh").hex() == script


@pytest.mark.parametrize(
    ("address", "kind", "script"),
    [
        (BIP44_FIRST, "p2pkh", "76a914d986ed01b7a22225a70edbf2ba7cfb63a15cb3aa88ac"),
        (
            "2Mww8dCYPUpKHofjgcXcBCEGmniw9CoaiD2",
            "p2sh-p2wpkh",
            "a914336caa13e08b96080a32b5d818d59b4ab3b3674287",
        ),
    ],
)
def test_base58_addresses_have_their_scripts(address, kind, script):
    assert script_of(address, kind).hex() == script
