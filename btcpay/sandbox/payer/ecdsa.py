"""ECDSA with RFC 6979's nonces, for play money alone: its duration depends on the secret."""

import hmac

from btcpay.bitcoin.secp256k1 import ORDER, G, Point


def public_point(secret: int) -> Point:
    """secret * G, for a secret from 1 to ORDER - 1."""
    return G.add(secret - 1)


def sign(secret: int, digest: bytes) -> bytes:
    """The signature of a digest of 32 bytes, in DER, with the lower of the two s (BIP62)."""
    number, nonce = int.from_bytes(digest, "big"), _nonce(secret, digest)
    r = public_point(nonce).x % ORDER
    s = pow(nonce, -1, ORDER) * (number + r * secret) % ORDER
    body = _der_integer(r) + _der_integer(min(s, ORDER - s))
    return b"\x30" + len(body).to_bytes(1, "big") + body


def _nonce(secret: int, digest: bytes) -> int:
    """RFC 6979, 3.2 with SHA-256, without the next candidate: one in 2**127 would need it."""
    seed = secret.to_bytes(32, "big") + (int.from_bytes(digest, "big") % ORDER).to_bytes(32, "big")
    key, value = bytes(32), b"\x01" * 32
    for round_byte in (b"\x00", b"\x01"):
        key = hmac.digest(key, value + round_byte + seed, "sha256")
        value = hmac.digest(key, value, "sha256")
    return int.from_bytes(hmac.digest(key, value, "sha256"), "big")


def _der_integer(number: int) -> bytes:
    """An INTEGER: the fewest bytes whose highest bit is not set."""
    data = number.to_bytes(number.bit_length() // 8 + 1, "big")
    return b"\x02" + len(data).to_bytes(1, "big") + data
