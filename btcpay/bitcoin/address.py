"""Converts addresses to scriptPubKeys and back.

Encodings: Base58Check (base58.py), Bech32 (BIP173) and Bech32m (BIP350).
"""

from collections.abc import Sequence
from typing import Protocol

from btcpay.bitcoin.base58 import b58check_decode, b58check_encode
from btcpay.bitcoin.wire import DecodeError

BECH32 = "qpzry9x8gf2tvdw0s3jn54khce6mua7l"
CHECKSUM_CHARS = 6
MAX_CHARS = 90  # maximum length of a Bech32 address
BECH32_CONST = 1
BECH32M_CONST = 0x2BC830A3
GENERATOR = (0x3B6A57B2, 0x26508E6D, 0x1EA119FA, 0x3D4233DD, 0x2A1462B3)
MAX_WITNESS_VERSION = 16

# In each step, BIP173's polymod shifts out five bits, and XORs a generator for each set bit.
# This table has the XOR of the generators for each of the 32 values of these bits.
_GENERATOR_SUMS = [0]
for _generator in GENERATOR:
    _GENERATOR_SUMS += [before ^ _generator for before in _GENERATOR_SUMS]

OP_1 = 0x51
_P2PKH_START = b"\x76\xa9\x14"  # OP_DUP OP_HASH160, push of 20 bytes
_P2PKH_END = b"\x88\xac"  # OP_EQUALVERIFY OP_CHECKSIG
_P2SH_START = b"\xa9\x14"  # OP_HASH160, push of 20 bytes
_P2SH_END = b"\x87"  # OP_EQUAL

# The minimum value of an output by the length of its script in bytes. Nodes do not relay outputs
# below Bitcoin Core's dust limit (policy/policy.cpp, GetDustThreshold): 3 satoshis for each virtual
# byte of the output and of the input that spends it.
DUST_LIMITS_SATS = {22: 294, 23: 540, 25: 546, 34: 330}


class Prefixes(Protocol):
    """The prefixes of a network's addresses.

    `bech32_hrp` is the human-readable part of segwit addresses (BIP173). `p2pkh` and
    `p2sh` are the version bytes of the older addresses (Base58Check).
    """

    @property
    def bech32_hrp(self) -> str: ...
    @property
    def p2pkh(self) -> bytes: ...
    @property
    def p2sh(self) -> bytes: ...


def address_of(script: bytes, network: Prefixes) -> str:
    """Returns the address of a scriptPubKey on this network.

    The script must be one that `script_of` returns: P2PKH, P2SH or a witness program.
    The function does not check this, and returns a wrong address for other scripts.
    """
    if script.startswith(_P2PKH_START):
        key_hash = script[3:23]
        return b58check_encode(network.p2pkh + key_hash)
    if script.startswith(_P2SH_START):
        script_hash = script[2:22]
        return b58check_encode(network.p2sh + script_hash)
    opcode = script[0]
    program = script[2:]  # script[1] is its length
    version = 0
    if opcode >= OP_1:
        version = opcode - OP_1 + 1
    return segwit_encode(network.bech32_hrp, version, program)


def script_of(address: str, network: Prefixes) -> bytes:
    """Returns the scriptPubKey of an address of this network.

    Raises DecodeError if the text is not such an address.
    """
    if address.lower().startswith(f"{network.bech32_hrp}1"):
        _, version, program = segwit_decode(address)
        return witness_script(version, program)
    payload = b58check_decode(address)
    prefix = payload[:1]
    digest = payload[1:]
    if len(payload) == 21 and prefix == network.p2pkh:
        return p2pkh(digest)
    if len(payload) == 21 and prefix == network.p2sh:
        return p2sh(digest)
    raise DecodeError("no address of this network")


def p2pkh(key_hash: bytes) -> bytes:
    """Returns the P2PKH scriptPubKey for the HASH160 (20 bytes) of a public key."""
    return _P2PKH_START + key_hash + _P2PKH_END


