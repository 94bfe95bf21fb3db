"""Extended public keys and the keys below them (BIP32): nothing here knows a private key."""

import hmac
from dataclasses import dataclass
from functools import cached_property
from typing import Self

from btcpay.bitcoin.secp256k1 import Point
from btcpay.bitcoin.wire import Malformed

HARDENED = 0x80000000  # BIP32: the first of the indexes that need the private key
SERIALIZED_SIZE = 78
NO_PARENT = bytes(4)  # the parent's fingerprint in a master key


class InvalidChild(ValueError):
    """An index that has no key, or none without the private key."""


@dataclass(frozen=True)
class ExtendedKey:
    """A point and its chain code, with what BIP32 writes beside them.

    `child_number` is the index below the parent, from 2**31 if it was derived hardened.
    """

    point: Point
    chain_code: bytes
    depth: int = 0
    child_number: int = 0

    @classmethod
    def parse(cls, payload: bytes) -> Self:
        """From BIP32's 78 bytes: version 4, depth 1, parent 4, number 4, chain code 32, key 33.

        The caller judges the version. Raises Malformed for a key that BIP32 calls invalid.
        """
        if len(payload) != SERIALIZED_SIZE:
            raise Malformed(f"it has {len(payload)} bytes, not {SERIALIZED_SIZE}")
        depth, parent = payload[4], payload[5:9]
        child_number = int.from_bytes(payload[9:13], "big")
        if depth == 0 and (parent, child_number) != (NO_PARENT, 0):
            raise Malformed("its depth is 0, and yet it has a parent or a child number")
        try:
            point = Point.parse(payload[45:])
        except ValueError:
            raise Malformed("its public key is no point of the curve") from None
        return cls(point, payload[13:45], depth, child_number)

    @cached_property
    def public_key(self) -> bytes:
        """The point, compressed: 33 bytes."""
        return self.point.format()

    def child(self, index: int) -> Self:
        """CKDpub: the key at `index`, from 0 to 2**31 - 1.

        Raises InvalidChild for any other index, and for one that BIP32 says to skip because its
        tweak is no scalar or its point is at infinity (one index in 2**127).
        """
        if not 0 <= index < HARDENED:
            raise InvalidChild(f"index {index} is not from 0 to 2**31 - 1")
        digest = hmac.digest(self.chain_code, self.public_key + index.to_bytes(4, "big"), "sha512")
        try:
            point = self.point.add(int.from_bytes(digest[:32], "big"))
        except ValueError:
            raise InvalidChild(f"index {index} has no valid key: use the next") from None
        return type(self)(point, digest[32:], self.depth + 1, index)
