"""RIPEMD-160, also where Python's OpenSSL has none.

So it is in OpenSSL 3.0.0 to 3.0.6, which Ubuntu 22.04 has (the legacy provider alone has it there),
under FIPS, and in Pythons built on another library. What stands here is the function as its
authors define it: Dobbertin, Bosselaers, Preneel, "RIPEMD-160, a strengthened version of RIPEMD".
"""

import hashlib
import struct
from collections.abc import Callable, Iterable, Sequence

_START = (0x67452301, 0xEFCDAB89, 0x98BADCFE, 0x10325476, 0xC3D2E1F0)
_WORD = 0xFFFFFFFF

# Each line has five rounds of 16 steps; `rho` takes the order of the words to the next round's.
_RHO = (7, 4, 13, 1, 10, 6, 15, 3, 12, 0, 9, 5, 2, 14, 11, 8)
# How far each word is rotated, in each round, in both lines.
_SHIFTS = (
    (11, 14, 15, 12, 5, 8, 7, 9, 11, 13, 14, 15, 6, 7, 9, 8),
    (12, 13, 11, 15, 6, 9, 9, 7, 12, 15, 11, 13, 7, 8, 7, 7),
    (13, 15, 14, 11, 7, 7, 6, 8, 13, 14, 13, 12, 5, 5, 6, 9),
    (14, 11, 12, 14, 8, 6, 5, 5, 15, 12, 15, 14, 9, 9, 8, 6),
    (15, 12, 13, 13, 9, 5, 8, 6, 14, 11, 12, 11, 8, 6, 5, 5),
)


# How b, c and d are mixed, a function for each round; only the right part of a word counts.
_MIXES: tuple[Callable[[int, int, int], int], ...] = (
    lambda b, c, d: b ^ c ^ d,
    lambda b, c, d: d ^ b & (c ^ d),  # c where b is set, else d
    lambda b, c, d: (b | ~c) ^ d,
    lambda b, c, d: c ^ d & (b ^ c),  # b where d is set, else c
    lambda b, c, d: b ^ (c | ~d),
)
_LEFT_ADDED = (0, 0x5A827999, 0x6ED9EBA1, 0x8F1BBCDC, 0xA953FD4E)
_RIGHT_ADDED = (0x50A28BE6, 0x5C4DD124, 0x6D703EF3, 0x7A6D76E9, 0)
_Line = Sequence[tuple[Callable[[int, int, int], int], int, Sequence[int], Sequence[int]]]


def _line(
    mixes: Iterable[Callable[[int, int, int], int]], added: Iterable[int], first: Sequence[int]
) -> _Line:
    orders = [first]
    while len(orders) < len(_SHIFTS):
        orders.append([_RHO[word] for word in orders[-1]])
    return tuple(zip(mixes, added, _SHIFTS, orders, strict=True))


_LEFT = _line(_MIXES, _LEFT_ADDED, range(16))
_RIGHT = _line(_MIXES[::-1], _RIGHT_ADDED, [(9 * i + 5) % 16 for i in range(16)])


def _through(line: _Line, state: Sequence[int], words: Sequence[int]) -> Sequence[int]:
    """The state behind the 80 steps of a line."""
    a, b, c, d, e = state
    for mix, added, shifts, order in line:
        for word in order:
            total = a + mix(b, c, d) + words[word] + added & _WORD
            shift = shifts[word]
            rotated = (total << shift | total >> 32 - shift) + e & _WORD
            a, b, c, d, e = e, rotated, b, (c << 10 | c >> 22) & _WORD, d
    return a, b, c, d, e


def ripemd160(data: bytes) -> bytes:
    """The digest, 20 bytes: OpenSSL's where there is one, which takes 2 us, not 85."""
    try:
        return hashlib.new("ripemd160", data).digest()
    except ValueError:
        return ripemd160_in_python(data)


def ripemd160_in_python(data: bytes) -> bytes:
    """The same, without OpenSSL."""
    state: Sequence[int] = _START
    padding = b"\x80" + bytes(-(len(data) + 9) % 64)
    for words in struct.iter_unpack("<16I", data + padding + struct.pack("<Q", 8 * len(data))):
        left, right = _through(_LEFT, state, words), _through(_RIGHT, state, words)
        state = [(state[i - 4] + left[i - 3] + right[i - 2]) & _WORD for i in range(5)]
    return struct.pack("<5I", *state)
