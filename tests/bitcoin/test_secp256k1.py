"""The curve against libsecp256k1, where it is installed, and at every edge of its sums."""

import json

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from btcpay.bitcoin.secp256k1 import DIGIT_BITS, DIGITS, FIELD, HALF, ORDER, G, Point
from tests.support.paths import VECTORS

scalars = st.integers(1, ORDER - 1)
# Tweaks whose digits in the table are all, or all but one, at the end of what a digit can be.
EDGES = [
    *(HALF * (1 << DIGIT_BITS * place) for place in range(DIGITS - 1)),
    *(HALF * (1 << DIGIT_BITS * place) - 1 for place in range(DIGITS - 1)),
    *((1 << bit) for bit in range(256)),
    *(ORDER - 1 - (1 << bit) for bit in range(255)),
]
# From 1 * G to 8 * G, as https://crypto.stackexchange.com/questions/784 lists them: x.
FIRST_X = [
    "79be667ef9dcbbac55a06295ce870b07029bfcdb2dce28d959f2815b16f81798",
    "c6047f9441ed7d6d3045406e95c07cd85c778e4b8cef3ca7abac09b95c709ee5",
    "f9308a019258c31049344f85f89d5229b531c845836f99b08601f113bce036f9",
    "e493dbf1c10d80f3581e4904930b1404cc6c13900ee0758474fa94abe8c4cd13",
    "2f8bde4d1a07209355b4a7250a5c5128e88b84bddc619ab7cba8d569b240efe4",
]


def times(scalar):
    """scalar * G."""
    return G.add(scalar - 1)


def negative(point):
    return Point(point.x, FIELD - point.y)


def plainly(scalar):
    """scalar * G by doubling and adding in affine coordinates, as a textbook has it."""
    total: tuple[int, int] | None = None
    for bit in bin(scalar)[2:]:
        total = chord(total, total)
        total = chord(total, G) if bit == "1" else total
    assert total is not None
    return total


def chord(one, other):
    if one is None or other is None:
        return other if one is None else one
    (x1, y1) = one
    (x2, y2) = other
    if x1 == x2 and (y1 + y2) % FIELD == 0:
        return None
    run, rise = (x2 - x1, y2 - y1) if x1 != x2 else (2 * y1, 3 * x1 * x1)
    slope = rise * pow(run, -1, FIELD) % FIELD
    x3 = (slope * slope - x1 - x2) % FIELD
    return x3, (slope * (x1 - x3) - y1) % FIELD


def test_the_first_multiples_are_those_that_are_published():
    assert [f"{times(n).x:064x}" for n in range(1, 6)] == FIRST_X


@given(
    point=scalars, tweak=st.one_of(st.integers(0, ORDER - 1), st.sampled_from(EDGES))
)
@settings(max_examples=300)
def test_a_sum_is_as_libsecp256k1_has_it(point, tweak):
    coincurve = pytest.importorskip("coincurve")
    judge = coincurve.PrivateKey.from_int(point).public_key
    ours = times(point)
    assert ours.format() == judge.format()
    if (point + tweak) % ORDER:
        assert ours.add(tweak).format() == judge.add(tweak.to_bytes(32, "big")).format()


def test_sums_at_every_edge_of_a_digit_are_as_libsecp256k1_has_them():
    coincurve = pytest.importorskip("coincurve")
    judge = coincurve.PrivateKey.from_int(5).public_key
    for tweak in set(EDGES) - {ORDER - 5}:
        expected = judge.add(tweak.to_bytes(32, "big")).format()
        assert times(5).add(tweak).format() == expected, hex(tweak)


@given(
    point=scalars,
    tweaks=st.lists(
        st.one_of(st.integers(0, ORDER - 1), st.sampled_from(EDGES)), max_size=9
    ),
)
@settings(max_examples=100)
def test_sums_with_several_tweaks_are_those_with_each(point, tweaks):
    tweaks = [tweak for tweak in tweaks if (point + tweak) % ORDER]
    expected = [times(point).add(tweak) for tweak in tweaks]
    assert times(point).add_each(tweaks) == expected


@pytest.mark.parametrize("digit", [1, 2, HALF])
@pytest.mark.parametrize("sign", [1, -1])
def test_several_sums_go_on_where_one_meets_infinity_or_a_double_on_its_way(
    digit, sign
):
    """The first part of the second tweak is the point itself, or its opposite."""
    point = times(sign * digit % ORDER)
    tweaks = [7, digit + (3 << DIGIT_BITS), 9]
    assert point.add_each(tweaks) == [point.add(tweak) for tweak in tweaks]


INVALID_TWEAKS = {
    "a tweak below zero": -1,
    "a tweak that is n": ORDER,
    "the greatest tweak": 2**256 - 1,
    "a tweak that has no 32 bytes": 2**256,
    "a tweak that leads to infinity": ORDER - 5,
}


@pytest.mark.parametrize("tweak", INVALID_TWEAKS.values(), ids=INVALID_TWEAKS)
def test_an_invalid_tweak_of_a_point_is_an_error(tweak):
    with pytest.raises(ValueError):
        times(5).add(tweak)
    with pytest.raises(ValueError):
        times(5).add_each([1, tweak, 2])


@given(scalar=st.one_of(scalars, st.sampled_from(EDGES)))
@settings(max_examples=100)
def test_a_point_and_itself_are_its_double_and_its_opposite_leads_to_infinity(scalar):
    point = times(scalar)
    assert (point, point.add(scalar)) == (plainly(scalar), plainly(2 * scalar % ORDER))
    assert Point.parse(point.format()) == point
    assert Point.parse(negative(point).format()) == negative(point)
    with pytest.raises(ValueError, match="infinity"):
        negative(point).add(scalar)


@pytest.mark.parametrize("place", [0, 1, 16, DIGITS - 2])
@pytest.mark.parametrize("digit", [1, 2, HALF - 1, HALF])
@pytest.mark.parametrize("above", [1 << DIGIT_BITS, 3 << DIGIT_BITS])
def test_a_walk_that_meets_infinity_or_a_double_on_its_way_goes_on(place, digit, above):
    """The first digits of the tweak take the point away, or double it; others follow."""
    unit = 1 << DIGIT_BITS * place
    part = digit * unit % ORDER
    tweak = (digit + above) * unit
    if tweak < ORDER:
        assert negative(times(part)).add(tweak) == plainly(tweak - part)
        assert times(part).add(tweak) == plainly((tweak + part) % ORDER)


MALFORMED = json.loads((VECTORS / "malformed.json").read_text(encoding="utf-8"))[
    "points"
]


@pytest.mark.parametrize("data", MALFORMED.values(), ids=MALFORMED)
def test_what_is_no_compressed_point_is_an_error(data):
    with pytest.raises(ValueError):
        Point.parse(bytes.fromhex(data))


@given(x=st.integers(0, 2**256 - 1), first=st.sampled_from([2, 3]))
@settings(max_examples=200)
def test_what_is_read_as_a_point_is_what_libsecp256k1_reads(x, first):
    coincurve = pytest.importorskip("coincurve")
    data = bytes([first]) + x.to_bytes(32, "big")
    try:
        expected = coincurve.PublicKey(data).point()
    except ValueError:
        expected = None
    try:
        found = tuple(Point.parse(data))
    except ValueError:
        found = None
    assert found == expected
