"""Mainnet's difficulty: Bitcoin Core's own vectors, and ten thousand real headers."""

import pytest

from btcpay.bitcoin.header import Header, required_bits

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
