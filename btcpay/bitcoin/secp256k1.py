"""Points of secp256k1 (SEC 2), and the one sum that BIP32 needs: a point and tweak * G.

The time of a sum depends on its numbers. All of them are public, and no secret may be used here.
"""

from collections.abc import Iterator, Sequence
from functools import cache, reduce
from typing import NamedTuple, Self

# SEC 2's p: coordinates are below it.
FIELD = 2**256 - 2**32 - 977
# SEC 2's n: n * G is the point at infinity.
ORDER = 0xFFFFFFFFFFFFFFFFFFFFFFFFFFFFFFFEBAAEDCE6AF48A03BBFD25E8CD0364141

# A tweak is split into digits of 8 bits. So a sum takes 33 additions, and the table of 4,224 points
# costs some 30 ms and 0.8 MB at the first sum. 7 bits would halve both costs, and make every sum an
# eighth slower.
DIGIT_BITS = 8
DIGITS = 33
HALF = 1 << DIGIT_BITS - 1
# The digits of tweak + OFFSET are from 0 to 255. A digit d of it stands for d - HALF, so that a
# table of the positive multiples is enough.
OFFSET = sum(HALF << DIGIT_BITS * place for place in range(DIGITS))

# x, y, zz, zzz for the point (x / zz, y / zzz), where zz**3 = zzz**2. At infinity zz = 0. Sums with
# an affine point take the fewest products so. Source: "XYZZ" of the Explicit-Formulas Database.
_Xyzz = tuple[int, int, int, int]
_Affine = tuple[int, int]
_INFINITY = (1, 1, 0, 0)


class Point(NamedTuple):
    """A point that is not at infinity; both coordinates are from 0 to FIELD - 1."""

    x: int
    y: int

    @classmethod
    def parse(cls, data: bytes) -> Self:
        """The point in 33 bytes: 02 if y is even or 03 if it is odd, and x (SEC 1, 2.3.4).

        Raises ValueError for anything else.
        """
        x = int.from_bytes(data[1:], "big")
        if len(data) != 33 or data[0] not in (2, 3) or x >= FIELD:
            raise ValueError("this is no compressed point")
        y = pow(x**3 + 7, (FIELD + 1) // 4, FIELD)
        if (y * y - x**3 - 7) % FIELD:
            raise ValueError("the curve has no point with this x")
        is_odd = data[0] == 3
        if y % 2 != is_odd:
            y = FIELD - y
        return cls(x, y)

    def format(self) -> bytes:
        """The inverse of `parse`."""
        return bytes([2 + (self.y & 1)]) + self.x.to_bytes(32, "big")

    def with_even_y(self) -> Self:
        """The point with this x whose y is even (BIP340, lift_x)."""
        if self.y % 2 == 0:
            return self
        return type(self)(self.x, FIELD - self.y)

    def add(self, tweak: int) -> Self:
        """This point + tweak * G.

        Raises ValueError if the tweak is not below ORDER, or the sum is the point at infinity.
        """
        if not 0 <= tweak < ORDER:
            raise ValueError("the tweak is no number below the curve's order")
        total = reduce(_add, _terms(tweak), _xyzz(self))
        _, _, zz, _ = total
        if zz == 0:
            raise ValueError("the sum is the point at infinity")
        [(x, y)] = _affine([total])
        return type(self)(x, y)


G = Point(
    0x79BE667EF9DCBBAC55A06295CE870B07029BFCDB2DCE28D959F2815B16F81798,
    0x483ADA7726A3C4655DA4FBFC0E1108A8FD17B448A68554199C47D08FFB10D4B8,
)


def _xyzz(point: _Affine) -> _Xyzz:
    x, y = point
    return x, y, 1, 1


def _terms(tweak: int) -> Iterator[_Affine]:
    """Points whose sum is tweak * G: for each digit one of the table, or its negative."""
    digits = (tweak + OFFSET).to_bytes(DIGITS, "little")
    for multiples, digit in zip(_table(), digits, strict=True):
        if digit > HALF:
            yield multiples[digit - HALF - 1]
        elif digit < HALF:
            x, y = multiples[HALF - digit - 1]
            yield x, -y


def _add(total: _Xyzz, term: _Affine) -> _Xyzz:
    """The sum of two points, which may be equal or opposite; the first may be at infinity."""
    x1, y1, zz, zzz = total
    x, y = term
    if not zz:
        return x, y, 1, 1
    run = (x * zz - x1) % FIELD
    rise = (y * zzz - y1) % FIELD
    if not run:
        if rise:
            return _INFINITY
        return _double(total)
    run2 = run * run % FIELD
    run3 = run2 * run % FIELD
    middle = x1 * run2 % FIELD
    x3 = (rise * rise - run3 - 2 * middle) % FIELD
    y3 = (rise * (middle - x3) - y1 * run3) % FIELD
    return x3, y3, zz * run2 % FIELD, zzz * run3 % FIELD


def _double(point: _Xyzz) -> _Xyzz:
    """Twice a point that is not at infinity. No point has y = 0, since the order is odd."""
    x, y, zz, zzz = point
    run2 = 4 * y * y % FIELD
    run3 = 2 * y * run2 % FIELD
    rise = 3 * x * x % FIELD
    middle = x * run2 % FIELD
    x3 = (rise * rise - 2 * middle) % FIELD
    y3 = (rise * (middle - x3) - y * run3) % FIELD
    return x3, y3, zz * run2 % FIELD, zzz * run3 % FIELD


def _affine(points: Sequence[_Xyzz]) -> list[_Affine]:
    """The points by x and y; none may be at infinity.

    It inverts only the product of all zzz, and computes the inverse of each from it (Montgomery's
    trick).
    """
    # products[n] is the product of the first n zzz.
    products = [1]
    for _, _, _, zzz in points:
        products.append(products[-1] * zzz % FIELD)
    inverse_of_product = pow(products.pop(), -1, FIELD)
    affine = []
    for x, y, zz, zzz in reversed(points):
        inverse = inverse_of_product * products.pop() % FIELD
        inverse_of_product = inverse_of_product * zzz % FIELD
        # 1 / zz is (zz / zzz)**2, since zz**3 = zzz**2.
        affine.append((x * (zz * inverse) ** 2 % FIELD, y * inverse % FIELD))
    affine.reverse()
    return affine


@cache
def _table() -> list[list[_Affine]]:
    """For each digit's place the multiples 1 to HALF of 256**place * G; made at the first sum."""
    doubles = [_xyzz(G)]
    for _ in range(DIGIT_BITS * (DIGITS - 1)):
        doubles.append(_double(doubles[-1]))
    multiples: list[_Xyzz] = []
    for base in _affine(doubles[::DIGIT_BITS]):
        multiple = _xyzz(base)
        multiples.append(multiple)
        for _ in range(HALF - 1):
            multiple = _add(multiple, base)
            multiples.append(multiple)
    points = _affine(multiples)
    return [points[start : start + HALF] for start in range(0, len(points), HALF)]
