"""Converts between regtest addresses and output scripts."""

from btcpay.bitcoin import address as addresses
from btcpay.bitcoin.wire import DecodeError
from btcpay.sandbox.errors import BadRequest
from btcpay.values.networks import NETWORKS

REGTEST = NETWORKS["regtest"]
OP_RETURN = 0x6A


def address_of(script: bytes) -> str:
    """Returns the regtest address of an output script."""
    return addresses.address_of(script, REGTEST)


def script_of(address: str) -> bytes:
    """Returns the output script of a regtest address.

    Raises BadRequest if the address is invalid or of another network.
    """
    if address.lower().startswith(("bc1", "tb1")):
        raise BadRequest(
            f"{address} belongs to another network; regtest addresses begin with bcrt1"
        )
    try:
        return addresses.script_of(address, REGTEST)
    except DecodeError as error:
        name = address or "an empty text"
        raise BadRequest(f"{name} is no Bitcoin address: {error}") from None
