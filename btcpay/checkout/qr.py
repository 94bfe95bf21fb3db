"""QR codes of payment URIs (ISO/IEC 18004): bytes with error correction M, versions 1 to 6.

They hold 106 bytes; a payment URI has 97 at most, with the longest address and all bitcoin. What
is the same for all codes of a version is worked out once.
"""

from collections.abc import Callable, Iterator, Sequence
from functools import cache
from itertools import chain, product
from operator import itemgetter
from typing import NamedTuple

Place = tuple[int, int]  # row and column

# Mask 2 for all: to try all eight takes longer than all the rest. By the standard's penalties it
# was the best, or within 5 % of the best, for the addresses and amounts sampled. All can be read.
FORMAT = 0b101111001111100  # error correction M and mask 2, with check bits (table C.1)
QUIET = 4  # white modules on each side
RUNS = {"1" * n: f"h{n}" for n in range(1, 42)} | {"0" * n: f"m{n} 0" for n in range(1, 42)}


class Size(NamedTuple):
    """A version: its blocks, and of each the bytes of data and of error correction (table 9)."""

    version: int
    blocks: int
    data: int
    check: int


SIZES = (
    Size(1, 1, 16, 10),
    Size(2, 1, 28, 16),
    Size(3, 1, 44, 26),
    Size(4, 2, 32, 18),
    Size(5, 2, 43, 24),
    Size(6, 4, 27, 16),
)


class Drawing(NamedTuple):
    """Of a version: its free modules, the mask as their bits, and what picks each module.

    `pick` takes them row by row from the text of the free ones in their order, followed by `01/`.
    """

    free: int
    mask: int
    pick: Callable[[str], Sequence[str]]


def qr_svg(text: str) -> str:
    """The text as inline SVG with its quiet zone, white. Raises ValueError when it is too long.

    Attributes only, no style: the pages' policy allows none inline.
    """
    rows = modules(text)
    inner = rows.index("/")
    side, drawn = inner + 2 * QUIET, RUNS | {"/": f"m-{inner} 1"}
    runs = rows.replace("10", "1 0").replace("01", "0 1").replace("/", " / ").split()
    return (
        f'<svg viewBox="0 0 {side} {side}"><path fill="#fff" d="M0 0h{side}v{side}h-{side}z"/>'
        f'<path stroke="#000" d="M{QUIET} {QUIET}.5{"".join(map(drawn.__getitem__, runs))}"/></svg>'
    )


def modules(text: str) -> str:
    """The rows of the code, each with a slash at its end; `1` is black.

    Raises ValueError when the text is too long.
    """
    data = text.encode()
    size = next((size for size in SIZES if len(data) + 2 <= size.blocks * size.data), None)
    if size is None:
        raise ValueError(f"{len(data)} bytes are too long for a QR code of version 6")
    free, mask, pick = _drawing(size.version)
    words = _codewords(data, size)
    bits = int.from_bytes(words) << free - 8 * len(words)
    return "".join(pick(f"{bits ^ mask:0{free}b}01/"))


def _codewords(data: bytes, size: Size) -> bytes:
    """Mode (bytes), length, data, end and padding, with their check bytes, the blocks in turns."""
    length = size.blocks * size.data
    filled = (bytes.fromhex(f"4{len(data):02x}{data.hex()}0") + b"\xec\x11" * length)[:length]
    blocks = [filled[start : start + size.data] for start in range(0, len(filled), size.data)]
    checks = [_check(block, size.check) for block in blocks]
    return bytes(chain(*zip(*blocks, strict=True), *zip(*checks, strict=True)))


def _check(block: bytes, count: int) -> bytes:
    """The remainder of the block by the generator (Reed-Solomon, section 7.5)."""
    multiples, rest, top = _multiples(count), 0, 8 * count - 8
    for byte in block:
        lead = byte ^ rest >> top
        rest = (rest << 8) % (1 << 8 * count) ^ multiples[lead]
    return rest.to_bytes(count)


@cache
def _multiples(count: int) -> list[int]:
    """The generator of that degree, without its first term, times each byte; as whole numbers."""
    generator, root = [0] * (count - 1) + [1], 1
    for _ in range(count):
        raised = [*generator[1:], 0]
        generator = [_times(a, root) ^ b for a, b in zip(generator, raised, strict=True)]
        root = _times(root, 2)
    return [int.from_bytes(_times(term, byte) for term in generator) for byte in range(256)]


def _times(a: int, b: int) -> int:
    """A product in GF(256) modulo x^8 + x^4 + x^3 + x^2 + 1."""
    product = 0
    while b:
        product ^= a * (b & 1)
        a = a << 1 ^ 0x11D * (a >> 7)
        b >>= 1
    return product


@cache
def _drawing(version: int) -> Drawing:
    side = 17 + 4 * version
    fixed = _fixed(version, side)
    free = [place for place in _way(side) if place not in fixed]
    numbers = {place: number for number, place in enumerate(free)}
    numbers |= {place: len(free) + black for place, black in fixed.items()}
    rows = (
        [*(numbers[row, column] for column in range(side)), len(free) + 2] for row in range(side)
    )
    mask = "".join("01"[column % 3 == 0] for _, column in free)
    return Drawing(len(free), int(mask, 2), itemgetter(*chain(*rows)))


def _fixed(version: int, side: int) -> dict[Place, bool]:
    """The modules that no text changes, and whether they are black."""
    fixed = {}
    for at in range(8, side - 8):
        fixed[6, at] = fixed[at, 6] = at % 2 == 0
    for row, column in ((3, 3), (3, side - 4), (side - 4, 3)):
        fixed |= _square(row, column, 4, (0, 1, 3), side)
    if version > 1:
        fixed |= _square(side - 7, side - 7, 2, (0, 2), side)
    for bit, (near, far) in enumerate(_format_places(side)):
        fixed[near] = fixed[far] = bool(FORMAT >> bit & 1)
    return fixed | {(side - 8, 8): True}


def _square(
    row: int, column: int, reach: int, black: tuple[int, ...], side: int
) -> dict[Place, bool]:
    """Squares around a module, black at these distances; only what lies in the code."""
    away = range(-reach, reach + 1)
    return {
        (row + down, column + right): max(abs(down), abs(right)) in black
        for down, right in product(away, away)
        if 0 <= row + down < side and 0 <= column + right < side
    }


def _format_places(side: int) -> Iterator[tuple[Place, Place]]:
    """Where each bit of the format stands, both times, the last bit first (figure 25)."""
    near = [(at, 8) for at in (0, 1, 2, 3, 4, 5, 7, 8)] + [(8, at) for at in (7, 5, 4, 3, 2, 1, 0)]
    far = [(8, side - 1 - at) for at in range(8)] + [(side - 7 + at, 8) for at in range(7)]
    return zip(near, far, strict=True)


def _way(side: int) -> Iterator[Place]:
    """Two columns at a time from the right, up and down in turns; column 6 is left out."""
    upwards = True
    for right in (*range(side - 1, 6, -2), 5, 3, 1):
        for row in range(side - 1, -1, -1) if upwards else range(side):
            yield from ((row, right), (row, right - 1))
        upwards = not upwards
