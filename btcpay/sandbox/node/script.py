"""Output scripts: their Esplora type names and their regtest addresses."""

from btcpay.bitcoin import address as addresses
from btcpay.bitcoin.address import p2pkh, p2sh
from btcpay.bitcoin.wire import Malformed
from btcpay.sandbox.errors import BadRequest

DUST_SATS_PER_VB = 3  # Bitcoin Core, policy/policy.h: DUST_RELAY_TX_FEE
SPENDING_BYTES, WITNESS_SPENDING_BYTES = 148, 67  # an input, as GetDustThreshold counts it
HRP = "bcrt"
P2PKH_VERSION, P2SH_VERSION = b"\x6f", b"\xc4"  # testnet's, which regtest shares
OP_RETURN = 0x6A
WITNESS_KINDS = {
    (22, b"\x00\x14"): "v0_p2wpkh",
    (34, b"\x00\x20"): "v0_p2wsh",
    (34, b"\x51\x20"): "v1_p2tr",
}


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
    return WITNESS_KINDS.get((size, script[:2]), "unknown")


def witness_version(script: bytes) -> int | None:
    """The version of a witness program (BIP141), None for any other script."""
    if not 4 <= len(script) <= 42 or script[1] != len(script) - 2:
        return None
    if script[0] == 0:
        return 0
    return script[0] - 0x50 if 0x51 <= script[0] <= 0x60 else None


def least_sats(script: bytes) -> int:
    """The least that is relayed to an address's script (GetDustThreshold)."""
    spending = SPENDING_BYTES if witness_version(script) is None else WITNESS_SPENDING_BYTES
    return (8 + 1 + len(script) + spending) * DUST_SATS_PER_VB


def address_of(script: bytes) -> str | None:
    match kind(script):
        case "p2pkh":
            return addresses.b58check_encode(P2PKH_VERSION + script[3:23])
        case "p2sh":
            return addresses.b58check_encode(P2SH_VERSION + script[2:22])
    version = witness_version(script)
    return None if version is None else addresses.segwit_encode(HRP, version, script[2:])


def script_of(address: str) -> bytes:
    """The output script of a regtest address. Raises BadRequest, saying what is wrong with it."""
    if address.lower().startswith(("bc1", "tb1")):
        why = "belongs to another network; regtest addresses begin with bcrt1"
        raise BadRequest(f"{address} {why}")
    try:
        if address.lower().startswith(HRP + "1"):
            _, version, program = addresses.segwit_decode(address)
            return addresses.witness_script(version, program)
        payload = addresses.b58check_decode(address)
    except Malformed as error:
        raise BadRequest(f"{address or 'an empty text'} is no Bitcoin address: {error}") from None
    makers = {P2PKH_VERSION: p2pkh, P2SH_VERSION: p2sh}
    if len(payload) != 21 or payload[:1] not in makers:
        raise BadRequest(f"{address} is no regtest address")
    return makers[payload[:1]](payload[1:])
