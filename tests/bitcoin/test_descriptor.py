"""Descriptors by the vectors of BIP380 to 383, 386 and 389; each refused one says why."""

import secrets
from hashlib import sha256

import pytest
from builders import REGTEST
from hd_wallet import HdWallet

from btcpay.bitcoin.address import b58check_decode, b58check_encode, p2sh, witness_script
from btcpay.bitcoin.descriptor import parse, taproot_output_key
from btcpay.bitcoin.descriptor_checksum import checksum, is_checked
from btcpay.bitcoin.descriptor_keys import DescriptorRefused
from btcpay.bitcoin.hd import HARDENED
from btcpay.bitcoin.secp256k1 import ORDER, Point
from btcpay.bitcoin.wire import hash160
from btcpay.merchants.account import derive, parse_account
from btcpay.merchants.wallet_export import receiving
from btcpay.sandbox.payer.ecdsa import public_point

A = (
    "xpub6ERApfZwUNrhLCkDtcHTcxd75RbzS1ed54G1LkBUHQVHQKqhMkhgbmJbZRkrgZw4koxb5JaHWkY4ALHY2grBGRjaDM"
    "zQLcgJvLJuZZvRcEL"
)
B = (
    "xpub68NZiKmJWnxxS6aaHmn81bvJeTESw724CRDs6HbuccFQN9Ku14VQrADWgqbhhTHBaohPX4CjNLf9fq9MYo6oDaPPLP"
    "xSb7gwQN3ih19Zm4Y"
)
C = (
    "xpub69H7F5d8KSRgmmdJg2KhpAK8SR3DjMwAdkxj3ZuxV27CprR9LgpeyGmXUbC6wb7ERfvrnKZjXoUmmDznezpbZb7ap6"
    "r1D3tgFxHmwMkQTPH"
)
PRIVATE = (
    "xprvA1RpRA33e1JQ7ifknakTFpgNXPmW2YvmhqLQYMmrj4xJXXWYpDPS3xz7iAxn8L39njGVyuoseXzU6rcxFLJ8HFsTjS"
    "yQbLYnMpCqE2VbFWc"
)
WIF = "L4rK1yDtCWekvXuE6oXD9jCYfFNV2cWRpVuPLBcCU2z8TrisoyY1"
ZPRV = b58check_encode(bytes.fromhex("04b2430c") + b58check_decode(PRIVATE)[4:])
POINT = "03a34b99f22c790c4e36b2b3c2c35a36db06226e41c692fc82b8b56ac1c540c5bd"
BIP86 = (
    "xpub6BgBgsespWvERF3LHQu6CnqdvfEvtMcQjYrcRzx53QJjSxarj2afYWcLteoGVky7D3UKDP9QyrLprQ3VCECoY49yfd"
    "DEHGCtMMj92pReUsQ"
)
TPUB = HdWallet.from_seed(b"a wallet of the tests").at("m/84'/1'/0'")

SCRIPTS = [
    pytest.param(
        f"wpkh([ffffffff/13']{C}/1/2/*)",
        "0014326b2249e3a25d5dc60935f044ee835d090ba859"
        " 0014af0bd98abc2f2cae66e36896a39ffe2d32984fb7"
        " 00141fa798efd1cbf95cebf912c031b8a4a6e9fb9f27",
        id="BIP382, wpkh",
    ),
    pytest.param(
        f"tr({BIP86}/<0;1>/*)",
        "5120a60869f0dbcf1dc659c9cecbaf8050135ea9e8cdc487053f1dc6880949dc684c"
        " 5120a82f29944d65b86ae6b5e5cc75e294ead6c59391a1edc5e016e3498c67fc7bbb",
        id="BIP86, the receiving branch",
    ),
    pytest.param(
        f"tr([73c5da0a/86h/0'/0h]{BIP86}/1/*)",
        "5120882d74e5d0572d5a816cef0041a96b6c1de832f6f9676d9605c44d5e9a97d3dc",
        id="BIP86, the change branch",
    ),
]


@pytest.mark.parametrize(("text", "scripts"), SCRIPTS)
def test_a_published_descriptor_has_the_published_scripts(text, scripts):
    wanted = scripts.split()
    descriptor = parse(f"{text}#{checksum(text)}")
    assert [descriptor.script(index).hex() for index in range(len(wanted))] == wanted
    assert str(parse(str(descriptor))) == str(descriptor)


# BIP383 has it bare, so what stands in wsh is compared: the script itself.
SORTED = [
    "5221025d5fc65ebb8d44a5274b53bac21ff8307fec2334a32df05553459f8b1f7fe1b62102fbd47cc8034098f0e6a9"
    "4c6aeee8528abf0a2153a5d8e46d325b7284c046784652ae",
    "52210264fd4d1f5dea8ded94c61e9641309349b62f27fbffe807291f664e286bfbe6472103f4ece6dfccfa37b211eb"
    "3d0af4d0c61dba9ef698622dc17eecdf764beeb005a652ae",
    "5221022ccabda84c30bad578b13c89eb3b9544ce149787e5b538175b1d1ba259cbb83321024d902e1a2fc7a8755ab5"
    "b694c575fce742c48d9ff192e63df5193e4c7afe1f9c52ae",
]


