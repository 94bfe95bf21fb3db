"""Headers: from fields to bytes and back, compact targets, work, and mainnet's difficulty."""

import pytest
from blocks import real_headers
from hypothesis import given
from hypothesis import strategies as st

from btcpay.bitcoin.header import (
    Header,
    bits_of,
    build_header,
    parse_header,
    required_bits,
    target_of,
)
from btcpay.bitcoin.wire import Malformed

GENESIS_ROOT = "4a5e1e4baab89f3a32518a88c31bc87f618f76673e2cc77ab2127b7afdeda33b"
FIELDS = (1, "00" * 32, GENESIS_ROOT, 1231006505, 0x1D00FFFF, 2083236893)


@pytest.fixture(scope="module")
def chain():
    return real_headers()


def number(raw, at):
    return int.from_bytes(raw[at : at + 4], "little")


def test_ten_thousand_real_headers_are_built_as_they_are(chain):
    for raw in chain:
        read = parse_header(raw)
        fields = (read.previous, read.merkle_root, read.time, read.bits, number(raw, 76))
        assert build_header(number(raw, 0), *fields) == raw


def test_a_version_is_signed_or_unsigned():
    least_and_greatest = {0: "00000000", 2**31 - 1: "ffffff7f", -(2**31): "00000080"}
    with_its_sign = {2**31: "00000080", 2**32 - 1: "ffffffff", -1: "ffffffff"}
    for version, raw in (least_and_greatest | with_its_sign).items():
        assert build_header(version, *FIELDS[1:])[:4].hex() == raw, version


UNFIT = {
    "a version of 33 bits": (0, 2**32),
    "a version below the least signed one": (0, -(2**31) - 1),
    "a hash of 31 bytes": (1, "00" * 31),
    "a hash of 33 bytes": (1, "00" * 33),
    "a hash that is not hex": (1, "zz" * 32),
    "a hash with spaces": (2, "00 " * 31 + "00"),
    "no Merkle root": (2, ""),
    "a time before 1970": (3, -1),
    "a time of 33 bits": (3, 2**32),
    "bits below 0": (4, -1),
    "bits of 33 bits": (4, 2**32),
    "a nonce below 0": (5, -1),
    "a nonce of 33 bits": (5, 2**32),
}


@pytest.mark.parametrize("name", UNFIT)
def test_what_does_not_fit_is_malformed(name):
    place, value = UNFIT[name]
    with pytest.raises(Malformed):
        build_header(*FIELDS[:place], value, *FIELDS[place + 1 :])


COMPACT = {  # bits: the target, and its own compact form
    0x01123456: (0x12, 0x01120000),
    0x02008000: (0x80, 0x02008000),
    0x02123456: (0x1234, 0x02123400),
    0x03123456: (0x123456, 0x03123456),
    0x04123456: (0x12345600, 0x04123456),
    0x05009234: (0x92340000, 0x05009234),
    0x1D00FFFF: (0xFFFF << 208, 0x1D00FFFF),
    0x20123456: (0x123456 << 232, 0x20123456),
    0x207FFFFF: (0x7FFFFF << 232, 0x207FFFFF),
    0x2100FFFF: (0xFFFF << 240, 0x2100FFFF),
    0x220000FF: (0xFF << 248, 0x2100FF00),
}
NO_TARGETS = (  # nothing is left of them, or they are negative, or too large
    *(0, 0x00123456, 0x01003456, 0x02000056, 0x03000000, 0x04000000, 0x00923456, 0x01803456),
    *(0x02800056, 0x03800000, 0x04800000, 0x01FEDCBA, 0x04923456, 0x22000100, 0x23000001),
    0xFF123456,
)


def test_compact_targets_are_those_of_bitcoin_core():
    """src/test/arith_uint256_tests.cpp, bignum_SetCompact."""
    for bits, (target, again) in COMPACT.items():
        assert (target_of(bits), bits_of(target)) == (target, again), f"{bits:08x}"
    assert [hex(bits) for bits in NO_TARGETS if target_of(bits)] == []
    assert bits_of(0) == 0