def p2sh(script_hash: bytes) -> bytes:
    """Returns the P2SH scriptPubKey (BIP16) for the HASH160 (20 bytes) of a script."""
    return _P2SH_START + script_hash + _P2SH_END


def witness_script(version: int, program: bytes) -> bytes:
    """Returns the scriptPubKey of a witness program (BIP141).

    `version` is from 0 to 16. `program` has 2 to 40 bytes.
    """
    opcode = 0
    if version > 0:
        opcode = OP_1 + version - 1
    return bytes([opcode, len(program)]) + program


def segwit_encode(hrp: str, version: int, program: bytes) -> str:
    """Returns the segwit address of a witness program (BIP173, BIP350).

    `hrp` is the network's human-readable part.
    """
    bits = 8 * len(program)
    chars = (bits + 4) // 5  # rounded up
    padding_bits = 5 * chars - bits
    number = int.from_bytes(program, "big") << padding_bits
    values = [version, *_five_bit_values(number, chars)]
    checksum = _polymod(hrp, values + [0] * CHECKSUM_CHARS) ^ _constant(version)
    values += _five_bit_values(checksum, CHECKSUM_CHARS)
    data = "".join(BECH32[value] for value in values)
    return f"{hrp}1{data}"


def segwit_decode(address: str) -> tuple[str, int, bytes]:
    """Decodes a segwit address.

    Returns its human-readable part, its witness version and its witness program. Raises
    DecodeError with the reason if the address is invalid (BIP173, BIP350).
    """
    if address not in (address.lower(), address.upper()):
        raise DecodeError("upper and lower case are mixed")
    hrp, _, data = address.lower().rpartition("1")
    is_printable = all("!" <= char <= "~" for char in address)
    is_too_long = len(address) > MAX_CHARS
    if not hrp or is_too_long or not is_printable:
        raise DecodeError("no human-readable part, or more than 90 characters")
    values = [BECH32.find(char) for char in data]
    if len(values) <= CHECKSUM_CHARS or -1 in values:
        raise DecodeError("no data, or a character that Bech32 lacks")
    version = values[0]
    if _polymod(hrp, values) != _constant(version):
        raise DecodeError("a wrong checksum")
    program = _program(version, values[1:-CHECKSUM_CHARS])
    return hrp, version, program


def _five_bit_values(number: int, count: int) -> list[int]:
    """Returns the lowest `count` groups of five bits of a number.

    The most significant group comes first.
    """
    places = reversed(range(count))
    return [(number >> (5 * place)) & 31 for place in places]


def _program(version: int, values: Sequence[int]) -> bytes:
    """Returns the witness program that is encoded in 5-bit values.

    Raises DecodeError if the padding, the version or the program's size is invalid.
    """
    number = 0
    for value in values:
        number = (number << 5) | value
    size, padding_bits = divmod(5 * len(values), 8)
    padding = number & ((1 << padding_bits) - 1)
    # Five or more bits would be a whole superfluous value (BIP173).
    if padding_bits > 4 or padding:
        raise DecodeError("wrong padding")
    valid_sizes: Sequence[int] = range(2, 41)
    if version == 0:
        valid_sizes = (20, 32)
    if version > MAX_WITNESS_VERSION or size not in valid_sizes:
        raise DecodeError("no such witness program")
    return (number >> padding_bits).to_bytes(size, "big")


def _constant(version: int) -> int:
    """Returns the `_polymod` of a valid address of this witness version.

    It is the constant of Bech32 for version 0, and of Bech32m for later versions.
    """
    if version == 0:
        return BECH32_CONST
    return BECH32M_CONST


def _polymod(hrp: str, values: Sequence[int]) -> int:
    """Returns BIP173's `bech32_polymod` of an address.

    `values` are the 5-bit values of its data part. The function expands `hrp` itself.
    """
    high_bits = [ord(char) >> 5 for char in hrp]
    low_bits = [ord(char) & 31 for char in hrp]
    check = 1
    for value in (*high_bits, 0, *low_bits, *values):
        check = ((check & 0x1FFFFFF) << 5) ^ value ^ _GENERATOR_SUMS[check >> 25]
    return check
