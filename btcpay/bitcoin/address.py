"""Addresses and the output scripts behind them: Base58Check, Bech32 (BIP173), Bech32m (BIP350)."""

from typing import Protocol

from btcpay.bitcoin.wire import DecodeError, hash256

BASE58 = "123456789ABCDEFGHJKLMNPQRSTUVWXYZabcdefghijkmnopqrstuvwxyz"
CHECKSUM_BYTES = 4
MAX_BASE58_CHARS = (
    120  # characters; an extended key has 111, and nothing that is read has more
)

BECH32 = "qpzry9x8gf2tvdw0s3jn54khce6mua7l"
CHECKSUM_CHARS = 6
MAX_CHARS = 90
BECH32_CONST = 1
BECH32M_CONST = 0x2BC830A3
_REMAINDERS = [
    0
]  # the XOR of BIP173's generators of the five bits that leave at the top
for _generator in (0x3B6A57B2, 0x26508E6D, 0x1EA119FA, 0x3D4233DD, 0x2A1462B3):
    _REMAINDERS += [each ^ _generator for each in _REMAINDERS]

# The least that nodes relay to a script, by its length in bytes: Bitcoin Core's dust limit
# (policy/policy.cpp, GetDustThreshold), 3 satoshis for each virtual byte of the output and of the
# input that spends it.
DUST_LIMITS_SATS = {22: 294, 23: 540, 25: 546, 34: 330}


class Prefixes(Protocol):
    """A network's human-readable part (BIP173), and its version bytes of Base58Check."""

    @property
    def bech32_hrp(self) -> str: ...
    @property
    def p2pkh(self) -> bytes: ...
    @property
    def p2sh(self) -> bytes: ...


def address_of(script: bytes, network: Prefixes) -> str:
    """The address of a script as `script_of` makes it: P2PKH, P2SH or a witness program."""
    if script.startswith(b"\x76\xa9"):
        return b58check_encode(network.p2pkh + script[3:23])
    if script.startswith(b"\xa9"):
        return b58check_encode(network.p2sh + script[2:22])
    return segwit_encode(network.bech32_hrp, max(0, script[0] - 0x50), script[2:])


def script_of(address: str, network: Prefixes) -> bytes:
    """The scriptPubKey of an address of the network. Raises DecodeError for any other text."""
    if address.lower().startswith(f"{network.bech32_hrp}1"):
        _, version, program = segwit_decode(address)
        return witness_script(version, program)
    payload = b58check_decode(address)
    makers = {network.p2pkh: p2pkh, network.p2sh: p2sh}
    if len(payload) != 21 or payload[:1] not in makers:
        raise DecodeError("no address of this network")
    return makers[payload[:1]](payload[1:])


def p2pkh(key_hash: bytes) -> bytes:
    """The script that pays the HASH160 of a public key."""
    return b"\x76\xa9\x14" + key_hash + b"\x88\xac"


def p2sh(script_hash: bytes) -> bytes:
    """The script that pays the HASH160 of a script (BIP16)."""
    return b"\xa9\x14" + script_hash + b"\x87"


def witness_script(version: int, program: bytes) -> bytes:
    """The script that pays a witness program of 2 to 40 bytes (BIP141)."""
    return bytes([version + 0x50 if version else 0, len(program)]) + program


def b58check_encode(payload: bytes) -> str:
    """Base58 of a payload and the first 4 bytes of its double hash."""
    data = payload + hash256(payload)[:CHECKSUM_BYTES]
    number = int.from_bytes(data, "big")
    text = ""
    while number:
        number, digit = divmod(number, 58)
        text = BASE58[digit] + text
    return BASE58[0] * (len(data) - len(data.lstrip(b"\x00"))) + text


def b58check_decode(text: str) -> bytes:
    """The inverse of `b58check_encode`. Raises DecodeError."""
    if len(text) > MAX_BASE58_CHARS:  # the time grows with the square of the length
        raise DecodeError("more characters than an extended key has")
    number = 0
    for char in text:
        digit = BASE58.find(char)
        if digit < 0:
            raise DecodeError("a character that Base58 lacks")
        number = number * 58 + digit
    zeros = len(text) - len(text.lstrip(BASE58[0]))
    data = bytes(zeros) + number.to_bytes((number.bit_length() + 7) // 8, "big")
    payload = data[:-CHECKSUM_BYTES]
    checksum = data[-CHECKSUM_BYTES:]
    if hash256(payload)[:CHECKSUM_BYTES] != checksum:
        raise DecodeError("a wrong checksum")
    return payload


def segwit_encode(hrp: str, version: int, program: bytes) -> str:
    """The address of a witness program; `hrp` is the network's human-readable part."""
    chars = -(-8 * len(program) // 5)
    number = int.from_bytes(program, "big") << 5 * chars - 8 * len(program)
    values = [version, *(number >> 5 * place & 31 for place in reversed(range(chars)))]
    check = _polymod(hrp, values + [0] * CHECKSUM_CHARS)
    values += [check >> 5 * place & 31 for place in reversed(range(CHECKSUM_CHARS))]
    return f"{hrp}1{''.join(BECH32[value] for value in values)}"


def segwit_decode(address: str) -> tuple[str, int, bytes]:
    """Human-readable part, version and witness program. Raises DecodeError, saying why."""
    hrp, _, data = address.lower().rpartition("1")
    if address not in (address.lower(), address.upper()):
        raise DecodeError("upper and lower case are mixed")
    if not hrp or len(address) > MAX_CHARS or min(address) < "!" or max(address) > "~":
        raise DecodeError("no human-readable part, or more than 90 characters")
    values = [BECH32.find(char) for char in data]
    if len(values) <= CHECKSUM_CHARS or -1 in values:
        raise DecodeError("no data, or a character that Bech32 lacks")
    version, *program = values[:-CHECKSUM_CHARS]
    if _polymod(hrp, values):
        raise DecodeError("a wrong checksum")
    return hrp, version, _program(version, program)


def _program(version: int, values: list[int]) -> bytes:
    """The bytes of a program whose values have 5 bits each, the last ones zeros that fill up."""
    number = 0
    for value in values:
        number = number << 5 | value
    size, filled = divmod(5 * len(values), 8)
    if filled > 4 or number & (1 << filled) - 1:
        raise DecodeError("wrong padding")
    if version > 16 or not (2 <= size <= 40 if version else size in (20, 32)):
        raise DecodeError("no such witness program")
    return (number >> filled).to_bytes(size, "big")


def _polymod(hrp: str, values: list[int]) -> int:
    """The checksum of these values, of which the first is the version; 0 if they end in theirs."""
    check = 1
    for value in [*(ord(c) >> 5 for c in hrp), 0, *(ord(c) & 31 for c in hrp), *values]:
        check = (check & 0x1FFFFFF) << 5 ^ value ^ _REMAINDERS[check >> 25]
    return check ^ (BECH32M_CONST if values[0] else BECH32_CONST)
