"""The sandbox's own ECDSA signatures, judged by published vectors."""

import hashlib
import json
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from btcpay.bitcoin.secp256k1 import ORDER
from btcpay.bitcoin.tx import parse_tx
from btcpay.bitcoin.wire import hash256
from btcpay.sandbox.payer.key import Key, open_key, public_point, sign_digest
from btcpay.sandbox.payer.signing import SIGHASH_ALL, witness_preimage
from tests.support.paths import VECTORS

PUBLISHED: dict[str, Any] = json.loads(
    (VECTORS / "signatures.json").read_text(encoding="utf-8")
)


# RFC 6979 has no vectors of secp256k1. These are those that trezor-crypto, python-ecdsa and
# bitcoinjs share, with a nonce by HMAC-SHA256 over SHA-256: secret, message, r and lower s.
@pytest.mark.parametrize(("secret", "message", "numbers"), PUBLISHED["rfc6979"])
def test_a_digest_is_signed_as_other_libraries_sign_it(secret, message, numbers):
    signature = sign_digest(int(secret, 16), hashlib.sha256(message.encode()).digest())
    assert b"".join(n.to_bytes(32, "big") for n in der(signature)).hex() == numbers


def test_the_example_of_bip143_is_signed_as_it_is_there():
    """Native P2WPKH: the transaction's second input, and what is signed."""
    told = PUBLISHED["bip143"]
    key = Key(int(told["secret"], 16))
    tx = parse_tx(bytes.fromhex(told["tx"]))
    preimage = witness_preimage(tx, 1, key.script_code, told["sats"])
    assert key.script.hex() == told["script"]
    assert hash256(preimage).hex() == told["digest"]
    assert key.sign(preimage).hex() == told["signature"]
    assert SIGHASH_ALL == 1


@given(secret=st.integers(1, ORDER - 1), digest=st.binary(min_size=32, max_size=32))
@settings(max_examples=30)
def test_a_signature_is_one_of_the_public_key_and_has_the_lower_s(secret, digest):
    """By the equation of SEC 1, 4.1.4: x of (z/s) * G + (r/s) * Q is r."""
    r, s = der(sign_digest(secret, digest))
    assert 1 <= r < ORDER and 1 <= s <= ORDER // 2
    inverse = pow(s, -1, ORDER)
    z = int.from_bytes(digest, "big")
    assert public_point((z + r * secret) * inverse % ORDER).x % ORDER == r


def der(signature):
    """r and s; strict as BIP66 is."""
    assert signature[0] == 0x30 and signature[1] == len(signature) - 2
    size = signature[3]
    r = signature[4 : 4 + size]
    rest = signature[4 + size :]
    s = rest[2:]
    assert signature[2] == rest[0] == 2 and rest[1] == len(s)
    for number in (r, s):
        assert number[0] < 0x80 and (number[0] or number[1] >= 0x80)
    return int.from_bytes(r, "big"), int.from_bytes(s, "big")


def test_a_key_is_kept_for_its_owner_alone(tmp_path):
    file = tmp_path / "wallet.key"
    assert open_key(file) == open_key(file) != Key.new()
    assert file.stat().st_mode & 0o777 == 0o600
