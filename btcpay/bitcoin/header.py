"""Block headers, proof of work and difficulty targets."""

from collections.abc import Callable
from dataclasses import dataclass
from struct import Struct

from btcpay.bitcoin.wire import (
    DecodeError,
    hash256,
    hash_from_hex,
    hash_to_hex,
    ser_uint32,
)

HEADER_BYTES = 80
RETARGET_INTERVAL = 2016  # blocks; mainnet adjusts the difficulty after each interval
RETARGET_TIMESPAN_S = 14 * 24 * 60 * 60  # target duration of an interval
# Skips version and nonce, since no check needs them.
_unpack = Struct("<4x32s32sII4x").unpack
_SIGN_BIT = 0x00800000  # sign of a compact target


@dataclass(frozen=True)
class Header:
    """A parsed block header, without its version and nonce.

    `hash`, `previous` (the hash of the previous block) and `merkle_root` are in
    reversed hex. `time` is in Unix seconds. `bits` is the target in compact form.
    """

    hash: str
    previous: str
    merkle_root: str
    time: int
    bits: int

    @property
    def target(self) -> int:
        """The maximum value of the block hash."""
        return target_of(self.bits)

    @property
    def work(self) -> int:
        """The expected number of hashes to mine such a block; 0 if the target is 0.

        Source: Bitcoin Core's GetBlockProof.
        """
        target = self.target
        if target:
            return (1 << 256) // (target + 1)
        return 0

    @property
    def has_work(self) -> bool:
        """True if the hash is at most the target that the header itself claims."""
        return int(self.hash, 16) <= self.target


def target_of(bits: int) -> int:
    """Returns the target for `bits`, its compact form.

    Returns 0 if the target is negative or does not fit in 256 bits. Source: Bitcoin
    Core's arith_uint256::SetCompact.
    """
    if bits & _SIGN_BIT:
        return 0
    size = bits >> 24
    mantissa = bits & 0x007FFFFF
    if size <= 3:
        target = mantissa >> (8 * (3 - size))
    else:
        target = mantissa << (8 * (size - 3))
    if target < 1 << 256:
        return target
    return 0


def bits_of(target: int) -> int:
    """Returns the compact form of a target, rounded down.

    The target is from 0 to 2**256 - 1. Source: Bitcoin Core's
    arith_uint256::GetCompact.
    """
    size = (target.bit_length() + 7) // 8
    if size <= 3:
        mantissa = target << (8 * (3 - size))
    else:
        mantissa = target >> (8 * (size - 3))
    # The sign bit must stay 0. If the mantissa would set it, it is shifted by one byte.
    if mantissa & _SIGN_BIT:
        mantissa = mantissa >> 8
        size = size + 1
    return (size << 24) | mantissa


def build_header(
    version: int,
    previous: str,
    merkle_root: str,
    time: int,
    bits: int,
    nonce: int,
) -> bytes:
    """Serializes a header (80 bytes).

    `previous` and `merkle_root` are in reversed hex. The numbers have 32 bits.
    `version` may be signed or unsigned, since explorers differ; the others are
    unsigned. Raises DecodeError if a value does not fit.
    """
    try:
        hashes = hash_from_hex(previous) + hash_from_hex(merkle_root)
        start = version.to_bytes(4, "little", signed=version < 0)
        end = ser_uint32(time) + ser_uint32(bits) + ser_uint32(nonce)
    except (ValueError, OverflowError) as error:
        raise DecodeError(f"no header has these values: {error}") from error
    # Also checks the lengths of the texts, since `bytes.fromhex` ignores blanks.
    header = start + hashes + end
    lengths = (len(previous), len(merkle_root), len(header))
    if lengths != (64, 64, HEADER_BYTES):
        raise DecodeError("a hash in a header has 32 bytes")
    return header


def parse_header(raw: bytes) -> Header:
    """Parses a header of exactly 80 bytes.

    Raises DecodeError if the length is wrong. The work is not verified.
    """
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
    pow_limit_bits: int,
) -> int:
    """Returns the compact target that mainnet requires of the block at `height`.

    `last` is the header at `height` - 1. `header_at` returns the header at a given
    height. It is called only if `height` is a multiple of 2016, for the header at
    `height` - 2016. `pow_limit_bits` is mainnet's powLimit, 0x1d00ffff: the highest
    target of any block. Do not pass `max_target_bits`, the highest target that we
    accept in a proof, which is lower. Source: Bitcoin Core's CalculateNextWorkRequired.
    """
    if height % RETARGET_INTERVAL:
        return last.bits
    # Bitcoin's known off-by-one: the timespan starts at the first block of the interval, and not at
    # the block before it. So it covers 2015 block times.
    first = header_at(height - RETARGET_INTERVAL)
    timespan_s = last.time - first.time
    timespan_s = max(timespan_s, RETARGET_TIMESPAN_S // 4)
    timespan_s = min(timespan_s, RETARGET_TIMESPAN_S * 4)
    target = last.target * timespan_s // RETARGET_TIMESPAN_S
    max_target = target_of(pow_limit_bits)
    return bits_of(min(target, max_target))
