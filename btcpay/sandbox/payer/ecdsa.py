"""ECDSA with RFC 6979's nonces, for play money alone: not in constant time, it can be measured."""

import hmac
from collections.abc import Iterator

from btcpay.bitcoin.secp256k1 import ORDER, G, Point


def public_point(secret: int) -> Point:
    """secret * G, for a secret from 1 to ORDER - 1."""
    return G.add(secret - 1)


def sign(secret: int, digest: bytes) -> bytes:
    """The signature of a digest of 32 bytes, in DER, with the lower of the two s (BIP62)."""
    number = int.from_bytes(digest, "big")
    for nonce in _nonces(secret, digest):
        r = public_point(nonce).x % ORDER
        s = pow(nonce, -1, ORDER) * (number + r * secret) % ORDER
        if r and s:
            break
    body = _der_integer(r) + _der_integer(min(s, ORDER - s))
    return b"\x30" + len(body).to_bytes(1, "big") + body


def _nonces(secret: int, digest: bytes) -> Iterator[int]:
    """RFC 6979, 3.2 with SHA-256: what a digest is signed with, and what if that does not do."""
    seed = secret.to_bytes(32, "big") + (int.from_bytes(digest, "big") % ORDER).to_bytes(32, "big")
    key, value = bytes(32), b"\x01" * 32
    for round_byte in (b"\x00", b"\x01"):
        key = hmac.digest(key, value + round_byte + seed, "sha256")
        value = hmac.digest(key, value, "sha256")
    while True:
        value = hmac.digest(key, value, "sha256")
        nonce = int.from_bytes(value, "big")
        if 1 <= nonce < ORDER:
            yield nonce
        key = hmac.digest(key, value + b"\x00", "sha256")
        value = hmac.digest(key, value, "sha256")


def _der_integer(number: int) -> bytes:
    """An INTEGER: the fewest bytes whose highest bit is not set."""
    data = number.to_bytes(number.bit_length() // 8 + 1, "big")
    return b"\x02" + len(data).to_bytes(1, "big") + data
