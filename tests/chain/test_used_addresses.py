"""The search for used addresses: where it ends, what it says when it is cut short."""

import threading

import pytest

from btcpay.chain.used_addresses import GROUP, AddressSearch
from btcpay.values.errors import ExplorerError

SEARCHES = {  # used indexes, where the search starts: found ones, where it ends
    "nothing is used": ([], 0, [], 100),
    "the first alone": ([0], 0, [0], 101),
    "a hundredth unused one is followed by a used one": ([99], 0, [99], 200),
    "a hundred unused ones end the search": ([100], 0, [], 100),
    "a gap of more than a hundred hides what is behind it": (
        [0, 20, 40, 193],
        0,
        [0, 20, 40],
        141,
    ),
    "two hundred of them": (list(range(200)), 0, list(range(200)), 300),
    "what is below the start is not looked at": ([3, 12], 10, [12], 113),
}


@pytest.mark.parametrize("case", SEARCHES)
def test_the_search_ends_after_so_many_unused_addresses_in_a_row(case):
    used, start, expected, position = SEARCHES[case]
    asked = []
    search = AddressSearch(start)
    search.find(lambda index: asked.append(index) or index in used)
    assert (search.used, search.position) == (expected, position)
    assert sorted(asked) == list(range(start, position))


def test_a_search_that_fails_knows_how_far_it_came_and_goes_on_from_there():
    is_up = threading.Event()

    def is_used(index):
        if index == 47 and not is_up.is_set():
            raise ExplorerError("no source answered")
        return index in (5, 44, 60)

    search = AddressSearch(0)
    with pytest.raises(ExplorerError):
        search.find(is_used)
    assert (search.used, search.position) == ([5, 44], 47)
    is_up.set()
    search.find(is_used)
    assert (search.used, search.position) == ([5, 44, 60], 161)


def test_progress_is_told_after_each_group():
    positions = []
    AddressSearch(0).find(
        lambda index: index == 30, lambda search: positions.append(search.position)
    )
    assert positions == [*range(GROUP, 121, GROUP), 131]


GAPS = {  # where it started, what is used, the next index: the gap limit
    "all of it new": (0, [], 0, 1),
    "behind the last used one": (0, [0, 1, 2], 3, 1),
    "a hole in between": (0, [0, 17, 18], 19, 17),
    "a hole before the first": (0, [30], 31, 31),
    "a number far behind the last used one": (0, [0], 50, 50),
    "what was used below the start is not counted as a hole": (200, [201], 202, 1),
    "unless nothing was seen": (200, [], 300, 301),
}


@pytest.mark.parametrize("case", GAPS)
def test_the_reported_gap_limit_finds_all_used_addresses(case):
    start, used, next_index, expected = GAPS[case]
    search = AddressSearch(start, used=used)
    assert search.gap_limit_for(next_index) == expected
