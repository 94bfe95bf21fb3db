"""The checksum of output descriptors (BIP380)."""

_INPUT = (
    "0123456789()[],'/*abcdefgh@:$%{}"
    "IJKLMNOPQRSTUVWXYZ&+-.;<=>?!^_|~"
    'ijklmnopqrstuvwxyzABCDEFGH`#"\\ '
)
_OUTPUT = "qpzry9x8gf2tvdw0s3jn54khce6mua7l"
_GENERATOR = (0xF5DEE51989, 0xA9FDCA3312, 0x1BAB10E32D, 0x3706B1677A, 0x644D626FFD)
_CHECKSUM_SYMBOLS = 8


def checksum(script: str) -> str:
    """The eight symbols that follow `#` (BIP380). Raises ValueError for a foreign character."""
    remainder = 1
    for symbol in [*_symbols(script), *[0] * _CHECKSUM_SYMBOLS]:
        remainder = _step(remainder, symbol)
    remainder ^= 1
    return "".join(_OUTPUT[remainder >> 5 * place & 31] for place in reversed(range(8)))


def _symbols(script: str) -> list[int]:
    """Each character's place in its group of 32; after each third one, its groups as one symbol."""
    places = [_INPUT.index(character) for character in script]
    symbols: list[int] = []
    for start in range(0, len(places), 3):
        three = places[start : start + 3]
        symbols += [place & 31 for place in three]
        groups = 0
        for place in three:
            groups = groups * 3 + (place >> 5)
        symbols.append(groups)
    return symbols


def _step(remainder: int, symbol: int) -> int:
    """One step of the division by the generator, a polynomial over GF(32)."""
    top = remainder >> 35
    remainder = (remainder & 0x7FFFFFFFF) << 5 ^ symbol
    for bit, generator in enumerate(_GENERATOR):
        if top >> bit & 1:
            remainder ^= generator
    return remainder


def is_checked(text: str) -> bool:
    """True where the text behind the first `#` is the checksum of the text before it."""
    script, _, given = text.partition("#")
    try:
        return checksum(script) == given
    except ValueError:
        return False
