"""The checksum of output descriptors (BIP380)."""

from collections.abc import Sequence

from btcpay.bitcoin.address import BECH32

# The characters of descriptors, in three groups of 32.
INPUT_CHARSET = (
    "0123456789()[],'/*abcdefgh@:$%{}"
    "IJKLMNOPQRSTUVWXYZ&+-.;<=>?!^_|~"
    'ijklmnopqrstuvwxyzABCDEFGH`#"\\ '
)
GENERATOR = (0xF5DEE51989, 0xA9FDCA3312, 0x1BAB10E32D, 0x3706B1677A, 0x644D626FFD)
CHECKSUM_CHARS = 8
# Polymod shifts five bits out and XORs the generator of each that is set. These are the 32 sums of
# generators, by the five bits.
_GENERATOR_SUMS = [0]
for _generator in GENERATOR:
    _GENERATOR_SUMS += [before ^ _generator for before in _GENERATOR_SUMS]


def checksum(script: str) -> str:
    """The eight characters behind `#` (BIP380). Raises ValueError for a foreign character."""
    values = [*_expand(script), *[0] * CHECKSUM_CHARS]
    polymod = _polymod(values) ^ 1
    places = reversed(range(CHECKSUM_CHARS))
    return "".join(BECH32[polymod >> 5 * place & 31] for place in places)


def _polymod(values: Sequence[int]) -> int:
    """BIP380's `descsum_polymod`."""
    check = 1
    for value in values:
        check = (check & 0x7FFFFFFFF) << 5 ^ value ^ _GENERATOR_SUMS[check >> 35]
    return check


def _expand(script: str) -> list[int]:
    """BIP380's `descsum_expand`.

    Each character gives its place in its group; each three give one more value, of their groups.
    """
    places = [INPUT_CHARSET.index(character) for character in script]
    values: list[int] = []
    for start in range(0, len(places), 3):
        three = places[start : start + 3]
        values += [place & 31 for place in three]
        groups = 0
        for place in three:
            groups = groups * 3 + (place >> 5)
        values.append(groups)
    return values


def has_valid_checksum(text: str) -> bool:
    """True if the text behind the first `#` is the checksum of the text before it."""
    script, _, given = text.partition("#")
    try:
        return checksum(script) == given
    except ValueError:
        return False
