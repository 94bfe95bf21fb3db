"""Block headers: 80 bytes that commit to the block before, the Merkle root and the work.

In a Merkle tree of Bitcoin the last node of an odd row is paired with itself.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from operator import eq
from struct import Struct

from btcpay.bitcoin.wire import (
    DecodeError,
    hash256,
    hash_from_hex,
    hash_to_hex,
    ser_uint32,
)

HEADER_BYTES = 80
RETARGET_INTERVAL = 2016  # blocks between two difficulties of mainnet
_PERIOD_S = 14 * 24 * 60 * 60  # the time that these blocks should take
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
        if target:
            return (1 << 256) // (target + 1)
        return 0

    @property
    def has_work(self) -> bool:
        """True where the hash meets the header's own target."""
        return int(self.hash, 16) <= self.target


def target_of(bits: int) -> int:
    """The target of compact `bits`, as Bitcoin Core's arith_uint256::SetCompact; 0 for none."""
    size = bits >> 24
    mantissa = bits & 0x007FFFFF
    if bits & 0x00800000:
        return 0
    target = mantissa >> 8 * (3 - size) if size <= 3 else mantissa << 8 * (size - 3)
    if target < 1 << 256:
        return target
    return 0


def bits_of(target: int) -> int:
    """The compact form of a target of 0 to 2**256 - 1, rounded down: arith_uint256::GetCompact."""
    size = (target.bit_length() + 7) // 8
    mantissa = target << 8 * (3 - size) if size <= 3 else target >> 8 * (size - 3)
    if mantissa & 0x00800000:  # the mantissa's sign: one more byte keeps it off
        mantissa = mantissa >> 8
        size = size + 1
    return size << 24 | mantissa


def build_header(
    version: int, previous: str, merkle_root: str, time: int, bits: int, nonce: int
) -> bytes:
    """The 80 bytes of a header; hashes in reversed hex. Raises DecodeError if out of range.

    `version` is signed or unsigned, since explorers differ; the others are unsigned; 32 bits each.
    """
    try:
        links = hash_from_hex(previous) + hash_from_hex(merkle_root)
        signed = version.to_bytes(4, "little", signed=version < 0)
        header = (
            signed + links + ser_uint32(time) + ser_uint32(bits) + ser_uint32(nonce)
        )
    except (ValueError, OverflowError) as error:
        raise DecodeError(f"a header of these does not exist: {error}") from error
    if (len(previous), len(merkle_root), len(header)) != (64, 64, HEADER_BYTES):
        raise DecodeError("a hash in a header has 32 bytes")
    return header


def parse_header(raw: bytes) -> Header:
    """The header in exactly 80 bytes. Raises DecodeError."""
    if len(raw) != HEADER_BYTES:
        raise DecodeError(f"a header has {HEADER_BYTES} bytes, not {len(raw)}")
    previous, merkle_root, time, bits = _read(raw)
    return Header(
        hash_to_hex(hash256(raw)),
        hash_to_hex(previous),
        hash_to_hex(merkle_root),
        time,
        bits,
    )


def required_bits(
    height: int,
    last: Header,
    header_at: Callable[[int], Header],
    max_target_bits_of_consensus: int,
) -> int:
    """The compact target that the block at `height` on top of `last` must have, on mainnet.

    `header_at` is asked for the one at `height` - 2016, where `height` is a multiple of 2016.
    `max_target_bits_of_consensus`: mainnet's powLimit, 0x1d00ffff; not the easiest target that we
    accept in a proof. Source: Bitcoin Core's CalculateNextWorkRequired.
    """
    if height % RETARGET_INTERVAL:
        return last.bits
    # Consensus measures one interval too few: from the first block's time, not its predecessor's.
    took_s = last.time - header_at(height - RETARGET_INTERVAL).time
    took_s = min(max(took_s, _PERIOD_S // 4), _PERIOD_S * 4)
    target = last.target * took_s // _PERIOD_S
    return bits_of(min(target, target_of(max_target_bits_of_consensus)))


def merkle_rows(leaves: Sequence[bytes]) -> list[Sequence[bytes]]:
    """Every row of the tree over 32-byte leaves, at least one, from the leaves up to the root."""
    rows = [leaves]
    while len(row := rows[-1]) > 1:
        paired = [*row, row[-1]] if len(row) % 2 else row
        pairs = zip(paired[::2], paired[1::2], strict=True)
        rows.append([hash256(left + right) for left, right in pairs])
    return rows


def merkle_root(leaves: Sequence[bytes]) -> bytes:
    """The root over 32-byte leaves in their order; at least one leaf."""
    return merkle_rows(leaves)[-1][0]


def merkle_branch(rows: Sequence[Sequence[bytes]], position: int) -> list[bytes]:
    """The siblings of the leaf at `position`, from the leaves up; empty for a single leaf."""
    return [
        row[min(position >> level ^ 1, len(row) - 1)]
        for level, row in enumerate(rows[:-1])
    ]


def is_mutated(rows: Sequence[Sequence[bytes]]) -> bool:
    """True where two neighbours that are hashed together are equal, in any row.

    A block whose last transactions are repeated has such a tree, and the same root (CVE-2012-2459).
    """
    return any(any(map(eq, row[::2], row[1::2])) for row in rows)


def merkle_root_from_branch(
    leaf: bytes, branch: Sequence[bytes], position: int
) -> bytes:
    """The root that a leaf at `position` has with these siblings, given from the leaves up."""
    node = leaf
    for level, sibling in enumerate(branch):
        right = position >> level & 1
        node = hash256(sibling + node if right else node + sibling)
    return node
