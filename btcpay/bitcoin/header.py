"""Block headers: 80 bytes that commit to the block before, the Merkle root and the work."""

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
RETARGET_TIMESPAN_S = 14 * 24 * 60 * 60  # the time that so many blocks should take
# Version and nonce are passed over: a proof needs neither.
_unpack = Struct("<4x32s32sII4x").unpack
_SIGN_BIT = 0x00800000  # of the mantissa in a compact target


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
        """The hashes that such a block takes on average; 0 for a target of 0.

        Source: Bitcoin Core's GetBlockProof.
        """
        target = self.target
        if target:
            return (1 << 256) // (target + 1)
        return 0

    @property
    def has_work(self) -> bool:
        """True if the hash meets the header's own target."""
        return int(self.hash, 16) <= self.target


def target_of(bits: int) -> int:
    """The target in its compact form `bits`; 0 if it is negative or too large.

    Source: Bitcoin Core's arith_uint256::SetCompact.
    """
    if bits & _SIGN_BIT:
        return 0
    size = bits >> 24
    mantissa = bits & 0x007FFFFF
    if size <= 3:
        target = mantissa >> 8 * (3 - size)
    else:
        target = mantissa << 8 * (size - 3)
    if target < 1 << 256:
        return target
    return 0


def bits_of(target: int) -> int:
    """The compact form of a target of 0 to 2**256 - 1, rounded down.

    Source: Bitcoin Core's arith_uint256::GetCompact.
    """
    size = (target.bit_length() + 7) // 8
    if size <= 3:
        mantissa = target << 8 * (3 - size)
    else:
        mantissa = target >> 8 * (size - 3)
    # The mantissa must not look negative: one more byte of size keeps its first bit 0.
    if mantissa & _SIGN_BIT:
        mantissa = mantissa >> 8
        size = size + 1
    return size << 24 | mantissa


def build_header(
    version: int, previous: str, merkle_root: str, time: int, bits: int, nonce: int
) -> bytes:
    """The 80 bytes of a header; hashes in reversed hex. Raises DecodeError if out of range.

    Each number has 32 bits. `version` may be signed or unsigned, since explorers differ; the others
    are unsigned.
    """
    try:
        hashes = hash_from_hex(previous) + hash_from_hex(merkle_root)
        start = version.to_bytes(4, "little", signed=version < 0)
        end = ser_uint32(time) + ser_uint32(bits) + ser_uint32(nonce)
    except (ValueError, OverflowError) as error:
        raise DecodeError(f"no header has these values: {error}") from error
    # `bytes.fromhex` ignores blanks, so the lengths of the texts count too.
    header = start + hashes + end
    lengths = (len(previous), len(merkle_root), len(header))
    if lengths != (64, 64, HEADER_BYTES):
        raise DecodeError("a hash in a header has 32 bytes")
    return header


def parse_header(raw: bytes) -> Header:
    """The header in exactly 80 bytes. Raises DecodeError."""
    if len(raw) != HEADER_BYTES:
        raise DecodeError(f"a header has {HEADER_BYTES} bytes, not {len(raw)}")
    previous, merkle_root, time, bits = _unpack(raw)
    return Header(
        hash=hash_to_hex(hash256(raw)),
        previous=hash_to_hex(previous),
        merkle_root=hash_to_hex(merkle_root),
        time=time,
        bits=bits,
    )


def required_bits(
    height: int,
    last: Header,
    header_at: Callable[[int], Header],
    max_target_bits_of_consensus: int,
) -> int:
    """The compact target that the block at `height` on top of `last` must have, on mainnet.

    `header_at` is called for the header at `height` - 2016 if `height` is a multiple of 2016.
    `max_target_bits_of_consensus` is mainnet's powLimit, 0x1d00ffff, and not the easiest target
    that we accept in a proof. Source: Bitcoin Core's CalculateNextWorkRequired.
    """
    if height % RETARGET_INTERVAL:
        return last.bits
    # Consensus measures one interval too few: it begins at the period's first block, and not at
    # the block before that.
    first = header_at(height - RETARGET_INTERVAL)
    timespan_s = last.time - first.time
    timespan_s = max(timespan_s, RETARGET_TIMESPAN_S // 4)
    timespan_s = min(timespan_s, RETARGET_TIMESPAN_S * 4)
    target = last.target * timespan_s // RETARGET_TIMESPAN_S
    max_target = target_of(max_target_bits_of_consensus)
    return bits_of(min(target, max_target))


def merkle_rows(leaves: Sequence[bytes]) -> list[Sequence[bytes]]:
    """Every row of the Merkle tree over 32-byte leaves (at least one), from the leaves to the root.

    The last node of an odd row is paired with itself.
    """
    row = leaves
    rows = [row]
    while len(row) > 1:
        if len(row) % 2:
            row = [*row, row[-1]]
        pairs = zip(row[::2], row[1::2], strict=True)
        row = [hash256(left + right) for left, right in pairs]
        rows.append(row)
    return rows


def merkle_root(leaves: Sequence[bytes]) -> bytes:
    """The root over 32-byte leaves in their order; at least one leaf."""
    return merkle_rows(leaves)[-1][0]


def merkle_branch(rows: Sequence[Sequence[bytes]], position: int) -> list[bytes]:
    """The siblings of the leaf at `position`, from the leaves up; empty for a single leaf."""
    branch = []
    for row in rows[:-1]:
        sibling = position ^ 1
        last = len(row) - 1
        branch.append(row[min(sibling, last)])
        position = position >> 1
    return branch


def is_mutated(rows: Sequence[Sequence[bytes]]) -> bool:
    """True if two nodes that are hashed together are equal, in any row (CVE-2012-2459).

    A block whose last transactions are repeated has such a tree, and the same root.
    """
    return any(any(map(eq, row[::2], row[1::2])) for row in rows)


def merkle_root_from_branch(
    leaf: bytes, branch: Sequence[bytes], position: int
) -> bytes:
    """The root over a leaf at `position`; `branch` has its siblings, from the leaves up."""
    node = leaf
    for sibling in branch:
        is_right = position & 1
        if is_right:
            node = hash256(sibling + node)
        else:
            node = hash256(node + sibling)
        position = position >> 1
    return node
