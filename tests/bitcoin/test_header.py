"""Headers: their bytes and back, compact targets, work, mainnet's difficulty; and Merkle trees."""

import json
from typing import Any

import pytest
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
from btcpay.bitcoin.merkle import (
    is_mutated,
    merkle_branch,
    merkle_root,
    merkle_root_from_branch,
    merkle_rows,
)
from btcpay.bitcoin.wire import DecodeError, hash256
from tests.support.blocks import real_headers
from tests.support.paths import VECTORS

KNOWN: dict[str, Any] = json.loads(
    (VECTORS / "headers.json").read_text(encoding="utf-8")
)
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
        fields = (
            read.previous,
            read.merkle_root,
            read.time,
            read.bits,
            number(raw, 76),
        )
        assert build_header(number(raw, 0), *fields) == raw


def test_a_version_is_signed_or_unsigned():
    least_and_greatest = {0: "00000000", 2**31 - 1: "ffffff7f", -(2**31): "00000080"}
    with_its_sign = {2**31: "00000080", 2**32 - 1: "ffffffff", -1: "ffffffff"}
    for version, raw in (least_and_greatest | with_its_sign).items():
        assert build_header(version, *FIELDS[1:])[:4].hex() == raw, version


@pytest.mark.parametrize(
    ("place", "value"), KNOWN["unfit"].values(), ids=KNOWN["unfit"]
)
def test_what_does_not_fit_is_malformed(place, value):
    with pytest.raises(DecodeError):
        build_header(*FIELDS[:place], value, *FIELDS[place + 1 :])


def test_compact_targets_are_those_of_bitcoin_core():
    """src/test/arith_uint256_tests.cpp, bignum_SetCompact."""
    for row in KNOWN["compact"]:
        bits, target, again = (int(text, 16) for text in row)
        assert (target_of(bits), bits_of(target)) == (target, again), row
    # Nothing is left of these, or they are negative, or too large.
    assert [bits for bits in KNOWN["no targets"] if target_of(int(bits, 16))] == []
    assert bits_of(0) == 0


@given(st.integers(0, 2**256 - 1))
def test_a_target_loses_only_what_its_compact_form_has_no_room_for(target):
    rounded = target_of(bits_of(target))
    assert rounded <= target < rounded + max(1, rounded >> 14)
    assert bits_of(rounded) == bits_of(target)


def test_work_is_what_bitcoin_core_counts():
    for name, (bits, work) in KNOWN["work"].items():
        assert Header("", "", "", 0, int(bits, 16)).work == int(work, 16), name


POW_LIMIT = 0x1D00FFFF
TWO_WEEKS_S = 1_209_600
SOME = 0x1C05A3F4


def header(time, bits=SOME):
    return Header("", "", "", time, bits)


def test_a_retarget_is_that_of_bitcoin_core():
    """src/test/pow_tests.cpp: last height, first and last time, bits, required."""
    for name, (last_height, *times, bits, required) in KNOWN["retargets"].items():
        first, last = (header(time, int(bits, 16)) for time in times)
        found = required_bits(
            last_height + 1, last, {last_height - 2015: first}.get, POW_LIMIT
        )
        assert found == int(required, 16), name


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
            required_bits(4032, header(start + s), lambda _: header(start), POW_LIMIT)
            for s in both_s
        )
        assert found == expected, name
        assert (found == SOME) == (both_s[1] == TWO_WEEKS_S)


def leaves(*numbers):
    return [bytes([number]) * 32 for number in numbers]


@pytest.mark.parametrize("count", [*range(1, 18), 31, 32, 33, 100])
def test_every_branch_leads_to_the_root(count):
    row = leaves(*range(count))
    rows = merkle_rows(row)
    assert rows[0] == row and rows[-1] == [merkle_root(row)]
    for position in range(count):
        branch = merkle_branch(rows, position)
        assert merkle_root_from_branch(row[position], branch, position) == merkle_root(
            row
        )


def test_the_last_of_an_odd_row_is_paired_with_itself():
    a, b, c = leaves(1, 2, 3)
    assert merkle_root([a, b, c]) == hash256(hash256(a + b) + hash256(c + c))


@pytest.mark.parametrize(
    ("numbers", "twins"),
    [
        pytest.param([1], False, id="a single leaf"),
        pytest.param(
            [1, 2, 3], False, id="an odd row, paired with itself only in the making"
        ),
        pytest.param([1, 2, 3, 4, 5, 6], False, id="an odd row above the leaves"),
        pytest.param([1, 1], True, id="a single leaf doubled"),
        pytest.param([1, 2, 3, 3], True, id="the last leaf doubled"),
        pytest.param(
            [1, 2, 3, 4, 5, 6, 5, 6], True, id="the last two doubled: twins a row above"
        ),
        pytest.param([1, 1, 2, 3], True, id="twins in front"),
        pytest.param([1, 2, 2, 3], False, id="equal neighbours that are not paired"),
        pytest.param([1, 2, 1, 2], True, id="two halves alike"),
        pytest.param(
            [1, 2, 3, 1, 2, 3],
            False,
            id="three doubled: no pair of twins, another root",
        ),
    ],
)
def test_twins_are_paired_neighbours_that_are_equal(numbers, twins):
    assert is_mutated(merkle_rows(leaves(*numbers))) == twins


@pytest.mark.parametrize("count", range(1, 34))
def test_whatever_is_appended_without_changing_the_root_makes_twins(count):
    """CVE-2012-2459, for every length of a tail that is doubled."""
    row = leaves(*range(count))
    for tail in range(1, count + 1):
        doubled = row + row[-tail:]
        assert merkle_root(doubled) != merkle_root(row) or is_mutated(
            merkle_rows(doubled)
        )
