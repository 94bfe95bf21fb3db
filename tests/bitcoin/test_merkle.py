"""Merkle trees: rows, branches, and the twins that betray a doubled tail."""

import pytest

from btcpay.bitcoin.header import has_twins, merkle_branch, merkle_root, merkle_rows, root_above
from btcpay.bitcoin.wire import hash256


def leaves(*numbers):
    return [bytes([number]) * 32 for number in numbers]


@pytest.mark.parametrize("count", [*range(1, 18), 31, 32, 33, 100])
def test_every_branch_leads_to_the_root(count):
    row = leaves(*range(count))
    rows = merkle_rows(row)
    assert rows[0] == row and rows[-1] == [merkle_root(row)]
    for position in range(count):
        branch = merkle_branch(rows, position)
        assert root_above(row[position], branch, position) == merkle_root(row)


def test_the_last_of_an_odd_row_is_paired_with_itself():
    a, b, c = leaves(1, 2, 3)
    assert merkle_root([a, b, c]) == hash256(hash256(a + b) + hash256(c + c))


@pytest.mark.parametrize(
    ("numbers", "twins"),
    [
        pytest.param([1], False, id="a single leaf"),
        pytest.param([1, 2, 3], False, id="an odd row, paired with itself only in the making"),
        pytest.param([1, 2, 3, 4, 5, 6], False, id="an odd row above the leaves"),
        pytest.param([1, 1], True, id="a single leaf doubled"),
        pytest.param([1, 2, 3, 3], True, id="the last leaf doubled"),
        pytest.param([1, 2, 3, 4, 5, 6, 5, 6], True, id="the last two doubled: twins a row above"),
        pytest.param([1, 1, 2, 3], True, id="twins in front"),
        pytest.param([1, 2, 2, 3], False, id="equal neighbours that are not paired"),
        pytest.param([1, 2, 1, 2], True, id="two halves alike"),
        pytest.param([1, 2, 3, 1, 2, 3], False, id="three doubled: no pair of twins, another root"),
    ],
)
def test_twins_are_paired_neighbours_that_are_equal(numbers, twins):
    assert has_twins(merkle_rows(leaves(*numbers))) == twins


@pytest.mark.parametrize("count", range(1, 34))
def test_whatever_is_appended_without_changing_the_root_makes_twins(count):
    """CVE-2012-2459, for every length of a tail that is doubled."""
    row = leaves(*range(count))
    for tail in range(1, count + 1):
        doubled = row + row[-tail:]
        assert merkle_root(doubled) != merkle_root(row) or has_twins(merkle_rows(doubled))
