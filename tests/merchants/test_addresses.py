"""Account keys and addresses against the BIPs' own vectors; descriptors, gaps, and the export."""

import itertools
import json
import random
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest

from btcpay.bitcoin.address import address_of
from btcpay.bitcoin.base58 import b58check_decode, b58check_encode
from btcpay.bitcoin.descriptor import Descriptor
from btcpay.bitcoin.descriptor_checksum import has_valid_checksum
from btcpay.bitcoin.extended_key import InvalidChild
from btcpay.merchants.account import (
    ScriptRun,
    at_index,
    derive,
    dust_limit_of,
    dust_limit_of_account,
    import_request,
    stored_account,
)
from btcpay.merchants.merchants import gap_of
from btcpay.values.errors import CommandError
from btcpay.values.networks import NETWORKS
from storage.models import Merchant
from storage.statement import blank
from tests.support.account_texts import account_of
from tests.support.accounts import ACCOUNTS as ACCOUNTS_OF_FORMS
from tests.support.fake_esplora import Terminal
from tests.support.hd_wallet import HdWallet
from tests.support.paths import VECTORS

BIPS: dict[str, Any] = json.loads(
    (VECTORS / "bip_vectors.json").read_text(encoding="utf-8")
)
MAINNET, TESTNET, REGTEST = (
    NETWORKS[name] for name in ("mainnet", "testnet", "regtest")
)

# The mnemonic "abandon ... about" of BIP39, account m/44'/0'/0', as wallets everywhere show it.
BIP44_XPUB = (
    "xpub6BosfCnifzxcFwrSzQiqu2DBVTshkCXacvNsWGYJVVhhawA7d4R5"
    "WSWGFNbi8Aw6ZRc1brxMyWMzG3DSSSSoekkudhUd9yLb6qx39T9nMdj"
)
BIP44_FIRST = "1LqBGSKuX5yYUonjxT5qGfpUsXKYYWeabA"

BIP86_XPUB = (
    "xpub6BgBgsespWvERF3LHQu6CnqdvfEvtMcQjYrcRzx53QJjSxarj2afYWcLteoGVky7D3UKDP9QyrLprQ3VCECoY49yfd"
    "DEHGCtMMj92pReUsQ"
)
BIP86_RECEIVE = [
    ["m/0/0", "bc1p5cyxnuxmeuwuvkwfem96lqzszd02n6xdcjrs20cac6yqjjwudpxqkedrcr"],
    ["m/0/1", "bc1p4qhjn9zdvkux4e44uhx8tc55attvtyu358kutcqkudyccelu0was9fqzwh"],
]

# SLIP-132: prefix, version bytes, main network or not, and the script that it promises.
PREFIXES = [
    ("xpub", "0488b21e", True, None),
    ("ypub", "049d7cb2", True, "p2sh-p2wpkh"),
    ("zpub", "04b24746", True, "p2wpkh"),
    ("tpub", "043587cf", False, None),
    ("upub", "044a5262", False, "p2sh-p2wpkh"),
    ("vpub", "045f1cf6", False, "p2wpkh"),
]
by_prefix = pytest.mark.parametrize(("prefix", "version", "main", "promised"), PREFIXES)
PRIVATE = {
    "xprv": "0488ade4", "yprv": "049d7878", "zprv": "04b2430c", "tprv": "04358394",
    "uprv": "044a4e28", "vprv": "045f18bc",
}  # fmt: skip
SOME_WALLET = HdWallet.from_seed(b"a wallet of the tests").at("m/49'/1'/0'")
SCRIPTS = ["p2wpkh", "p2sh-p2wpkh", "p2pkh", "p2tr"]


def with_version(version, key=BIP44_XPUB):
    """The account key under other version bytes."""
    return b58check_encode(bytes.fromhex(version) + b58check_decode(key)[4:])


def address(key, script, index, network):
    return derive(str(account_of(key, network, script)), index, network)


BIP84 = BIPS["bip84"]
BIP49 = BIPS["bip49"]
ACCOUNTS = {
    "BIP84": (BIP84["account_zpub"], None, "p2wpkh", MAINNET, BIP84["receive"]),
    "BIP49": (BIP49["account_upub"], None, "p2sh-p2wpkh", TESTNET, BIP49["receive"]),
    "BIP44": (BIP44_XPUB, "p2pkh", "p2pkh", MAINNET, [["m/0/0", BIP44_FIRST]]),
    "BIP86": (BIP86_XPUB, "p2tr", "p2tr", MAINNET, BIP86_RECEIVE),
}


