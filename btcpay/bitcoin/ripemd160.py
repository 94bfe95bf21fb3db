"""RIPEMD-160, also where Python's OpenSSL has none.

So it is in OpenSSL 3.0.0 to 3.0.6, which Ubuntu 22.04 has (the legacy provider alone has it there),
under FIPS, and in Pythons built on another library. What stands here is the function as its
authors define it: Dobbertin, Bosselaers, Preneel, "RIPEMD-160, a strengthened version of RIPEMD".
"""

import hashlib
import struct
from collections.abc import Iterator, Sequence

_START = (0x67452301, 0xEFCDAB89, 0x98BADCFE, 0x10325476, 0xC3D2E1F0)
_WORD = 0xFFFFFFFF

_State = Sequence[int]
_Steps = tuple[
    tuple[int, int, int], ...
]  # number of the word, how far to the left and to the right

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


def _rounds(order: Sequence[int]) -> Iterator[_Steps]:
    """The steps of a line's five rounds."""
    for shifts in _SHIFTS:
        yield tuple((word, shifts[word], 32 - shifts[word]) for word in order)
        order = [_RHO[word] for word in order]


# The rounds differ in how they mix b, c and d. Each has a loop of its own, since a call for each of
# the 160 steps costs a third more. Only what is shifted to the right must be a word; the others
# may have bits above it.


def _round_1(state: _State, words: Sequence[int], steps: _Steps, added: int) -> _State:
    a, b, c, d, e = state
    for word, left, right in steps:
        total = a + (b ^ c ^ d) + words[word] + added & _WORD
        a, e = e, d
        d, c = c << 10 | c >> 22, b
        b = (total << left | total >> right) + a & _WORD
    return a, b, c, d, e


def _round_2(state: _State, words: Sequence[int], steps: _Steps, added: int) -> _State:
    a, b, c, d, e = state
    for word, left, right in steps:
        total = a + (d ^ b & (c ^ d)) + words[word] + added & _WORD  # c where b is set, else d
        a, e = e, d
        d, c = c << 10 | c >> 22, b
        b = (total << left | total >> right) + a & _WORD
    return a, b, c, d, e


def _round_3(state: _State, words: Sequence[int], steps: _Steps, added: int) -> _State:
    a, b, c, d, e = state
    for word, left, right in steps:
        total = a + ((b | c ^ _WORD) ^ d) + words[word] + added & _WORD
        a, e = e, d
        d, c = c << 10 | c >> 22, b
        b = (total << left | total >> right) + a & _WORD
    return a, b, c, d, e


def _round_4(state: _State, words: Sequence[int], steps: _Steps, added: int) -> _State:
    a, b, c, d, e = state
    for word, left, right in steps:
        total = a + (c ^ d & (b ^ c)) + words[word] + added & _WORD  # b where d is set, else c
        a, e = e, d
        d, c = c << 10 | c >> 22, b
        b = (total << left | total >> right) + a & _WORD
    return a, b, c, d, e


def _round_5(state: _State, words: Sequence[int], steps: _Steps, added: int) -> _State:
    a, b, c, d, e = state
    for word, left, right in steps:
        total = a + (b ^ (c | d ^ _WORD)) + words[word] + added & _WORD
        a, e = e, d
        d, c = c << 10 | c >> 22, b
        b = (total << left | total >> right) + a & _WORD
    return a, b, c, d, e


_MIXES = (_round_1, _round_2, _round_3, _round_4, _round_5)
_LEFT = tuple(
    zip(
        _MIXES,
        _rounds(range(16)),
        (0, 0x5A827999, 0x6ED9EBA1, 0x8F1BBCDC, 0xA953FD4E),
        strict=True,
    )
)
_RIGHT = tuple(
    zip(
        _MIXES[::-1],
        _rounds([(9 * i + 5) % 16 for i in range(16)]),
        (0x50A28BE6, 0x5C4DD124, 0x6D703EF3, 0x7A6D76E9, 0),
        strict=True,
    )
)


def ripemd160(data: bytes) -> bytes:
    """The digest, 20 bytes: OpenSSL's where there is one, which takes 2 us, not 75."""
    try:
        return hashlib.new("ripemd160", data).digest()
    except ValueError:
        return ripemd160_in_python(data)


def ripemd160_in_python(data: bytes) -> bytes:
    """The same, without OpenSSL."""
    state: _State = _START
    padding = b"\x80" + bytes(-(len(data) + 9) % 64)
    for words in struct.iter_unpack("<16I", data + padding + struct.pack("<Q", 8 * len(data))):
        left = right = state
        for mix, steps, added in _LEFT:
            left = mix(left, words, steps, added)
        for mix, steps, added in _RIGHT:
            right = mix(right, words, steps, added)
        state = [(state[i - 4] + left[i - 3] + right[i - 2]) & _WORD for i in range(5)]
    return struct.pack("<5I", *state)
