"""Descriptors by the vectors of BIP380 to 383, 386 and 389; each refused one says why."""

import json
import secrets
from hashlib import sha256
from operator import itemgetter

import pytest

from btcpay.bitcoin.address import p2sh, witness_script
from btcpay.bitcoin.base58 import b58check_decode, b58check_encode
from btcpay.bitcoin.descriptor import (
    parse,
    taproot_output_key,
)
from btcpay.bitcoin.descriptor_checksum import checksum, has_valid_checksum
from btcpay.bitcoin.extended_key import HARDENED
from btcpay.bitcoin.keys import InvalidDescriptor
from btcpay.bitcoin.secp256k1 import ORDER, Point
from btcpay.bitcoin.wire import hash160
from btcpay.merchants.account import derive
from btcpay.sandbox.payer.key import public_point
from tests.support.account_texts import account_of
from tests.support.builders import REGTEST
from tests.support.hd_wallet import HdWallet
from tests.support.paths import VECTORS

PUBLISHED = json.loads((VECTORS / "descriptors.json").read_text(encoding="utf-8"))
A, B, C, PRIVATE, WIF, POINT, _BIP86 = PUBLISHED["keys"].values()
ZPRV = b58check_encode(bytes.fromhex("04b2430c") + b58check_decode(PRIVATE)[4:])
TPUB = HdWallet.from_seed(b"a wallet of the tests").at("m/84'/1'/0'")


@pytest.mark.parametrize("vector", PUBLISHED["scripts"], ids=itemgetter("name"))
def test_a_published_descriptor_has_the_published_scripts(vector):
    text = vector["descriptor"].format(**PUBLISHED["keys"])
    wanted = vector["scripts"]
    descriptor = parse(f"{text}#{checksum(text)}")
    assert [descriptor.script(index).hex() for index in range(len(wanted))] == wanted
    assert str(parse(str(descriptor))) == str(descriptor)


@pytest.mark.parametrize("outer", ["wsh", "sh", "sh(wsh"])
def test_sorted_keys_make_the_published_script_whatever_their_order(outer):
    """BIP383 has it bare, so what stands in wsh is compared: the script itself."""

    def behind(inner):
        inner = witness_script(0, sha256(inner).digest()) if "wsh" in outer else inner
        return p2sh(hash160(inner)) if outer.startswith("sh") else inner

    for keys in (f"{A}/*,{B}/0/0/*", f"{B}/0/0/*,{A}/*"):
        descriptor = parse(f"{outer}(sortedmulti(2,{keys})){')' * outer.count('(')}")
        scripts = [descriptor.script(index) for index in range(3)]
        assert scripts == [
            behind(bytes.fromhex(script)) for script in PUBLISHED["sorted"]
        ]


def test_what_is_not_sorted_depends_on_the_order_of_the_keys():
    one, other = (
        parse(f"wsh(multi(1,{keys}))")
        for keys in (f"{A}/0/*,{B}/0/*", f"{B}/0/*,{A}/0/*")
    )
    assert one.script(0) != other.script(0)


def test_a_taproot_output_key_is_that_of_bip341s_vectors():
    """wallet-test-vectors.json, scriptPubKey, the one without a script tree."""
    internal = "d6889cb081036e0faefa3a35157ad71086b123b2b144b649798b494c300a961d"
    output = "53a1f6e454df1aa2776a2814a721372d6258050de330b3c6d10ee8f4e0dda343"
    for parity in ("02", "03"):
        point = Point.parse(bytes.fromhex(parity + internal))
        assert taproot_output_key(point).hex() == output


def test_whoever_has_the_wallet_has_the_key_of_its_taproot_output():
    """By BIP341's taproot_tweak_seckey."""
    descriptor = parse(f"tr({TPUB.xpub()}/0/*)")
    for index in range(8):  # half of the keys have an odd y
        secret = TPUB.child(0).child(index).secret
        point = public_point(secret)
        tag = sha256(b"TapTweak").digest()
        tweak = sha256(tag + tag + point.x.to_bytes(32, "big")).digest()
        tweaked = (ORDER - secret if point.y % 2 else secret) + int.from_bytes(
            tweak, "big"
        )
        output_key = public_point(tweaked % ORDER).x.to_bytes(32, "big")
        assert descriptor.script(index) == witness_script(1, output_key)


