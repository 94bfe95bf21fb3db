"""Reads and writes Bitcoin's wire format: integers, CompactSize, byte strings, hashes."""

import hashlib

# Number of bytes after the first byte of a CompactSize, if that byte is 0xFD or more.
_COMPACT_SIZE_BYTES = {0xFD: 2, 0xFE: 4, 0xFF: 8}


class DecodeError(ValueError):
    """Bytes or text could not be decoded."""


def hash256(data: bytes) -> bytes:
    """Returns the double SHA-256 of the data.

    Txids, block hashes and Merkle nodes are such hashes.
    """
    return hashlib.sha256(hashlib.sha256(data).digest()).digest()


def hash160(data: bytes) -> bytes:
    """Returns RIPEMD-160 of SHA-256 of the data: the hash of keys and scripts.

    Raises ValueError if OpenSSL lacks RIPEMD-160, e.g. versions 3.0.0 to 3.0.6.
    """
    digest = hashlib.sha256(data).digest()
    return hashlib.new("ripemd160", digest, usedforsecurity=False).digest()


def hash_to_hex(digest: bytes) -> str:
    """Returns the reversed hex of a hash.

    Txids and block hashes are displayed this way.
    """
    return digest[::-1].hex()


def hash_from_hex(text: str) -> bytes:
    """Returns the 32 bytes of a hash in reversed hex."""
    return bytes.fromhex(text)[::-1]


def ser_uint32(number: int) -> bytes:
    return number.to_bytes(4, "little")


def ser_compact_size(number: int) -> bytes:
    """Returns a CompactSize: 1, 3, 5 or 9 bytes.

    In the wire format it is the length prefix of lists and byte strings.
    """
    if number < 0xFD:
        return number.to_bytes(1, "little")
    if number <= 0xFFFF:
        return b"\xfd" + number.to_bytes(2, "little")
    if number <= 0xFFFFFFFF:
        return b"\xfe" + number.to_bytes(4, "little")
    return b"\xff" + number.to_bytes(8, "little")


def ser_string(data: bytes) -> bytes:
    """Returns `data` with its length, a CompactSize, in front."""
    return ser_compact_size(len(data)) + data


class ByteReader:
    """A reader of values from bytes. `position` is the index of the next byte.

    The `read_` methods raise DecodeError if too few bytes are left.
    """

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
        """Reads an unsigned little-endian integer of `size` bytes."""
        return int.from_bytes(self.read_bytes(size), "little")

    def read_compact_size(self) -> int:
        """Reads a CompactSize.

        Raises DecodeError if the number is not in its shortest form. Bitcoin Core
        rejects such numbers too.
        """
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
        """True if the next bytes are `prefix`. The position does not change."""
        return self._data.startswith(prefix, self.position)

    def finish(self) -> None:
        """Raises DecodeError if bytes are left."""
        left = len(self._data) - self.position
        if left:
            raise DecodeError(f"{left} bytes follow the end")
