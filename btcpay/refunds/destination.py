"""The address that a payer gives, judged before it is kept."""

import re
from contextlib import suppress
from typing import NamedTuple

from btcpay.bitcoin.address import DUST_SATS, address_of, script_of
from btcpay.bitcoin.wire import Malformed
from btcpay.refunds import queries
from btcpay.values.errors import Refused
from btcpay.values.networks import NETWORKS, Network
from storage.database import Database

# The first two bytes of the scripts that a block is searched for (btcpay/bitcoin/block.py).
_KINDS = {"76a9": "P2PKH", "a914": "P2SH", "0014": "P2WPKH", "0020": "P2WSH", "5120": "P2TR"}
MAX_CHARACTERS = 2000  # of a `bitcoin:` URI, which may hold more than an address


class Destination(NamedTuple):
    """An address of our network in its canonical form, with its script and that script's kind."""

    address: str
    script: bytes
    kind: str


def read(db: Database, network: Network, text: str, amount_sats: int) -> Destination:
    """The address in a payer's text, which may be a `bitcoin:` URI (BIP21).

    Raises Refused: `malformed`, `other_network`, `kind`, `own`, `dust`.
    """
    typed = re.sub(r"(?i)^bitcoin:", "", text.strip()[:MAX_CHARACTERS]).partition("?")[0]
    try:
        script = script_of(typed, network)
    except Malformed as error:
        for other in NETWORKS.values():
            with suppress(Malformed):
                script_of(typed, other)
                message = f"this address is for {other.name}, not for {network.name}"
                raise Refused("other_network", message) from None
        raise Refused("malformed", f"this is no whole address: {error}") from None
    kind = _KINDS.get(script[:2].hex())
    if kind is None:
        raise Refused("kind", "blocks are not searched for addresses of this kind")
    if db.row(queries.IS_OURS, script=script.hex()):
        raise Refused("own", "this is an address of this service, not the payer's")
    if amount_sats < (least := DUST_SATS[len(script)]):
        message = f"{amount_sats} satoshis cannot be sent: wallets send at least {least} to it"
        raise Refused("dust", message)
    return Destination(address_of(script, network), script, kind)
