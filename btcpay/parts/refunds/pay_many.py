"""Writes a file of refunds, with which a wallet pays all of them by one transaction.

Each line has an address and an amount in bitcoin; there is no header. Electrum's *Pay
to many* accepts exactly this form, and Sparrow's *Send to many* accepts it too.

The amounts are in bitcoin, which is the largest unit of wallets. If a wallet expects a
smaller unit, it sends too little, or refuses the file. It can never send too much.

Source: spesmilo/electrum, electrum/payment_identifier.py, and sparrowwallet/sparrow,
SendToManyDialog.java.
"""

from collections.abc import Iterable

from btcpay.parts.refunds.models import Refund
from btcpay.values.money import full_btc_text

# A ninth decimal, which wallets cut off. Sparrow first multiplies the amount as a
# floating-point number, so without this decimal 0.00000029 would become 28 satoshis.
NINTH_DECIMAL = "1"


def lines_of(refunds: Iterable[Refund]) -> str:
    """Returns the text of a pay-to-many file. Each refund must have an address."""
    return "".join(
        f"{refund.address},{full_btc_text(refund.amount_sats)}{NINTH_DECIMAL}\n"
        for refund in refunds
    )
