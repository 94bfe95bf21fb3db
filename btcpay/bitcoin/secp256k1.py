"""Points of secp256k1 (SEC 2), and the one sum that BIP32 needs: a point and tweak * G.

Nothing here takes constant time: everything is public, and no secret may come into this module.
"""

from collections.abc import Iterator, Sequence
from functools import cache, reduce
from itertools import accumulate
from typing import NamedTuple, Self

FIELD = 2**256 - 2**32 - 977  # SEC 2: p, coordinates are below it
ORDER = 0xFFFFFFFFFFFFFFFFFFFFFFFFFFFFFFFEBAAEDCE6AF48A03BBFD25E8CD0364141  # SEC 2: n

# Bits of a tweak's digit. With 8 a sum takes 33 additions, and the table of 4,224 points costs some
# 30 ms and 0.8 MB at the first sum; 7 bits would halve both, and make every sum an eighth slower.
DIGIT_BITS = 8
DIGITS = 33
HALF = 1 << DIGIT_BITS - 1
# Added to a tweak, it makes each digit d of the sum stand for d - HALF.
OFFSET = sum(HALF << DIGIT_BITS * place for place in range(DIGITS))

# x, y, zz, zzz for the point x / zz, y / zzz, where zz**3 = zzz**2 ("XYZZ" of the Explicit-Formulas
# Database): the fewest products for a sum with an affine point. At infinity zz = 0.
_Fraction = tuple[int, int, int, int]
_INFINITY = (1, 1, 0, 0)


class Point(NamedTuple):
    """A point of the curve that is not at infinity: both coordinates from 0 to FIELD - 1."""

    x: int
    y: int

    @classmethod
    def parse(cls, data: bytes) -> Self:
        """From 33 bytes: 02 or 03 for an even or odd y, and x (SEC 1, 2.3.4).

        Raises ValueError for anything else.
        """
        x = int.from_bytes(data[1:], "big")
        if len(data) != 33 or data[0] not in (2, 3) or x >= FIELD:
            raise ValueError("this is no compressed point")
        y = pow(x**3 + 7, (FIELD + 1) // 4, FIELD)
        if (y * y - x**3 - 7) % FIELD:
            raise ValueError("the curve has no point with this x")
        return cls(x, y if y & 1 == data[0] & 1 else FIELD - y)

    def format(self) -> bytes:
        """The inverse of `parse`."""
        return bytes([2 + (self.y & 1)]) + self.x.to_bytes(32, "big")

    def even(self) -> Self:
        """The point with this x whose y is even (BIP340, lift_x)."""
        if self.y % 2 == 0:
            return self
        return type(self)(self.x, FIELD - self.y)

    def add(self, tweak: int) -> Self:
        """This point + tweak * G. Raises ValueError for a tweak from ORDER on, and at infinity."""
        if not 0 <= tweak < ORDER:
            raise ValueError("the tweak is no number below the curve's order")
        total = reduce(_add, _terms(tweak), (*self, 1, 1))
        if not total[2]:
            raise ValueError("the sum is the point at infinity")
        return type(self)(*_affine([total])[0])


G = Point(
    0x79BE667EF9DCBBAC55A06295CE870B07029BFCDB2DCE28D959F2815B16F81798,
    0x483ADA7726A3C4655DA4FBFC0E1108A8FD17B448A68554199C47D08FFB10D4B8,
)


def _terms(tweak: int) -> Iterator[tuple[int, int]]:
    """Points whose sum is tweak * G, from the table; for a negative digit with a negative y."""
    digits = (tweak + OFFSET).to_bytes(DIGITS, "little")
    for multiples, digit in zip(_table(), digits, strict=True):
        if digit > HALF:
            yield multiples[digit - HALF - 1]
        elif digit < HALF:
            x, y = multiples[HALF - digit - 1]
            yield x, -y


def _add(total: _Fraction, term: tuple[int, int]) -> _Fraction:
    """The sum of two points; they may be equal or opposite, and the first at infinity."""
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
    return (
        x3,
        (rise * (middle - x3) - y1 * run3) % FIELD,
        zz * run2 % FIELD,
        zzz * run3 % FIELD,
    )


def _double(point: _Fraction) -> _Fraction:
    """Twice a point that is not at infinity. No point has y = 0: the order is odd."""
    x, y, zz, zzz = point
    run2 = 4 * y * y % FIELD
    run3 = 2 * y * run2 % FIELD
    rise = 3 * x * x % FIELD
    middle = x * run2 % FIELD
    x3 = (rise * rise - 2 * middle) % FIELD
    return (
        x3,
        (rise * (middle - x3) - y * run3) % FIELD,
        zz * run2 % FIELD,
        zzz * run3 % FIELD,
    )


def _affine(points: Sequence[_Fraction]) -> list[tuple[int, int]]:
    """With one inversion for all, of the product of their zzz (Montgomery's trick)."""
    zzzs = (point[3] for point in points)
    products = list(accumulate(zzzs, lambda a, b: a * b % FIELD, initial=1))
    inverse = pow(products.pop(), -1, FIELD)
    found = []
    for x, y, zz, zzz in reversed(points):
        own = inverse * products.pop() % FIELD
        found.append((x * (zz * own) ** 2 % FIELD, y * own % FIELD))
        inverse = inverse * zzz % FIELD
    return found[::-1]


@cache
def _table() -> list[list[tuple[int, int]]]:
    """For each digit's place the multiples 1 to HALF of 256**place * G; made at the first sum."""
    doubled: list[_Fraction] = [(*G, 1, 1)]
    for _ in range(DIGIT_BITS * (DIGITS - 1)):
        doubled.append(_double(doubled[-1]))
    bases = _affine(doubled[::DIGIT_BITS])
    rows = [
        accumulate([base] * (HALF - 1), _add, initial=(*base, 1, 1)) for base in bases
    ]
    points = _affine([point for row in rows for point in row])
    return [points[at : at + HALF] for at in range(0, len(points), HALF)]
