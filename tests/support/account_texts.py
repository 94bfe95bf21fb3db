"""The account of a text, as `merchant add` reads it."""

from btcpay.bitcoin.descriptor import Descriptor
from btcpay.merchants.wallet_text.read import read_wallet_text
from btcpay.values.networks import Network


def account_of(
    text: str, network: Network, script_type: str | None = None
) -> Descriptor:
    """The only account of the text; raises CommandError."""
    return read_wallet_text(text, network, script_type).choose(None).descriptor
