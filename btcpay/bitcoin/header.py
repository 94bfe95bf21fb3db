"""Block headers: 80 bytes that commit to the block before, the Merkle root and the work."""

from dataclasses import dataclass

from btcpay.bitcoin.wire import Malformed, Reader, hash256, shown

HEADER_BYTES = 80


@dataclass(frozen=True)
class Header:
    """`previous`, `merkle_root` and `hash` as shown; `time` in unix seconds; `bits` compact."""

    hash: str
    previous: str
    merkle_root: str
    time: int
    bits: int

    @property
    def target(self) -> int:
        """What the hash must not exceed: `bits` as Bitcoin Core's arith_uint256::SetCompact.

        0 for a negative or overflowing form, which no hash meets.
        """
        return target_of(self.bits)

    @property
    def has_work(self) -> bool:
        """Whether the hash meets the header's own target."""
        return int(self.hash, 16) <= self.target


def target_of(bits: int) -> int:
    """The target that compact `bits` stand for; 0 when they stand for none."""
    size, mantissa = bits >> 24, bits & 0x007FFFFF
    if bits & 0x00800000:
        return 0
    target = mantissa >> 8 * (3 - size) if size <= 3 else mantissa << 8 * (size - 3)
    return target if target < 1 << 256 else 0


def parse_header(raw: bytes) -> Header:
    """The header in exactly 80 bytes. Raises Malformed."""
    if len(raw) != HEADER_BYTES:
        raise Malformed(f"a header has {HEADER_BYTES} bytes, not {len(raw)}")
    reader = Reader(raw)
    reader.take(4)  # the version says nothing that a proof needs
    previous, merkle_root = shown(reader.take(32)), shown(reader.take(32))
    time, bits = reader.number(4), reader.number(4)
    return Header(shown(hash256(raw)), previous, merkle_root, time, bits)
