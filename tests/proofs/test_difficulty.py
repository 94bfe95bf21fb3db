"""Mainnet's difficulty: Bitcoin Core's own vectors, and ten thousand real headers."""

import pytest
from blocks import real_headers

from btcpay.bitcoin.header import Header, parse_header
from btcpay.proofs.difficulty import RETARGET_INTERVAL, required_bits

POW_LIMIT = 0x1D00FFFF
TWO_WEEKS_S = 1_209_600
SOME = 0x1C05A3F4


def header(time: int, bits: int = SOME) -> Header:
    return Header("", "", "", time, bits)


@pytest.mark.parametrize(
    ("last_height", "first_time", "last_time", "bits", "required"),
    [
        pytest.param(32255, 1261130161, 1262152739, 0x1D00FFFF, 0x1D00D86A, id="a usual one"),
        pytest.param(2015, 1231006505, 1233061996, 0x1D00FFFF, 0x1D00FFFF, id="at the limit"),
        pytest.param(
            68543, 1279008237, 1279297671, 0x1C05A3F4, 0x1C0168FD, id="a quarter at least"
        ),
        pytest.param(
            46367, 1263163443, 1269211443, 0x1C387F6F, 0x1D00E1FD, id="four times at most"
        ),
    ],
)
def test_a_retarget_is_that_of_bitcoin_core(last_height, first_time, last_time, bits, required):
    """src/test/pow_tests.cpp."""
    last, first = header(last_time, bits), header(first_time, bits)
    assert required_bits(last_height + 1, last, first, POW_LIMIT) == required


@pytest.mark.parametrize(
    ("took_s", "as_if_s"),
    [
        pytest.param(TWO_WEEKS_S // 4, TWO_WEEKS_S // 4, id="a quarter of two weeks"),
        pytest.param(
            TWO_WEEKS_S // 4 - 1, TWO_WEEKS_S // 4, id="a second less counts as a quarter"
        ),
        pytest.param(-5, TWO_WEEKS_S // 4, id="a last block before the first counts as a quarter"),
        pytest.param(TWO_WEEKS_S, TWO_WEEKS_S, id="two weeks change nothing"),
        pytest.param(TWO_WEEKS_S * 4, TWO_WEEKS_S * 4, id="eight weeks"),
        pytest.param(
            TWO_WEEKS_S * 4 + 1, TWO_WEEKS_S * 4, id="a second more counts as eight weeks"
        ),
    ],
)
def test_a_period_counts_as_a_quarter_to_four_times_two_weeks(took_s, as_if_s):
    start = 1_500_000_000
    found, expected = (
        required_bits(4032, header(start + s), header(start), POW_LIMIT) for s in (took_s, as_if_s)
    )
    assert found == expected
    assert (found == SOME) == (as_if_s == TWO_WEEKS_S)


@pytest.mark.parametrize(
    ("height", "changes"), [(2015, False), (2016, True), (2017, False), (4031, False), (4032, True)]
)
def test_only_every_2016th_block_changes_it(height, changes):
    first = header(0) if changes else None
    assert (required_bits(height, header(TWO_WEEKS_S // 2), first, POW_LIMIT) != SOME) == changes


def test_a_retarget_without_the_periods_first_header_is_no_answer():
    with pytest.raises(ValueError, match="needs the header at 2016"):
        required_bits(4032, header(0), None, POW_LIMIT)


def test_ten_thousand_real_headers_have_what_is_required_of_them():
    chain = [parse_header(raw) for raw in real_headers()]
    retargets = 0
    for height in range(1, len(chain)):
        first = None
        if height % RETARGET_INTERVAL == 0:
            first, retargets = chain[height - RETARGET_INTERVAL], retargets + 1
        last = chain[height - 1]
        assert chain[height].previous == last.hash and chain[height].has_work
        assert chain[height].bits == required_bits(height, last, first, POW_LIMIT)
    assert retargets == 5
