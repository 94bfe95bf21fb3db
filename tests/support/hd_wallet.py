"""A wallet with its private keys (BIP32), such as a merchant has: no server of theirs does."""

import hmac
from dataclasses import dataclass
from typing import Self

from bit.base58 import b58encode_check
from coincurve import PrivateKey

from btcpay.bitcoin.hd import HARDENED, NO_PARENT, ExtendedKey

XPUB, XPRV = bytes.fromhex("0488b21e"), bytes.fromhex("0488ade4")
TPUB = bytes.fromhex("043587cf")


@dataclass(frozen=True)
class HdWallet:
    """A private key, its chain code, and what BIP32 writes beside them."""

    key: PrivateKey
    chain_code: bytes
    depth: int = 0
    parent_fingerprint: bytes = NO_PARENT
    child_number: int = 0

    @classmethod
    def from_seed(cls, seed: bytes) -> Self:
        """The master key of a seed; ValueError for the seed that BIP32 calls invalid."""
        digest = hmac.digest(b"Bitcoin seed", seed, "sha512")
        return cls(PrivateKey(digest[:32]), digest[32:])

    @property
    def secret(self) -> bytes:
        return self.key.secret

    @property
    def public(self) -> ExtendedKey:
        """BIP32's N: the same place in the tree, without the private key."""
        where = self.depth, self.parent_fingerprint, self.child_number
        return ExtendedKey(self.key.public_key, self.chain_code, *where)

    def child(self, index: int) -> Self:
        """CKDpriv, hardened from 2**31; ValueError for the one of 2**127 that has no key."""
        data = b"\x00" + self.secret if index >= HARDENED else self.public.public_key
        digest = hmac.digest(self.chain_code, data + index.to_bytes(4, "big"), "sha512")
        key, fingerprint = self.key.add(digest[:32]), self.public.fingerprint
        return type(self)(key, digest[32:], self.depth + 1, fingerprint, index)

    def at(self, path: str) -> Self:
        """The key at a path such as m/84'/1'/0'."""
        found = self
        for step in path.split("/")[1:]:
            found = found.child(int(step.rstrip("'")) + HARDENED * step.endswith("'"))
        return found

    def xpub(self, version: bytes = TPUB) -> str:
        return b58encode_check(self.public.serialize(version))

    def xprv(self) -> str:
        """As BIP32 writes it: in the place of the point a zero and the key."""
        return b58encode_check(self.public.serialize(XPRV)[:45] + b"\x00" + self.secret)
