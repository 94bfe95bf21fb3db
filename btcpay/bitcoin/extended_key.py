"""Extended public keys (BIP32)."""

import hmac
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Self

from btcpay.bitcoin.secp256k1 import Point
from btcpay.bitcoin.wire import DecodeError

HARDENED = 0x80000000  # BIP32: the first hardened index
SERIALIZED_SIZE = 78
# Index of the key in the 78 bytes. Its first byte is 0 for a private key, in any version.
KEY_AT = 45


class InvalidChild(ValueError):
    """The index is hardened or out of range, or has no valid public key."""


@dataclass(frozen=True)
class ExtendedKey:
    """An extended public key: a point and its chain code (32 bytes).

    `depth` is the number of derivation steps from the master key.
    """

    point: Point
    chain_code: bytes
    depth: int = 0

    @classmethod
    def parse(cls, payload: bytes) -> Self:
        """Parses BIP32's serialization of an extended public key (78 bytes).

        Its fields are the version (4 bytes), depth (1), parent fingerprint (4), child
        number (4), chain code (32) and key (33). The version is not checked. Raises
        DecodeError if BIP32 calls the key invalid.
        """
        if len(payload) != SERIALIZED_SIZE:
            raise DecodeError(f"it has {len(payload)} bytes, not {SERIALIZED_SIZE}")
        depth = payload[4]
        parent_and_number = payload[5:13]
        if depth == 0 and any(parent_and_number):
            raise DecodeError(
                "its depth is 0, and yet it has a parent or a child number"
            )
        try:
            point = Point.parse(payload[KEY_AT:])
        except ValueError:
            raise DecodeError("its public key is no point of the curve") from None
        return cls(point, payload[13:KEY_AT], depth)

    @cached_property
    def public_key(self) -> bytes:
        """The compressed public key (33 bytes)."""
        return self.point.format()

    def child(self, index: int) -> Self:
        """Returns the child key at `index`, from 0 to 2**31 - 1 (BIP32, CKDpub).

        Raises InvalidChild for any other index. It is also raised if BIP32 says that
        the index must be skipped, which has a probability below 2**-127.
        """
        tweak, chain_code = self._tweak_and_chain_code(index)
        try:
            point = self.point.add(tweak)
        except ValueError:
            raise InvalidChild(
                f"index {index} has no valid key: use the next"
            ) from None
        return type(self)(point, chain_code, self.depth + 1)

    def children(self, indexes: Sequence[int]) -> list[Self]:
        """Returns the child key at each index, faster than a call of `child` for each.

        Raises InvalidChild if `child` would raise it for one of the indexes.
        """
        tweaks = []
        chain_codes = []
        for index in indexes:
            tweak, chain_code = self._tweak_and_chain_code(index)
            tweaks.append(tweak)
            chain_codes.append(chain_code)
        try:
            points = self.point.add_each(tweaks)
        except ValueError:
            raise InvalidChild(f"one of {indexes} has no valid key") from None
        return [
            type(self)(point, chain_code, self.depth + 1)
            for point, chain_code in zip(points, chain_codes, strict=True)
        ]

    def _tweak_and_chain_code(self, index: int) -> tuple[int, bytes]:
        """Returns the tweak that BIP32 adds to the point, and the child's chain code."""
        if not 0 <= index < HARDENED:
            raise InvalidChild(f"index {index} is not from 0 to 2**31 - 1")
        data = self.public_key + index.to_bytes(4, "big")
        digest = hmac.digest(self.chain_code, data, "sha512")
        return int.from_bytes(digest[:32], "big"), digest[32:]
