"""Points of the curve secp256k1 (SEC 2), and BIP32's point addition: P + tweak * G.

The arithmetic is not constant-time. It must be used for public data only, never for
secrets.
"""

from collections.abc import Iterator, Sequence
from functools import cache
from typing import NamedTuple, Self

# SEC 2's p: the order of the field of the coordinates.
FIELD = 2**256 - 2**32 - 977
# SEC 2's n: the order of the group.
ORDER = 0xFFFFFFFFFFFFFFFFFFFFFFFFFFFFFFFEBAAEDCE6AF48A03BBFD25E8CD0364141

# A tweak is split into digits of 8 bits. So `Point.add` takes up to 33 point additions. The table
# has 4,224 points; it takes about 30 ms and 0.8 MB at the first call. Digits of 7 bits would halve
# both costs, and make each call an eighth slower.
DIGIT_BITS = 8
DIGITS = 33
HALF = 1 << DIGIT_BITS - 1
# Each digit d of tweak + OFFSET is from 0 to 255, and represents d - HALF. These signed digits need
# a table of positive multiples only.
OFFSET = sum(HALF << DIGIT_BITS * place for place in range(DIGITS))

# XYZZ coordinates: x, y, zz, zzz represent the point (x / zz, y / zzz), where zz**3 = zzz**2. At
# infinity zz = 0. They need the fewest multiplications to add an affine point. Source: "XYZZ" of
# the Explicit-Formulas Database.
_Xyzz = tuple[int, int, int, int]
_Affine = tuple[int, int]
_INFINITY = (1, 1, 0, 0)


class _SameX(ValueError):
    """Two points have the same x, so the usual formula for their sum divides by zero."""


