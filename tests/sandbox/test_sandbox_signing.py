"""The sandbox's own ECDSA signatures, judged by published vectors."""

import hashlib

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from btcpay.bitcoin.secp256k1 import ORDER
from btcpay.bitcoin.tx import parse_tx
from btcpay.bitcoin.wire import hash256
from btcpay.sandbox.payer.key import Key, open_key, public_point, sign_digest
from btcpay.sandbox.payer.wallet import SIGHASH_ALL, witness_preimage

# RFC 6979 has no vectors of secp256k1. These are those that trezor-crypto, python-ecdsa and
# bitcoinjs share, with a nonce by HMAC-SHA256 over SHA-256: secret, message, r and lower s.
RFC6979 = [
    (1, b"Satoshi Nakamoto", "934b1ea10a4b3c1757e2b0c017d0b6143ce3c9a7e6a4a49860d7a6ab210ee3d8"
        "2442ce9d2b916064108014783e923ec36b49743e2ffa1c4496f01a512aafd9e5"),
    (1, b"All those moments will be lost in time, like tears in rain. Time to die...",
        "8600dbd41e348fe5c9465ab92d23e3db8b98b873beecd930736488696438cb6b"
        "547fe64427496db33bf66019dacbf0039c04199abb0122918601db38a72cfc21"),
    (ORDER - 1, b"Satoshi Nakamoto",
        "fd567d121db66e382991534ada77a6bd3106f0a1098c231e47993447cd6af2d0"
        "6b39cd0eb1bc8603e159ef5c20a5c8ad685a45b06ce9bebed3f153d10d93bed5"),
    (0xF8B8AF8CE3C7CCA5E300D33939540C10D45CE001B8F252BFBC57BA0342904181, b"Alan Turing",
        "7063ae83e7f62bbb171798131b4a0564b956930092b33b07b395615d9ec7e15c"
        "58dfcc1e00a35e1572f366ffe34ba0fc47db1e7189759b9fb233c5b05ab388ea"),
]  # fmt: skip


@pytest.mark.parametrize(
    ("secret", "message", "numbers"), [pytest.param(*v, id=f"{v[0]:x}, {v[1]!r}") for v in RFC6979]
)
def test_a_published_signature(secret, message, numbers):
    signature = sign_digest(secret, hashlib.sha256(message).digest())
    assert b"".join(n.to_bytes(32, "big") for n in der(signature)).hex() == numbers


# BIP143's P2SH-P2WPKH example: the transaction, and what is signed.
BIP143_TX = (
    "0100000001db6b1b20aa0fd7b23880be2ecbd4a98130974cf4748fb66092ac4d3ceb1a5477010000000"
    "0feffffff02b8b4eb0b000000001976a914a457b684d7f0d539a46a45bbc043f35b59d0d96388ac00"
    "08af2f000000001976a914fd270b1ee6abcaea97fea7ad0402e8bd8ad6d77c88ac92040000"
)
BIP143_SECRET = 0xEB696A065EF48A2192DA5B28B694F87544B30FAE8327C4510137A922F32C6DCF
BIP143_DIGEST = "64f3b0f4dd2bb3aa1ce8566d220cc74dda9df97d8490cc81d89d735c92e59fb6"
BIP143_SIGNATURE = (
    "3044022047ac8e878352d3ebbde1c94ce3a10d057c24175747116f8288e5d794d12d482f0220217f36a4"
    "85cae903c713331d877c1f64677e3622ad4010726870540656fe9dcb"
)


def test_the_example_of_bip143_is_signed_as_it_is_there():
    key, tx = Key(BIP143_SECRET), parse_tx(bytes.fromhex(BIP143_TX))
    preimage = witness_preimage(tx, 0, key.script_code, 1_000_000_000)
    assert key.script.hex() == "a9144733f37cf4db86fbc2efed2500b4f4e49f31202387"
    assert hash256(preimage).hex() == BIP143_DIGEST
    assert key.sign(preimage).hex() == BIP143_SIGNATURE
    assert SIGHASH_ALL == 1


@given(secret=st.integers(1, ORDER - 1), digest=st.binary(min_size=32, max_size=32))
@settings(max_examples=30)
def test_a_signature_is_one_of_the_public_key_and_has_the_lower_s(secret, digest):
    """By the equation of SEC 1, 4.1.4: x of (z/s) * G + (r/s) * Q is r."""
    r, s = der(sign_digest(secret, digest))
    assert 1 <= r < ORDER and 1 <= s <= ORDER // 2
    inverse, z = pow(s, -1, ORDER), int.from_bytes(digest, "big")
    assert public_point((z + r * secret) * inverse % ORDER).x % ORDER == r


def der(signature):
    """r and s; strict as BIP66 is."""
    assert signature[0] == 0x30 and signature[1] == len(signature) - 2
    size = signature[3]
    r, rest = signature[4 : 4 + size], signature[4 + size :]
    s = rest[2:]
    assert signature[2] == rest[0] == 2 and rest[1] == len(s)
    for number in (r, s):
        assert number[0] < 0x80 and (number[0] or number[1] >= 0x80)
    return int.from_bytes(r, "big"), int.from_bytes(s, "big")


def test_a_key_is_kept_for_its_owner_alone(tmp_path):
    file = tmp_path / "wallet.key"
    assert open_key(file) == open_key(file) != Key.new()
    assert file.stat().st_mode & 0o777 == 0o600