@pytest.mark.parametrize("outer", ["wsh", "sh", "sh(wsh"])
def test_sorted_keys_make_the_published_script_whatever_their_order(outer):
    def behind(inner):
        inner = witness_script(0, sha256(inner).digest()) if "wsh" in outer else inner
        return p2sh(hash160(inner)) if outer.startswith("sh") else inner

    for keys in (f"{A}/*,{B}/0/0/*", f"{B}/0/0/*,{A}/*"):
        descriptor = parse(f"{outer}(sortedmulti(2,{keys})){')' * outer.count('(')}")
        scripts = [descriptor.script(index) for index in range(3)]
        assert scripts == [behind(bytes.fromhex(script)) for script in SORTED]


def test_what_is_not_sorted_depends_on_the_order_of_the_keys():
    one, other = (
        parse(f"wsh(multi(1,{keys}))") for keys in (f"{A}/0/*,{B}/0/*", f"{B}/0/*,{A}/0/*")
    )
    assert one.script(0) != other.script(0)


def test_the_key_path_of_bip341():
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
        tweaked = (ORDER - secret if point.y % 2 else secret) + int.from_bytes(tweak, "big")
        output_key = public_point(tweaked % ORDER).x.to_bytes(32, "big")
        assert descriptor.script(index) == witness_script(1, output_key)


CHECKSUMS = [  # BIP380
    ("raw(deadbeef)#89f8spxm", True),
    ("raw(deadbeef)#", False),
    ("raw(deadbeef)#89f8spxmx", False),
    ("raw(deadbeef)#89f8spx", False),
    ("raw(deedbeef)#89f8spxm", False),
    ("raw(deedbeef)##9f8spxm", False),
    ("raw(Ü)#00000000", False),
]


@pytest.mark.parametrize(("text", "is_right"), CHECKSUMS)
def test_a_published_checksum(text, is_right):
    assert is_checked(text) == is_right


def test_one_key_has_one_spelling():
    """Another origin, another mark of a hardened step, and branches change no script."""
    spellings = [f"{A}/0/*", f"[deadbeef/84h/0h/0h]{A}/0/*", f"[DEADBEEF/84'/0'/0']{A}/<0;1>/*"]
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
        wallets = (HdWallet.from_seed(secrets.token_bytes(32)) for _ in range(form.count("{}")))
        text = form.format(*(wallet.xpub() for wallet in wallets))
        exported = receiving(parse_account(text, REGTEST))  # with a checksum, which is verified
        theirs = bdk.Descriptor(exported, bdk.NetworkKind.TEST)
        for index in (secrets.randbelow(HARDENED) for _ in range(5)):
            wanted = str(theirs.derive_address(index, bdk.Network.REGTEST))
            assert derive(text, index, REGTEST) == wanted, (text, index)


def many(count):
    return ",".join(f"{A}/{number}/*" for number in range(count))


@pytest.mark.parametrize("form", ["sh(multi(15,{}))", "wsh(multi(20,{}))", "sh(wsh(multi(20,{})))"])
def test_a_multisig_has_as_many_keys_as_its_script_may(form):
    count = 15 if form.startswith("sh(multi") else 20
    assert len(parse(form.format(many(count))).script(0)) in (23, 34)
    refused = form.replace("15", "1").replace("20", "1").format(many(count + 1))
    with pytest.raises(DescriptorRefused, match=f"{count + 1} keys, .* at most {count}"):
        parse(refused)


