"""A wallet with its private keys (BIP32), as a merchant has it; the server never does."""

import hmac
from dataclasses import dataclass
from typing import Self

from btcpay.bitcoin.base58 import b58check_encode
from btcpay.bitcoin.extended_key import HARDENED, ExtendedKey
from btcpay.bitcoin.secp256k1 import ORDER
from btcpay.bitcoin.wire import hash160
from btcpay.sandbox.payer.key import public_point

XPUB = bytes.fromhex("0488b21e")
XPRV = bytes.fromhex("0488ade4")
TPUB = bytes.fromhex("043587cf")


@dataclass(frozen=True)
class HdWallet:
    """A private key, its chain code, and what BIP32 writes beside them."""

    secret: int
    chain_code: bytes
    depth: int = 0
    parent_fingerprint: bytes = bytes(4)
    child_number: int = 0

    @classmethod
    def from_seed(cls, seed: bytes) -> Self:
        """The master key of a seed."""
        digest = hmac.digest(b"Bitcoin seed", seed, "sha512")
        return cls(int.from_bytes(digest[:32], "big"), digest[32:])

    @property
    def padded(self) -> bytes:
        """The secret where BIP32 writes a point: 33 bytes."""
        return self.secret.to_bytes(33, "big")

    @property
    def public(self) -> ExtendedKey:
        """BIP32's N: the same place in the tree, without the private key."""
        return ExtendedKey(public_point(self.secret), self.chain_code, self.depth)

    def serialized(self, version: bytes) -> bytes:
        """The bytes that `ExtendedKey.parse` reads, behind a version of 4 bytes."""
        number = self.child_number.to_bytes(4, "big")
        place = self.depth.to_bytes(1, "big") + self.parent_fingerprint + number
        return version + place + self.chain_code + self.public.public_key

    def child(self, index: int) -> Self:
        """CKDpriv, hardened from 2**31."""
        data = self.padded if index >= HARDENED else self.public.public_key
        digest = hmac.digest(self.chain_code, data + index.to_bytes(4, "big"), "sha512")
        child = (int.from_bytes(digest[:32], "big") + self.secret) % ORDER
        parent = hash160(self.public.public_key)[:4]
        return type(self)(child, digest[32:], self.depth + 1, parent, index)

    def at(self, path: str) -> Self:
        """The key at a path such as m/84'/1'/0'."""
        found = self
        for step in path.split("/")[1:]:
            found = found.child(int(step.rstrip("'")) + HARDENED * step.endswith("'"))
        return found

    def xpub(self, version: bytes = TPUB) -> str:
        return b58check_encode(self.serialized(version))

    def xprv(self) -> str:
        """As BIP32 writes it: in the place of the point a zero and the key."""
        return b58check_encode(self.serialized(XPRV)[:45] + self.padded)
