"""Output scripts: their Esplora type names and their regtest addresses."""

import re

from btcpay.bitcoin import address as addresses
from btcpay.bitcoin.address import p2pkh, p2sh
from btcpay.bitcoin.wire import Malformed
from btcpay.sandbox.errors import BadRequest

DUST_SATS_PER_VB = 3  # Bitcoin Core, policy/policy.h: DUST_RELAY_TX_FEE
SPENDING_BYTES, WITNESS_SPENDING_BYTES = 148, 67  # an input, as GetDustThreshold counts it
HRP = "bcrt"
VERSIONS = {"p2pkh": b"\x6f", "p2sh": b"\xc4"}  # testnet's, which regtest shares
OP_RETURN = 0x6A
KINDS = {
    "empty": rb"",
    "op_return": rb"\x6a.*",
    "p2pk": rb"(?:\x21.{33}|\x41.{65})\xac",
    "p2pkh": rb"\x76\xa9\x14(.{20})\x88\xac",
    "p2sh": rb"\xa9\x14(.{20})\x87",
    "v0_p2wpkh": rb"\x00\x14.{20}",
    "v0_p2wsh": rb"\x00\x20.{32}",
    "v1_p2tr": rb"\x51\x20.{32}",
}


def kind(script: bytes) -> str:
    """Esplora's `scriptpubkey_type`."""
    named = (name for name, form in KINDS.items() if re.fullmatch(form, script, re.DOTALL))
    return next(named, "unknown")


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
    for name, prefix in VERSIONS.items():
        if found := re.fullmatch(KINDS[name], script, re.DOTALL):
            return addresses.b58check_encode(prefix + found[1])
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
    for name, maker in (("p2pkh", p2pkh), ("p2sh", p2sh)):
        if len(payload) == 21 and payload[:1] == VERSIONS[name]:
            return maker(payload[1:])
    raise BadRequest(f"{address} is no regtest address")
