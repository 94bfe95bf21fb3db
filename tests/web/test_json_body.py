"""A body's JSON: what a hostile one may cost."""

import time

import pytest

from btcpay.values.errors import InvalidRequest
from btcpay.web.body import parse


def test_a_name_that_comes_twice_is_named():
    with pytest.raises(InvalidRequest, match="the name 'a' appears twice"):
        parse(b'{"a": 1, "b": 2, "c": 3, "b": 4, "a": 5}')


def test_eight_thousand_names_cost_no_more_than_reading_them():
    """Each name counted among all the others took a second."""
    names = [f'"{number:04}":1' for number in range(8000)]
    body = f"{{{','.join([*names, names[-1]])}}}".encode()
    began_s = time.process_time()
    with pytest.raises(InvalidRequest, match="'7999' appears twice"):
        parse(body)
    assert time.process_time() - began_s < 0.25
