"""The bytes of the Bitcoin protocol: compact sizes, hashes, a reader that never overruns."""

import hashlib


class DecodeError(ValueError):
    """Bytes that do not decode."""


def hash256(data: bytes) -> bytes:
    """Double SHA-256: transaction ids, block hashes, merkle nodes."""
    return hashlib.sha256(hashlib.sha256(data).digest()).digest()


def hash160(data: bytes) -> bytes:
    """RIPEMD-160 of SHA-256: key and script hashes. OpenSSL 3.0.0 to 3.0.6 lacks the former."""
    digest = hashlib.sha256(data).digest()
    return hashlib.new("ripemd160", digest, usedforsecurity=False).digest()


def hash_to_hex(digest: bytes) -> str:
    """A hash of Bitcoin (a transaction's, a block's) as people write it: reversed, in hex."""
    return digest[::-1].hex()


def hash_from_hex(text: str) -> bytes:
    """The inverse of `hash_to_hex`."""
    return bytes.fromhex(text)[::-1]


def ser_uint32(number: int) -> bytes:
    return number.to_bytes(4, "little")


def ser_compact_size(number: int) -> bytes:
    """A length as Bitcoin prefixes it: 1, 3, 5 or 9 bytes."""
    if number < 0xFD:
        return number.to_bytes(1, "little")
    if number <= 0xFFFF:
        return b"\xfd" + number.to_bytes(2, "little")
    if number <= 0xFFFFFFFF:
        return b"\xfe" + number.to_bytes(4, "little")
    return b"\xff" + number.to_bytes(8, "little")


def ser_string(data: bytes) -> bytes:
    return ser_compact_size(len(data)) + data


class ByteReader:
    """Reads forward through bytes, from `at`; raises DecodeError where they end too early."""

    def __init__(self, data: bytes):
        self._data = data
        self.at = 0

    def read(self, count: int) -> bytes:
        start = self.at
        self.at = self.at + count
        if self.at > len(self._data):
            raise DecodeError(
                f"the data ends {self.at - len(self._data)} bytes too early"
            )
        return self._data[start : self.at]

    def read_uint(self, size: int) -> int:
        """An unsigned little-endian integer of `size` bytes."""
        return int.from_bytes(self.read(size), "little")

    def read_compact_size(self) -> int:
        """A compact size; a longer form than needed is refused, as Bitcoin Core does."""
        first = self.read_uint(1)
        if first < 0xFD:
            return first
        size = {0xFD: 2, 0xFE: 4, 0xFF: 8}[first]
        number = self.read_uint(size)
        if len(ser_compact_size(number)) != size + 1:
            raise DecodeError("a length is not in its shortest form")
        return number

    def read_string(self) -> bytes:
        return self.read(self.read_compact_size())

    def starts_with(self, prefix: bytes) -> bool:
        """Looks at the bytes ahead without reading them."""
        return self._data.startswith(prefix, self.at)

    def finish(self) -> None:
        if self.at != len(self._data):
            raise DecodeError(f"{len(self._data) - self.at} bytes follow the end")