@pytest.mark.parametrize(("text", "is_right"), PUBLISHED["checksums"])
def test_a_published_checksum_is_found_valid_or_not(text, is_right):
    assert has_valid_checksum(text) == is_right


def test_one_key_has_one_spelling():
    """Another origin, another mark of a hardened step, and branches change no script."""
    spellings = [
        f"{A}/0/*",
        f"[deadbeef/84h/0h/0h]{A}/0/*",
        f"[DEADBEEF/84'/0'/0']{A}/<0;1>/*",
    ]
    descriptors = [parse(f"wpkh({key})") for key in spellings]
    assert len({descriptor.script(7) for descriptor in descriptors}) == 1
    assert str(descriptors[1]) == str(descriptors[2])


FORMS = [
    "pkh({}/0/*)",
    "wpkh({}/0/*)",
    "sh(wpkh({}/0/*))",
    "tr({}/0/*)",
    "wsh(sortedmulti(2,{}/0/*,{}/<0;1>/*,{}/5/7/*))",
    "wsh(multi(3,{}/*,{}/0/*,{}/0/*))",
    "sh(wsh(multi(1,{}/0/*,{}/0/*)))",
    "sh(sortedmulti(2,{}/0/*,{}/0/*))",
]


@pytest.mark.parametrize("form", FORMS)
def test_addresses_of_random_accounts_are_those_of_the_bitcoin_dev_kit(form):
    bdk = pytest.importorskip("bdkpython")
    for _ in range(5):
        wallets = (
            HdWallet.from_seed(secrets.token_bytes(32)) for _ in range(form.count("{}"))
        )
        text = form.format(*(wallet.xpub() for wallet in wallets))
        exported = str(account_of(text, REGTEST))
        theirs = bdk.Descriptor(
            f"{exported}#{checksum(exported)}", bdk.NetworkKind.TEST
        )
        for index in (secrets.randbelow(HARDENED) for _ in range(5)):
            wanted = str(theirs.derive_address(index, bdk.Network.REGTEST))
            assert derive(text, index, REGTEST) == wanted, (text, index)


def many(count):
    return ",".join(f"{A}/{number}/*" for number in range(count))


@pytest.mark.parametrize(
    "form", ["sh(multi(15,{}))", "wsh(multi(20,{}))", "sh(wsh(multi(20,{})))"]
)
def test_a_multisig_has_as_many_keys_as_its_script_may(form):
    count = 15 if form.startswith("sh(multi") else 20
    assert len(parse(form.format(many(count))).script(0)) in (23, 34)
    refused = form.replace("15", "1").replace("20", "1").format(many(count + 1))
    with pytest.raises(
        InvalidDescriptor, match=f"{count + 1} keys, .* at most {count}"
    ):
        parse(refused)


NAMED = PUBLISHED["keys"] | {"CUT": A[:-1], "SHORT": A[:20], "TEN": "/0" * 10}
NAMED |= {"ZPRV": ZPRV, "X": POINT[2:], "TPUB": TPUB.xpub(bytes.fromhex("043587cf"))}
NAMED |= {"ZPUB": TPUB.xpub(bytes.fromhex("04b24746"))}
REFUSED = [
    *(
        (text.format(**NAMED), why)
        for why, texts in PUBLISHED["refused"].items()
        for text in texts
    ),
    ("", "not a descriptor"),
    ("w" * 8_001, "at most 8000 characters"),
]


@pytest.mark.parametrize(
    ("text", "why"), REFUSED, ids=[f"{why}: {t[:40]}" for t, why in REFUSED]
)
def test_what_is_no_account_is_refused_for_its_reason_and_not_repeated(text, why):
    with pytest.raises(InvalidDescriptor, match=why) as refused:
        parse(text)
    assert not any(
        key in str(refused.value) for key in (A, B, PRIVATE, ZPRV, WIF, POINT)
    )