@pytest.mark.parametrize("bip", ACCOUNTS)
def test_a_published_account_has_its_addresses(bip):
    key, asked, script, network, receive = ACCOUNTS[bip]
    account = account_of(key, network, asked)
    assert (account.script_type, account.keys[0].key.depth) == (script, 3)
    for index, (_, address) in enumerate(receive):
        assert derive(str(account), index, network) == address


def test_addresses_carry_their_networks_prefix():
    test = ["testnet", "testnet4", "signet"]
    starts = {"mainnet": "bc1q", "regtest": "bcrt1q"} | dict.fromkeys(test, "tb1q")
    for network, start in starts.items():
        version = "04b24746" if network == "mainnet" else "045f1cf6"
        assert address(
            with_version(version), "p2wpkh", 0, NETWORKS[network]
        ).startswith(start)


def test_the_highest_index_is_derived_and_one_that_is_none_refused():
    assert address(BIP44_XPUB, "p2pkh", 2**31 - 1, MAINNET).startswith("1")
    for index in (-1, 2**31, 2**32):
        with pytest.raises(ValueError):
            address(BIP44_XPUB, "p2pkh", index, MAINNET)


@by_prefix
def test_a_prefix_promises_its_script_and_refuses_another(
    prefix, version, main, promised
):
    key = with_version(version)
    network = MAINNET if main else REGTEST
    assert key.startswith(prefix)
    assert account_of(key, network).script_type == (promised or "p2wpkh")
    for script in SCRIPTS:
        if promised in (None, script):
            assert account_of(key, network, script).script_type == script
        else:
            with pytest.raises(CommandError, match=f"{prefix} means {promised}"):
                account_of(key, network, script)


@by_prefix
def test_a_key_of_another_network_is_refused(prefix, version, main, promised):
    key = with_version(version)
    for name, network in NETWORKS.items():
        if main == (name == "mainnet"):
            account_of(key, network)
        else:
            with pytest.raises(CommandError, match=f"BLOCKTILL_NETWORK is {name}"):
                account_of(key, network)


# Of one wallet: what is the same account in another spelling, or shares addresses with it.
NODE = SOME_WALLET.child(0).xpub()
TWO = [
    HdWallet.from_seed(seed).at("m/48'/1'/0'/2'").xpub() for seed in (b"one", b"two")
]
THE_SAME = [
    SOME_WALLET.xpub(),
    SOME_WALLET.xpub(bytes.fromhex("045f1cf6")),
    f"wpkh({SOME_WALLET.xpub()}/0/*)",
    f"wpkh([deadbeef/84h/1h/0h]{SOME_WALLET.xpub()}/<0;1>/*)",
    f"tr({NODE}/*)",
]
THE_SAME_TWO = [
    form.format(*(f"{key}/0/*" for key in keys))
    for form in (
        "wsh(sortedmulti(2,{},{}))",
        "wsh(multi(2,{},{}))",
        "sh(multi(1,{},{}))",
    )
    for keys in (TWO, TWO[::-1])
]
OTHERS = [
    f"wpkh({SOME_WALLET.xpub()}/1/*)",
    f"wpkh({TWO[0]}/0/*)",
    f"wsh(multi(1,{TWO[0]}/0/*))",
]


def test_the_same_keys_are_known_in_every_spelling_order_and_form():
    same, both, others = (
        {account_of(text, REGTEST).identity for text in texts}
        for texts in (THE_SAME, THE_SAME_TWO, OTHERS)
    )
    assert len(same) == len(both) == 1 and len(others) == 2
    assert not same & both and not (same | both) & others


NO_DESCRIPTORS = {
    "of another network": (f"wpkh({BIP44_XPUB}/0/*)", None,
        "for mainnet, but BLOCKTILL_NETWORK is regtest"),
    "with --script": (THE_SAME[2], "p2wpkh", "leave out --script"),
    "with a private key": (f"wpkh({SOME_WALLET.xprv()}/0/*)", None, "private key"),
    "with a wrong checksum": (f"{THE_SAME[2]}#00000000", None, "checksum"),
}  # fmt: skip


@pytest.mark.parametrize("case", NO_DESCRIPTORS)
def test_a_descriptor_that_is_no_account_here_is_refused_and_not_repeated(case):
    text, script, reason = NO_DESCRIPTORS[case]
    with pytest.raises(CommandError, match=reason) as caught:
        account_of(text, REGTEST, script)
    assert "pub6" not in str(caught.value) and "prv" not in str(caught.value)


