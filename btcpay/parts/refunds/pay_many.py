"""A file of refunds that wallets read to pay all of them by one transaction.

Each line has an address and an amount in bitcoin, without a header: Electrum's *Pay to
many* takes just these two, and Sparrow's *Send to many* takes them too. Bitcoin is the
unit since a wallet that is set to a smaller one then sends too little, or refuses the
file. In a smaller unit the file could make a wallet send thousands of times too much.

Source: spesmilo/electrum, electrum/payment_identifier.py, and sparrowwallet/sparrow,
SendToManyDialog.java.
"""

from collections.abc import Iterable

from btcpay.parts.refunds.models import Refund
from btcpay.values.money import full_btc_text

# Wallets cut off what is below a satoshi. Sparrow multiplies floating-point numbers
# before, so that it would read 0.00000029 as 28 satoshis.
NINTH_DECIMAL = "1"


def lines_of(refunds: Iterable[Refund]) -> str:
    """Returns the file's content. Each refund must have an address."""
    return "".join(
        f"{refund.address},{full_btc_text(refund.amount_sats)}{NINTH_DECIMAL}\n"
        for refund in refunds
    )
