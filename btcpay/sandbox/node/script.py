"""Output scripts of regtest addresses, and the least that can be sent to one."""

from btcpay.bitcoin import address as addresses
from btcpay.bitcoin.address import OP_DUP, OP_HASH160
from btcpay.bitcoin.wire import Malformed
from btcpay.sandbox.errors import BadRequest
from btcpay.values.networks import NETWORKS

REGTEST = NETWORKS["regtest"]
DUST_SATS_PER_VB = 3  # Bitcoin Core, policy/policy.h: DUST_RELAY_TX_FEE
SPENDING_BYTES, WITNESS_SPENDING_BYTES = 148, 67  # an input, as GetDustThreshold counts it
OP_RETURN = 0x6A


def least_sats(script: bytes) -> int:
    """The least that nodes relay to an address's script (GetDustThreshold)."""
    is_legacy = script[0] in (OP_DUP, OP_HASH160)
    spending = SPENDING_BYTES if is_legacy else WITNESS_SPENDING_BYTES
    return (8 + 1 + len(script) + spending) * DUST_SATS_PER_VB


def address_of(script: bytes) -> str:
    """The address of a script as `script_of` makes it."""
    return addresses.address_of(script, REGTEST)


def script_of(address: str) -> bytes:
    """The output script of a regtest address. Raises BadRequest, saying what is wrong with it."""
    if address.lower().startswith(("bc1", "tb1")):
        why = "belongs to another network; regtest addresses begin with bcrt1"
        raise BadRequest(f"{address} {why}")
    try:
        return addresses.script_of(address, REGTEST)
    except Malformed as error:
        raise BadRequest(f"{address or 'an empty text'} is no Bitcoin address: {error}") from None
