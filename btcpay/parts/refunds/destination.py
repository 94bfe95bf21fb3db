"""Checks the address that a payer gives for a refund, before it is stored."""

from contextlib import suppress
from typing import NamedTuple

from btcpay.bitcoin.address import DUST_LIMITS_SATS, address_of, script_of
from btcpay.bitcoin.bitcoin_uri import InvalidAddress, addresses_of
from btcpay.bitcoin.wire import DecodeError
from btcpay.parts.refunds import queries
from btcpay.values.errors import ChangeRefused
from btcpay.values.networks import NETWORKS, Network
from storage.database import Database

# The first two bytes of the kinds of scripts that btcpay/bitcoin/block.py finds in
# blocks.
_KINDS = {
    "76a9": "P2PKH",
    "a914": "P2SH",
    "0014": "P2WPKH",
    "0020": "P2WSH",
    "5120": "P2TR",
}


class Destination(NamedTuple):
    """An address of the service's network in canonical form, with its script and its kind.

    `kind` is, for example, "P2WPKH".
    """

    address: str
    script: bytes
    kind: str


def parse(db: Database, network: Network, text: str, amount_sats: int) -> Destination:
    """Parses a payer's text: an address, or a URI with an address (BIP21, BIP321).

    Raises ChangeRefused if no refund can be sent there. The code says why:

    - `malformed`: the text has no address.
    - `demanding`: the URI has an unknown requirement.
    - `lightning`, `silent`, `payment_code`: the text has a Lightning invoice, a silent
      payment address, or a code for many addresses (BIP47) instead of an address.
    - `other_network`: the address is for another network.
    - `kind`: blocks are not searched for scripts of this type.
    - `own`: the address belongs to this service.
    - `dust`: wallets cannot send so small an amount (`amount_sats`) to the address.
    """
    try:
        addresses = addresses_of(text)
    except InvalidAddress as error:
        raise ChangeRefused(
            error.kind, f"this is no address that can be used: {error}"
        ) from None
    scripts = [_script_of(address, network) for address in addresses]
    usable = [script for script in scripts if _kind_of(script)]
    if not usable:
        raise ChangeRefused(
            "kind", "blocks are not searched for addresses of this kind"
        )
    script = usable[0]
    if db.get_or_none(queries.IS_OURS, script=script.hex()):
        raise ChangeRefused(
            "own", "this is an address of this service, not the payer's"
        )
    dust_limit_sats = DUST_LIMITS_SATS[len(script)]
    if amount_sats < dust_limit_sats:
        raise ChangeRefused(
            "dust",
            f"{amount_sats} satoshis cannot be sent: wallets send at least {dust_limit_sats}"
            " to it",
        )
    return Destination(address_of(script, network), script, _kind_of(script) or "")


def _kind_of(script: bytes) -> str | None:
    """Returns the script's kind; None if blocks are not searched for it."""
    return _KINDS.get(script[:2].hex())


def _script_of(address: str, network: Network) -> bytes:
    """Returns the address's script. Raises ChangeRefused (`malformed`, `other_network`)."""
    try:
        return script_of(address, network)
    except DecodeError as error:
        other = _network_of(address)
        if other:
            message = f"this address is for {other.name}, not for {network.name}"
            raise ChangeRefused("other_network", message) from None
        raise ChangeRefused("malformed", f"this is no whole address: {error}") from None


def _network_of(address: str) -> Network | None:
    """Returns the first network that has such addresses; None if no network has them."""
    for network in NETWORKS.values():
        with suppress(DecodeError):
            script_of(address, network)
            return network
    return None