@pytest.mark.parametrize(
    ("key", "reason"),
    [pytest.param(k, r, id=r) for k, r in BIPS["bip32_invalid_extended_keys"]],
)
def test_an_invalid_key_of_bip32_is_refused_and_not_repeated(key, reason):
    for network in (MAINNET, REGTEST):
        for text in (key, f"wpkh({key}/0/*)"):
            with pytest.raises(CommandError) as caught:
                account_of(text, network)
            assert key not in str(caught.value) and key[4:20] not in str(caught.value)


def test_a_valid_key_of_bip32_is_taken():
    for key in BIPS["bip32_valid_xpubs"]:
        assert str(account_of(key, MAINNET, "p2wpkh")) == f"wpkh({key}/0/*)"


@pytest.mark.parametrize("prefix", PRIVATE)
def test_a_private_key_is_refused_with_a_warning_and_never_repeated(prefix):
    key = with_version(PRIVATE[prefix], SOME_WALLET.xprv())
    assert key[:4] in PRIVATE
    for network in (MAINNET, REGTEST):
        with pytest.raises(CommandError, match="private key") as caught:
            account_of(key, network)
        shown = (
            repr(caught.value)
            + repr(caught.value.__cause__)
            + repr(caught.value.__context__)
        )
        assert key not in shown and b58check_decode(key)[45:].hex() not in shown


NO_KEYS = {
    "nothing": "",
    "a blank": " ",
    "a prefix alone": "xpub",
    "the last character is missing": BIP44_XPUB[:-1],
    "a lone surrogate": BIP44_XPUB[:50] + "\ud800",
    "an address": BIP44_FIRST,
    "a segwit address": "bc1qcr8te4kr609gcawutmrza0j4xv80jy8z306fyu",
    "a mnemonic": "abandon " * 11 + "about",
}


@pytest.mark.parametrize("case", NO_KEYS)
def test_what_is_no_extended_key_is_refused(case):
    text = NO_KEYS[case]
    with pytest.raises(CommandError) as caught:
        account_of(text, MAINNET)
    assert len(text) < 10 or text not in str(caught.value)


# BIP84's test wallet as other programs write its account (ACINQ/bitcoin-kmp's tests).
BIP84_XPUB = (
    "xpub6CatWdiZiodmUeTDp8LT5or8nmbKNcuyvz7WyksVFkKB4RHwCD3X"
    "yuvPEbvqAQY3rAPshWcMLoP2fMFMKHPJ4ZeZXYVUhLv1VMrjPC7PW6V"
)
BIP84_DESCRIPTOR = f"wpkh([73c5da0a/84'/0'/0']{BIP84_XPUB}/0/*)#wc3n3van"


GAPS = {  # indexes that were paid, the next one: gap limit, highest paid
    "nothing given out: the first address must be seen": ([], 0, 1, None),
    "twenty that nobody pays, the next is the twenty-first": ([], 20, 21, None),
    "all paid": ([0, 1, 2], 3, 1, 2),
    "ten in a row that nobody paid": ([0, 2], 13, 11, 2),
    "a hole in the middle counts too": ([0, 30, 31], 32, 30, 31),
    "and one before the first payment": ([50], 51, 51, 50),
    "paid ahead of the counter": ([7], 3, 8, 7),
}


@pytest.mark.parametrize("case", GAPS)
def test_a_wallet_must_look_as_far_as_the_longest_run_that_nobody_paid(case):
    paid, next_index, limit, highest = GAPS[case]
    gap = gap_of(None, None, next_index, paid)
    assert (gap.limit, gap.highest_paid) == (limit, highest)
    seen = list(itertools.accumulate([-1, *paid], max))
    assert all(after - before <= limit for before, after in itertools.pairwise(seen))


def test_the_export_is_what_importdescriptors_asks_for_and_the_list_what_invoices_get(
    till,
):
    invoices = [till.shop.invoice() for _ in range(3)]
    terminal = Terminal(till)
    output, _ = terminal.run("wallet", "export", "shop")
    assert output.count("\n") == 1
    (request,) = json.loads(output)
    assert request == terminal.json("wallet", "export", "shop")[0]
    assert set(request) == {"desc", "active", "range", "timestamp", "internal"}
    assert request["range"] == [0, 103] and request["active"] is False
    assert has_valid_checksum(request["desc"]) and request["desc"].startswith(
        "wpkh(tpub"
    )
    assert abs(request["timestamp"] - till.now) < 120
    listed, _ = terminal.run("wallet", "export", "shop", "--addresses")
    addresses = listed.split()
    assert len(addresses) == 104
    assert addresses[:3] == [invoice["deposit_address"] for invoice in invoices]
    assert (
        terminal.json("wallet", "export", "shop", "--count", "5", "--addresses")
        == addresses[:5]
    )
    assert derive(request["desc"], 0, till.settings.network) == addresses[0]


