"""Computes and verifies the checksums of output descriptors (BIP380)."""

from collections.abc import Sequence

from btcpay.bitcoin.address import BECH32

# The characters that a descriptor may have, in three groups of 32.
INPUT_CHARSET = (
    "0123456789()[],'/*abcdefgh@:$%{}"
    "IJKLMNOPQRSTUVWXYZ&+-.;<=>?!^_|~"
    'ijklmnopqrstuvwxyzABCDEFGH`#"\\ '
)
GENERATOR = (0xF5DEE51989, 0xA9FDCA3312, 0x1BAB10E32D, 0x3706B1677A, 0x644D626FFD)
CHECKSUM_CHARS = 8
# In each step, polymod shifts out five bits, and XORs a generator for each set bit. This table has
# the XOR of the generators for each of the 32 values of these bits.
_GENERATOR_SUMS = [0]
for _generator in GENERATOR:
    _GENERATOR_SUMS += [before ^ _generator for before in _GENERATOR_SUMS]


def checksum(script: str) -> str:
    """Returns the checksum of a descriptor: the eight characters after `#` (BIP380).

    Raises ValueError if the descriptor has a character that BIP380 does not allow.
    """
    values = [*_expand(script), *[0] * CHECKSUM_CHARS]
    polymod = _polymod(values) ^ 1
    places = reversed(range(CHECKSUM_CHARS))
    return "".join(BECH32[(polymod >> (5 * place)) & 31] for place in places)


def _polymod(values: Sequence[int]) -> int:
    """Returns BIP380's `descsum_polymod` of the values."""
    check = 1
    for value in values:
        check = ((check & 0x7FFFFFFFF) << 5) ^ value ^ _GENERATOR_SUMS[check >> 35]
    return check


def _expand(script: str) -> list[int]:
    """Returns the values of BIP380's `descsum_expand`.

    `INPUT_CHARSET` has three groups of 32 characters. Each character of the script adds
    its index within its group. Each three characters add a value that combines the
    numbers of their groups.
    """
    places = [INPUT_CHARSET.index(character) for character in script]
    values: list[int] = []
    for start in range(0, len(places), 3):
        three_places = places[start : start + 3]
        combined_groups = 0
        for place in three_places:
            group, index = divmod(place, 32)
            values.append(index)
            combined_groups = combined_groups * 3 + group
        values.append(combined_groups)
    return values


def has_valid_checksum(text: str) -> bool:
    """True if the text after the first `#` is the checksum of the text before it."""
    script, _, suffix = text.partition("#")
    try:
        return checksum(script) == suffix
    except ValueError:
        return False