@given(st.integers(0, 2**256 - 1))
def test_a_target_loses_only_what_its_compact_form_has_no_room_for(target):
    rounded = target_of(bits_of(target))
    assert rounded <= target < rounded + max(1, rounded >> 14)
    assert bits_of(rounded) == bits_of(target)


WORK = {
    "the first block's": (0x1D00FFFF, 0x100010001),
    "regtest's": (0x207FFFFF, 2),
    "the smallest target": (0x01010000, 2**255),
    "no target": (0x00000000, 0),
    "a negative one": (0x1D80FFFF, 0),
    "one that overflows": (0xFF123456, 0),
}


def test_work_is_what_bitcoin_core_counts():
    for name, (bits, work) in WORK.items():
        assert Header("", "", "", 0, bits).work == work, name


def test_the_first_ten_thousand_blocks_have_the_work_of_their_chain(chain):
    """10,237 times that of the first: difficulty 1 until block 32,256."""
    assert sum(parse_header(raw).work for raw in chain) == 10_237 * 0x100010001


POW_LIMIT = 0x1D00FFFF
TWO_WEEKS_S = 1_209_600
SOME = 0x1C05A3F4


def header(time, bits=SOME):
    return Header("", "", "", time, bits)


RETARGETS = {  # src/test/pow_tests.cpp: last height, first and last time, bits, required
    "a usual one": (32255, 1261130161, 1262152739, 0x1D00FFFF, 0x1D00D86A),
    "at the limit": (2015, 1231006505, 1233061996, 0x1D00FFFF, 0x1D00FFFF),
    "a quarter at least": (68543, 1279008237, 1279297671, 0x1C05A3F4, 0x1C0168FD),
    "four times at most": (46367, 1263163443, 1269211443, 0x1C387F6F, 0x1D00E1FD),
}


def test_a_retarget_is_that_of_bitcoin_core():
    for name, (last_height, first_time, last_time, bits, required) in RETARGETS.items():
        last, first = header(last_time, bits), header(first_time, bits)
        assert required_bits(last_height + 1, last, first, POW_LIMIT) == required, name


PERIODS = {  # how long it took, and how long that counts
    "a quarter of two weeks": (TWO_WEEKS_S // 4, TWO_WEEKS_S // 4),
    "a second less counts as a quarter": (TWO_WEEKS_S // 4 - 1, TWO_WEEKS_S // 4),
    "a last block before the first counts as a quarter": (-5, TWO_WEEKS_S // 4),
    "two weeks change nothing": (TWO_WEEKS_S, TWO_WEEKS_S),
    "eight weeks": (TWO_WEEKS_S * 4, TWO_WEEKS_S * 4),
    "a second more counts as eight weeks": (TWO_WEEKS_S * 4 + 1, TWO_WEEKS_S * 4),
}


def test_a_period_counts_as_a_quarter_to_four_times_two_weeks():
    start = 1_500_000_000
    for name, both_s in PERIODS.items():
        found, expected = (
            required_bits(4032, header(start + s), header(start), POW_LIMIT) for s in both_s
        )
        assert found == expected, name
        assert (found == SOME) == (both_s[1] == TWO_WEEKS_S)


def test_only_every_2016th_block_changes_it():
    for height, changes in ((2015, 0), (2016, 1), (2017, 0), (4031, 0), (4032, 1)):
        first = header(0) if changes else None
        found = required_bits(height, header(TWO_WEEKS_S // 2), first, POW_LIMIT)
        assert (found != SOME) == bool(changes), height


def test_a_retarget_without_the_periods_first_header_is_no_answer():
    with pytest.raises(ValueError, match="needs the header at 2016"):
        required_bits(4032, header(0), None, POW_LIMIT)