def test_the_request_has_the_range_the_age_and_the_origin():
    account = str(account_of(BIP84_DESCRIPTOR, MAINNET))
    merchant = blank(Merchant, descriptor=account, created_ms=1_700_000_000_999)
    assert import_request(merchant, range(7)) == {
        "desc": BIP84_DESCRIPTOR,
        "active": False,
        "range": [0, 6],
        "timestamp": 1_700_000_000,
        "internal": False,
    }


def test_the_gap_is_listed_and_what_a_wallet_is_said_to_have_is_kept_for_that_merchant(
    till,
):
    terminal = Terminal(till)
    invoices = [till.shop.invoice() for _ in range(4)]
    till.confirm(invoices[1])
    (row,) = terminal.json("merchant", "list")
    assert (row["next_index"], row["highest_paid"], row["gap_limit"]) == (4, 1, 3)
    assert (row["wallet_gap_limit"], row["script_type"]) == (20, "p2wpkh")
    till.shop.add_merchant("other")
    assert terminal.json("wallet", "gap", "shop") == {"needed": 3, "said": 20}
    assert terminal.json("wallet", "gap", "shop", "120") == {"needed": 3, "said": 120}
    limits = {
        row["name"]: row["wallet_gap_limit"]
        for row in terminal.json("merchant", "list")
    }
    assert limits == {"shop": 120, "other": 20}
    assert "is taken to have 120" in terminal.run("wallet", "gap", "shop")[0]
    for wrong in ("0", "-1", "1000001", "many"):
        terminal.run("wallet", "gap", "shop", "--", wrong, status=2)


@pytest.mark.parametrize(
    ("descriptor", "least_sats"), ACCOUNTS_OF_FORMS.values(), ids=ACCOUNTS_OF_FORMS
)
def test_an_accounts_dust_limit_is_that_of_its_scripts(descriptor, least_sats):
    script = stored_account(descriptor).script(0)
    assert dust_limit_of_account(descriptor) == least_sats
    assert dust_limit_of(script.hex()) == least_sats


def orders(seed):
    """Indexes as orders take them: in a row, past skipped ones, now and then anew from behind."""
    chance = random.Random(seed)
    index = chance.choice([0, chance.randrange(2**31 - 40), 2**31 - 40])
    for _ in range(30):
        yield index
        index += chance.choice([1, 1, 1, 1, 2, 9, -3])
        index = min(max(index, 0), 2**31 - 1)


@pytest.mark.parametrize("name", ACCOUNTS_OF_FORMS)
@pytest.mark.parametrize("seed", range(3))
def test_addresses_of_a_busy_account_are_those_derived_one_by_one(name, seed):
    descriptor, _ = ACCOUNTS_OF_FORMS[name]
    account = stored_account(descriptor)
    for index in orders(f"{name} {seed}"):
        script, address = at_index(descriptor, index, REGTEST)
        assert (script, address) == (
            account.script(index),
            address_of(account.script(index), REGTEST),
        )


def test_addresses_that_threads_ask_for_at_once_are_those_derived_one_by_one():
    descriptor, _ = ACCOUNTS_OF_FORMS["p2wpkh"]
    indexes = range(1_000, 1_200)
    with ThreadPoolExecutor(8) as pool:
        found = list(pool.map(lambda i: at_index(descriptor, i, REGTEST)[0], indexes))
    assert found == [stored_account(descriptor).script(index) for index in indexes]


def test_the_last_index_has_an_address_and_the_next_has_none():
    descriptor, _ = ACCOUNTS_OF_FORMS["p2wpkh"]
    for index in range(2**31 - 20, 2**31):
        at_index(descriptor, index, REGTEST)
    with pytest.raises(InvalidChild):
        at_index(descriptor, 2**31, REGTEST)


class Unlucky(Descriptor):
    """Its index 5 has no key, as one in 2**127 has none."""

    def script(self, index):
        if index == 5:
            raise InvalidChild(f"index {index} has no valid key: use the next")
        return super().script(index)

    def scripts(self, indexes):
        return [self.script(index) for index in indexes]


def test_an_index_without_a_key_does_not_take_away_its_neighbours():
    account = stored_account(ACCOUNTS_OF_FORMS["p2wpkh"][0])
    unlucky = ScriptRun(Unlucky(account.form, account.threshold, account.keys))
    for index in [0, 1, 2, 3, 4, 6, 7]:
        assert unlucky.script(index) == account.script(index)
    with pytest.raises(InvalidChild):
        unlucky.script(5)
