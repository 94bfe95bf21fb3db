"""Block headers: 80 bytes that commit to the block before, the Merkle root and the work."""

from dataclasses import dataclass
from struct import Struct

from btcpay.bitcoin.wire import Malformed, hash256, txid_bytes, txid_hex, u32

HEADER_BYTES = 80
_read = Struct("<4x32s32sII4x").unpack  # a proof needs neither version nor nonce


@dataclass(frozen=True)
class Header:
    """`previous`, `merkle_root`, `hash` in reversed hex; `time` in unix seconds; `bits` compact."""

    hash: str
    previous: str
    merkle_root: str
    time: int
    bits: int

    @property
    def target(self) -> int:
        """The number that the hash must not exceed."""
        return target_of(self.bits)

    @property
    def work(self) -> int:
        """Hashes that such a block takes on average: Bitcoin Core's GetBlockProof; 0 for none."""
        target = self.target
        return (1 << 256) // (target + 1) if target else 0

    @property
    def has_work(self) -> bool:
        """True where the hash meets the header's own target."""
        return int(self.hash, 16) <= self.target


def target_of(bits: int) -> int:
    """The target of compact `bits`, as Bitcoin Core's arith_uint256::SetCompact; 0 for none."""
    size, mantissa = bits >> 24, bits & 0x007FFFFF
    if bits & 0x00800000:
        return 0
    target = mantissa >> 8 * (3 - size) if size <= 3 else mantissa << 8 * (size - 3)
    return target if target < 1 << 256 else 0


def bits_of(target: int) -> int:
    """The compact form of a target of 0 to 2**256 - 1, rounded down: arith_uint256::GetCompact."""
    size = (target.bit_length() + 7) // 8
    mantissa = target << 8 * (3 - size) if size <= 3 else target >> 8 * (size - 3)
    if mantissa & 0x00800000:  # the mantissa's sign: one more byte keeps it off
        mantissa, size = mantissa >> 8, size + 1
    return size << 24 | mantissa


def build_header(
    version: int, previous: str, merkle_root: str, time: int, bits: int, nonce: int
) -> bytes:
    """The 80 bytes of a header; hashes in reversed hex. Raises Malformed for a value out of range.

    `version` is signed or unsigned, since explorers differ; the others are unsigned; 32 bits each.
    """
    try:
        links = txid_bytes(previous) + txid_bytes(merkle_root)
        signed = version.to_bytes(4, "little", signed=version < 0)
        header = signed + links + u32(time) + u32(bits) + u32(nonce)
    except (ValueError, OverflowError) as error:
        raise Malformed(f"a header of these does not exist: {error}") from error
    if (len(previous), len(merkle_root), len(header)) != (64, 64, HEADER_BYTES):
        raise Malformed("a hash in a header has 32 bytes")
    return header


def parse_header(raw: bytes) -> Header:
    """The header in exactly 80 bytes. Raises Malformed."""
    if len(raw) != HEADER_BYTES:
        raise Malformed(f"a header has {HEADER_BYTES} bytes, not {len(raw)}")
    previous, merkle_root, time, bits = _read(raw)
    return Header(txid_hex(hash256(raw)), txid_hex(previous), txid_hex(merkle_root), time, bits)