class Point(NamedTuple):
    """A point in affine coordinates, each from 0 to FIELD - 1.

    It cannot be the point at infinity.
    """

    x: int
    y: int

    @classmethod
    def parse(cls, data: bytes) -> Self:
        """Parses a compressed point (33 bytes; SEC 1, 2.3.4).

        The first byte is 02 if y is even, and 03 if it is odd. The other 32 bytes are
        x. Raises ValueError if the bytes are not a point of the curve.
        """
        x = int.from_bytes(data[1:], "big")
        if len(data) != 33 or data[0] not in (2, 3) or x >= FIELD:
            raise ValueError("this is no compressed point")
        y_squared = (x**3 + 7) % FIELD
        # FIELD % 4 is 3. So this power is a square root, if there is one.
        y = pow(y_squared, (FIELD + 1) // 4, FIELD)
        if y * y % FIELD != y_squared:
            raise ValueError("the curve has no point with this x")
        is_odd = data[0] == 3
        if y % 2 != is_odd:
            y = FIELD - y
        return cls(x, y)

    def format(self) -> bytes:
        """Returns the compressed serialization (33 bytes)."""
        return bytes([2 + (self.y & 1)]) + self.x.to_bytes(32, "big")

    def with_even_y(self) -> Self:
        """Returns the point that has this x and an even y (BIP340, lift_x)."""
        if self.y % 2 == 0:
            return self
        return type(self)(self.x, FIELD - self.y)

    def add(self, tweak: int) -> Self:
        """Returns this point + tweak * G.

        Raises ValueError if the tweak is not from 0 to ORDER - 1, or if the sum is the
        point at infinity.
        """
        if not 0 <= tweak < ORDER:
            raise ValueError("the tweak is no number below the curve's order")
        total = _xyzz(self)
        for term in _terms(tweak):
            total = _add(total, term)
        _, _, zz, _ = total
        if zz == 0:
            raise ValueError("the sum is the point at infinity")
        [(x, y)] = _affine([total])
        return type(self)(x, y)

    def add_each(self, tweaks: Sequence[int]) -> list[Self]:
        """Returns this point + tweak * G for each of the tweaks.

        Raises ValueError if `add` would raise it for one of the tweaks. The additions
        share their modular inversions, so eight tweaks take three quarters of the time
        of eight calls of `add`.
        """
        if len(tweaks) < 2:
            return [self.add(tweak) for tweak in tweaks]
        if not all(0 <= tweak < ORDER for tweak in tweaks):
            raise ValueError("a tweak is no number below the curve's order")
        rows: list[list[_Affine]] = [[self, *_terms(tweak)] for tweak in tweaks]
        try:
            sums = _sums(rows)
        except _SameX:
            return [self.add(tweak) for tweak in tweaks]
        return [type(self)(x, y) for x, y in sums]


G = Point(
    0x79BE667EF9DCBBAC55A06295CE870B07029BFCDB2DCE28D959F2815B16F81798,
    0x483ADA7726A3C4655DA4FBFC0E1108A8FD17B448A68554199C47D08FFB10D4B8,
)


def _xyzz(point: _Affine) -> _Xyzz:
    x, y = point
    return x, y, 1, 1


def _terms(tweak: int) -> Iterator[_Affine]:
    """Yields points whose sum is tweak * G.

    For each non-zero digit it yields a point of the table, or its negative.
    """
    digits = (tweak + OFFSET).to_bytes(DIGITS, "little")
    # The index of a multiple is one less than its factor: there is no multiple 0.
    for multiples, digit in zip(_table(), digits, strict=True):
        if digit > HALF:
            yield multiples[digit - HALF - 1]
        elif digit < HALF:
            x, y = multiples[HALF - digit - 1]
            yield x, -y


def _add(total: _Xyzz, term: _Affine) -> _Xyzz:
    """Returns the sum of two points.

    They may be equal or opposite. `total` may be at infinity. Source: "madd-2008-s" of
    the Explicit-Formulas Database, which calls `rise` R, and `run` and its powers P, PP
    and PPP.
    """
    x1, y1, zz, zzz = total
    x, y = term
    if zz == 0:  # `total` is at infinity
        return x, y, 1, 1
    run = (x * zz - x1) % FIELD
    rise = (y * zzz - y1) % FIELD
    if run == 0:
        if rise == 0:
            return _double(total)
        return _INFINITY  # the points are opposite
    run2 = run * run % FIELD
    run3 = run2 * run % FIELD
    middle = x1 * run2 % FIELD
    x3 = (rise * rise - run3 - 2 * middle) % FIELD
    y3 = (rise * (middle - x3) - y1 * run3) % FIELD
    return x3, y3, zz * run2 % FIELD, zzz * run3 % FIELD


def _sums(rows: list[list[_Affine]]) -> list[_Affine]:
    """Returns the sum of the points in each row, which has at least one point.

    In each round the neighbours in all rows are added, with one modular inversion for
    all of them. Raises _SameX if two neighbours are equal or opposite.
    """
    while any(len(row) > 1 for row in rows):
        pairs: list[tuple[_Affine, _Affine]] = []
        for row in rows:
            pairs += zip(row[::2], row[1::2], strict=False)
        sums = _add_pairs(pairs)
        shorter_rows = []
        start = 0  # index in `sums` of the row's first sum
        for row in rows:
            pair_count = len(row) // 2
            end = start + pair_count
            last_without_pair = row[2 * pair_count :]
            shorter_rows.append([*sums[start:end], *last_without_pair])
            start = end
        rows = shorter_rows
    return [row[0] for row in rows]


def _add_pairs(pairs: Sequence[tuple[_Affine, _Affine]]) -> list[_Affine]:
    """Returns the sum of each pair of points.

    Raises _SameX if the points of a pair are equal or opposite.
    """
    runs = [x2 - x1 for (x1, _), (x2, _) in pairs]
    if 0 in runs:
        raise _SameX
    sums = []
    for ((x1, y1), (x2, y2)), inverse in zip(pairs, _inverses(runs), strict=True):
        slope = (y2 - y1) * inverse % FIELD
        x3 = (slope * slope - x1 - x2) % FIELD
        sums.append((x3, (slope * (x1 - x3) - y1) % FIELD))
    return sums


def _double(point: _Xyzz) -> _Xyzz:
    """Returns twice the point, which must not be at infinity.

    Source: "dbl-2008-s-1" of the Explicit-Formulas Database. No point has y = 0, since
    the order is odd. So the result is never at infinity.
    """
    x, y, zz, zzz = point
    run2 = 4 * y * y % FIELD
    run3 = 2 * y * run2 % FIELD
    rise = 3 * x * x % FIELD
    middle = x * run2 % FIELD
    x3 = (rise * rise - 2 * middle) % FIELD
    y3 = (rise * (middle - x3) - y * run3) % FIELD
    return x3, y3, zz * run2 % FIELD, zzz * run3 % FIELD


def _affine(points: Sequence[_Xyzz]) -> list[_Affine]:
    """Returns the points in affine coordinates. None of them may be at infinity."""
    inverses = _inverses([zzz for _, _, _, zzz in points])
    # 1 / zz is (zz / zzz)**2, since zz**3 = zzz**2.
    return [
        (x * (zz * inverse) ** 2 % FIELD, y * inverse % FIELD)
        for (x, y, zz, _), inverse in zip(points, inverses, strict=True)
    ]


def _inverses(values: Sequence[int]) -> list[int]:
    """Returns 1 / value for each value, none of which may be 0 modulo FIELD.

    It makes a single modular inversion for all of them (Montgomery's trick).
    """
    # products[n] is the product of the first n values.
    products = [1]
    for value in values:
        products.append(products[-1] * value % FIELD)
    inverse_of_product = pow(products.pop(), -1, FIELD)
    inverses = []
    for value in reversed(values):
        inverses.append(inverse_of_product * products.pop() % FIELD)
        inverse_of_product = inverse_of_product * value % FIELD
    inverses.reverse()
    return inverses


@cache
def _table() -> list[list[_Affine]]:
    """Returns, for each digit position, the multiples 1 to HALF of 256**position * G.

    The table is computed at the first call, and then cached.
    """
    doubles = [_xyzz(G)]  # doubles[n] is 2**n * G
    for _ in range(DIGIT_BITS * (DIGITS - 1)):
        doubles.append(_double(doubles[-1]))
    # All multiples are made affine by one call at the end, which makes one inversion.
    multiples: list[_Xyzz] = []
    for base in _affine(doubles[::DIGIT_BITS]):
        multiple = _xyzz(base)
        multiples.append(multiple)
        for _ in range(HALF - 1):
            multiple = _add(multiple, base)
            multiples.append(multiple)
    points = _affine(multiples)
    return [points[start : start + HALF] for start in range(0, len(points), HALF)]
