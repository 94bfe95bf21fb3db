"""Output scripts: their Esplora type names and their regtest addresses (BIP173, BIP350)."""

from bit.base32 import CHARSET, bech32_hrp_expand, bech32_polymod, convertbits
from bit.base58 import b58decode_check, b58encode_check

from btcpay.sandbox.errors import BadRequest

HRP = "bcrt"
BECH32_CONST, BECH32M_CONST = 1, 0x2BC830A3
P2PKH_VERSION, P2SH_VERSION = b"\x6f", b"\xc4"  # testnet's, which regtest shares
OP_RETURN = 0x6A


def p2pkh(key_hash: bytes) -> bytes:
    return b"\x76\xa9\x14" + key_hash + b"\x88\xac"


def p2sh(script_hash: bytes) -> bytes:
    return b"\xa9\x14" + script_hash + b"\x87"


def kind(script: bytes) -> str:
    """Esplora's `scriptpubkey_type`."""
    size = len(script)
    if size == 0:
        return "empty"
    if script[0] == OP_RETURN:
        return "op_return"
    if size in (35, 67) and script[0] == size - 2 and script[-1] == 0xAC:
        return "p2pk"
    if size == 25 and script == p2pkh(script[3:23]):
        return "p2pkh"
    if size == 23 and script == p2sh(script[2:22]):
        return "p2sh"
    return _witness_kind(script)


def _witness_kind(script: bytes) -> str:
    known = {
        (22, b"\x00\x14"): "v0_p2wpkh",
        (34, b"\x00\x20"): "v0_p2wsh",
        (34, b"\x51\x20"): "v1_p2tr",
    }
    return known.get((len(script), script[:2]), "unknown")


def witness_version(script: bytes) -> int | None:
    """The version of a witness program (BIP141), None for any other script."""
    if not 4 <= len(script) <= 42 or script[1] != len(script) - 2:
        return None
    if script[0] == 0:
        return 0
    return script[0] - 0x50 if 0x51 <= script[0] <= 0x60 else None


def address_of(script: bytes) -> str | None:
    """The regtest address of an output script; None where there is none."""
    name = kind(script)
    if name == "p2pkh":
        return b58encode_check(P2PKH_VERSION + script[3:23])
    if name == "p2sh":
        return b58encode_check(P2SH_VERSION + script[2:22])
    version = witness_version(script)
    return None if version is None else _segwit_address(version, script[2:])


def _segwit_address(version: int, program: bytes) -> str:
    data = [version, *convertbits(program, 8, 5)]
    const = BECH32M_CONST if version else BECH32_CONST
    check = bech32_polymod(bech32_hrp_expand(HRP) + data + [0] * 6) ^ const
    data += [check >> 5 * (5 - i) & 31 for i in range(6)]
    return f"{HRP}1{''.join(CHARSET[d] for d in data)}"


def script_of(address: str) -> bytes:
    """The output script of a regtest address. Raises BadRequest, saying what is wrong with it."""
    if address.lower().startswith(HRP + "1"):
        return _segwit_script(address)
    if address.lower().startswith(("bc1", "tb1")):
        raise BadRequest(
            f"{address} belongs to another network; regtest addresses begin with bcrt1"
        )
    try:
        payload = b58decode_check(address)
    except ValueError:
        raise BadRequest(f"{address or 'an empty text'} is no Bitcoin address") from None
    makers = {P2PKH_VERSION: p2pkh, P2SH_VERSION: p2sh}
    if len(payload) != 21 or payload[:1] not in makers:
        raise BadRequest(f"{address} is no regtest address")
    return makers[payload[:1]](payload[1:])


def _segwit_script(address: str) -> bytes:
    body = address.lower()[len(HRP) + 1 :]
    mixed = address not in (address.lower(), address.upper())
    if mixed or len(address) > 90 or len(body) < 7 or any(c not in CHARSET for c in body):
        raise BadRequest(f"{address} is no Bitcoin address")
    data = [CHARSET.index(c) for c in body]
    version, program = data[0], convertbits(data[1:-6], 5, 8, False) or []
    const = BECH32M_CONST if version else BECH32_CONST
    if bech32_polymod(bech32_hrp_expand(HRP) + data) != const:
        raise BadRequest(f"{address} has a wrong checksum; it was mistyped")
    sizes = range(2, 41) if version else (20, 32)
    if version > 16 or len(program) not in sizes:
        raise BadRequest(f"{address} is no Bitcoin address")
    return bytes([version + 0x50 if version else 0, len(program), *program])