REFUSED = [
    (f"wpkh({PRIVATE}/0/*)", "private key"),
    (f"wsh(multi(1,{A}/0/*,{PRIVATE}/0/*))", "private key"),
    (f"wpkh({ZPRV}/0/*)", "private key"),
    (f"wpkh({WIF})", "private key"),
    (f"wpkh({WIF}/0/*)", "private key"),
    (f"wpkh({POINT})", "single public key"),
    (f"tr({POINT[2:]})", "single public key"),
    (f"wpkh({A}/0h/*)", "hardened step"),
    (f"wpkh({A}/0'/*)", "hardened step"),
    (f"wpkh({A}/0/*h)", "hardened step"),
    (f"wpkh({A}/<0h;1h>/*)", "hardened step"),
    (f"wpkh({A})", "range is missing"),
    (f"wpkh({A}/0)", "range is missing"),
    (f"wsh(multi(1,{A}/0/*,{B}/0))", "range is missing"),
    (f"wpkh({A}/0/*/*)", "a step"),
    (f"wpkh({A}//*)", "a step"),
    (f"wpkh({A}/0H/*)", "a step"),
    (f"wpkh({A}/1aa/*)", "a step"),
    (f"wpkh({A}/2147483648/*)", "a step"),
    (f"wpkh({A}/<0;2147483648>/*)", "a step"),
    (f"wpkh({A}/<>/*)", "a step"),
    (f"wpkh({A}/0>/*)", "a step"),
    (f"wpkh({A}/<0/*)", "a step"),
    (f"wpkh({A}/<0;>/*)", "a step"),
    (f"wpkh({A}/<0>/*)", "a step"),
    (f"wpkh({A}/<1;1>/*)", "a step"),
    (f"wpkh({A}/<0;1>/<2;3>/*)", "branches once"),
    (f"wpkh({A}{'/0' * 10}/*)", "ten steps"),
    (f"sh(multi(2,{A}/<1;2;3>/0/*,{B}/0/*,{C}/0/0/<3;4>/*))", "different numbers of branches"),
    (f"wsh(multi(1,{A}/0/*,{TPUB.xpub(bytes.fromhex('043587cf'))}/0/*))", "of mainnet, others"),
    (f"wsh(multi(1,{A}/0/*,{A}/0/*))", "the same key appears twice"),
    (f"wsh(multi(1,{A}/0/*,[deadbeef]{A}/<0;1>/*))", "the same key appears twice"),
    (f"wpkh({TPUB.xpub(bytes.fromhex('04b24746'))}/0/*)", "xpub or tpub"),
    (f"wpkh({A[:-1]}/0/*)", "not an xpub or tpub"),
    ("wpkh()", "not an xpub or tpub"),
    (f"wpkh([deadbeef]{A[:20]}/0/*)", "not an xpub or tpub"),
    (f"wpkh([deadbeef/0h/0h/0h/*]{A}/0/*)", "origin"),
    (f"wpkh([deadbeef/0h/0h/0h/]{A}/0/*)", "origin"),
    (f"wpkh([deadbef/0h/0h/0h]{A}/0/*)", "origin"),
    (f"wpkh([deadbeeef/0h/0h/0h]{A}/0/*)", "origin"),
    (f"wpkh([deadbeef/0f/0f/0f]{A}/0/*)", "origin"),
    (f"wpkh([deadbeef/-0/-0/-0]{A}/0/*)", "origin"),
    (f"wpkh([deadbeef/0H/0H/0H]{A}/0/*)", "origin"),
    (f"wpkh([deadbeef/2147483648h]{A}/0/*)", "origin"),
    (f"wpkh([gaaaaaaa]{A}/0/*)", "origin"),
    (f"wpkh([deadbeef/<0;1>]{A}/0/*)", "origin"),
    (f"wpkh([aaaaaaaa][aaaaaaaa]{A}/0/*)", "not an xpub or tpub"),
    (f"wpkh(aaaaaaaa]{A}/0/*)", "not an xpub or tpub"),
    ("wpkh([deadbeef])", "not an xpub or tpub"),
    (f"tr({A}/0/*,pk({B}/0/*))", "taproot with a key alone|script tree"),
    (f"tr({A}/0/*,{{pk({B}/0/*),pk({C}/0/*)}})", "script tree"),
    (f"tr(multi_a(1,{A}/0/*))", "one key alone"),
    (f"wsh(tr({A}/0/*))", "not supported"),
    (f"sh(tr({A}/0/*))", "not supported"),
    (f"pk({A}/0/*)", "not supported"),
    (f"combo({A}/0/*)", "not supported"),
    (f"sh(pkh({A}/0/*))", "not supported"),
    (f"sh(sh(pkh({A}/0/*)))", "not supported"),
    (f"sh({A}/0/*)", "not supported"),
    (f"wsh({A}/0/*)", "not supported"),
    (f"wsh(wpkh({A}/0/*))", "not supported"),
    (f"wsh(wsh(multi(1,{A}/0/*)))", "not supported"),
    (f"multi(1,{A}/0/*)", "not supported"),
    (f"wsh(and_v(v:pk({A}/0/*),older(9)))", "miniscript"),
    ("raw(deadbeef)", "not supported"),
    ("addr(bc1qw508d6qejxtdg4y5r3zarvary0c5xw7kv8f3t4)", "not supported"),
    (f"wsh(multi(a,{A}/0/*))", "keys that must sign is"),
    (f"wsh(multi(0,{A}/0/*))", "keys that must sign is"),
    (f"wsh(multi(2,{A}/0/*))", "keys that must sign is"),
    ("wsh(multi(1))", "keys that must sign is"),
    (f"wsh(multi(٢,{A}/0/*,{B}/0/*))", "keys that must sign is"),
    (f"wpkh({A}/0/*)#00000000", "checksum"),
    (f"wpkh({A}/0/*)#", "checksum"),
    (A, "not a descriptor"),
    ("", "not a descriptor"),
    ("w" * 8_001, "at most 8000 characters"),
]


@pytest.mark.parametrize(("text", "why"), REFUSED, ids=[f"{why}: {t[:40]}" for t, why in REFUSED])
def test_what_is_no_account_is_refused_for_its_reason_and_not_repeated(text, why):
    with pytest.raises(DescriptorRefused, match=why) as refused:
        parse(text)
    assert not any(key in str(refused.value) for key in (A, B, PRIVATE, ZPRV, WIF, POINT))
