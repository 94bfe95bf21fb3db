"""Bitcoin's serialization: integers, lengths, strings and hashes, written and read."""

import hashlib

# How many bytes follow the first byte of a CompactSize from 0xFD on.
_COMPACT_SIZE_BYTES = {0xFD: 2, 0xFE: 4, 0xFF: 8}


class DecodeError(ValueError):
    """Bytes or a text that do not decode."""


def hash256(data: bytes) -> bytes:
    """Double SHA-256: transaction ids, block hashes, Merkle nodes."""
    return hashlib.sha256(hashlib.sha256(data).digest()).digest()


def hash160(data: bytes) -> bytes:
    """RIPEMD-160 of SHA-256: key and script hashes.

    OpenSSL 3.0.0 to 3.0.6 has no RIPEMD-160.
    """
    digest = hashlib.sha256(data).digest()
    return hashlib.new("ripemd160", digest, usedforsecurity=False).digest()


def hash_to_hex(digest: bytes) -> str:
    """The id of a transaction or a block as people write it: its bytes reversed, in hex."""
    return digest[::-1].hex()


def hash_from_hex(text: str) -> bytes:
    """The inverse of `hash_to_hex`."""
    return bytes.fromhex(text)[::-1]


def ser_uint32(number: int) -> bytes:
    return number.to_bytes(4, "little")


def ser_compact_size(number: int) -> bytes:
    """A CompactSize, which stands before every list and string: 1, 3, 5 or 9 bytes."""
    if number < 0xFD:
        return number.to_bytes(1, "little")
    if number <= 0xFFFF:
        return b"\xfd" + number.to_bytes(2, "little")
    if number <= 0xFFFFFFFF:
        return b"\xfe" + number.to_bytes(4, "little")
    return b"\xff" + number.to_bytes(8, "little")


def ser_string(data: bytes) -> bytes:
    """The bytes with their length before them."""
    return ser_compact_size(len(data)) + data


class ByteReader:
    """Reads bytes in order; `position` is the next one. Raises DecodeError if too few are left."""

    def __init__(self, data: bytes):
        self._data = data
        self.position = 0

    def read_bytes(self, count: int) -> bytes:
        start = self.position
        end = start + count
        if end > len(self._data):
            missing = end - len(self._data)
            raise DecodeError(f"the data ends {missing} bytes too early")
        self.position = end
        return self._data[start:end]

    def read_uint(self, size: int) -> int:
        """An unsigned little-endian integer of `size` bytes."""
        return int.from_bytes(self.read_bytes(size), "little")

    def read_compact_size(self) -> int:
        """A CompactSize; one that is longer than needed is refused, as by Bitcoin Core."""
        first = self.read_uint(1)
        if first < 0xFD:
            return first
        size = _COMPACT_SIZE_BYTES[first]
        number = self.read_uint(size)
        if len(ser_compact_size(number)) != 1 + size:
            raise DecodeError("a length is not in its shortest form")
        return number

    def read_string(self) -> bytes:
        return self.read_bytes(self.read_compact_size())

    def starts_with(self, prefix: bytes) -> bool:
        """True if the bytes ahead are `prefix`; reads none of them."""
        return self._data.startswith(prefix, self.position)

    def finish(self) -> None:
        """Raises DecodeError if bytes are left."""
        left = len(self._data) - self.position
        if left:
            raise DecodeError(f"{left} bytes follow the end")
