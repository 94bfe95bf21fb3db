"""The payer's private key: its script, its file, and ECDSA signatures (RFC 6979).

Use it only for coins without value. The time that signing takes depends on the secret,
so an attacker could learn the secret by measuring the time.
"""

import hmac
import secrets
import stat
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Self

from btcpay.bitcoin.address import p2pkh, witness_script
from btcpay.bitcoin.secp256k1 import ORDER, G, Point
from btcpay.bitcoin.wire import hash160, hash256


@dataclass(frozen=True)
class Key:
    """A private key. `secret` is a number from 1 to the curve's order - 1."""

    secret: int

    @classmethod
    def new(cls) -> Self:
        return cls(1 + secrets.randbelow(ORDER - 1))

    @cached_property
    def public_key(self) -> bytes:
        return public_point(self.secret).format()

    @property
    def script(self) -> bytes:
        """The P2WPKH script to which the wallet's coins are paid."""
        return witness_script(0, hash160(self.public_key))

    @property
    def script_code(self) -> bytes:
        """The script code that signatures commit to (BIP143)."""
        return p2pkh(hash160(self.public_key))

    def sign(self, preimage: bytes) -> bytes:
        return sign_digest(self.secret, hash256(preimage))


def open_key(path: Path) -> Key:
    """Returns the key in the file `path` (hex, mode 0600).

    If there is no file, creates it with a new key. So the wallet keeps its coins after
    a restart.
    """
    if not path.exists():
        path.touch(mode=stat.S_IRUSR | stat.S_IWUSR)
        path.write_text(f"{Key.new().secret:064x}\n")
    return Key(int(path.read_text(), 16))


def public_point(secret: int) -> Point:
    """Returns the point secret * G of the curve. `secret` must be from 1 to ORDER - 1."""
    return G.add(secret - 1)


def sign_digest(secret: int, digest: bytes) -> bytes:
    """Returns the DER signature of a 32-byte digest, with the lower s (BIP62)."""
    number = int.from_bytes(digest, "big")
    nonce = _nonce(secret, digest)
    r = public_point(nonce).x % ORDER
    s = pow(nonce, -1, ORDER) * (number + r * secret) % ORDER
    low_s = min(s, ORDER - s)
    body = _der_integer(r) + _der_integer(low_s)
    return b"\x30" + len(body).to_bytes(1, "big") + body


def _nonce(secret: int, digest: bytes) -> int:
    """Returns the first candidate for the nonce of RFC 6979, section 3.2, with SHA-256.

    RFC 6979 tries further candidates if the first is invalid. This is omitted, since it
    has a probability of 2**-127.
    """
    number = int.from_bytes(digest, "big") % ORDER
    seed = secret.to_bytes(32, "big") + number.to_bytes(32, "big")
    key = bytes(32)
    value = b"\x01" * 32
    for round_byte in (b"\x00", b"\x01"):
        key = hmac.digest(key, value + round_byte + seed, "sha256")
        value = hmac.digest(key, value, "sha256")
    return int.from_bytes(hmac.digest(key, value, "sha256"), "big")


def _der_integer(number: int) -> bytes:
    """Returns a DER INTEGER: the fewest bytes whose highest bit is not set."""
    data = number.to_bytes(number.bit_length() // 8 + 1, "big")
    return b"\x02" + len(data).to_bytes(1, "big") + data
