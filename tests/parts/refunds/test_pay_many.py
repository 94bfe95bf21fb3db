"""The file by which a wallet pays many refunds: what Electrum and Sparrow read of it."""

from decimal import Decimal

from hypothesis import example, given
from hypothesis import strategies as st

from btcpay.parts.refunds.models import Refund
from btcpay.parts.refunds.pay_many import lines_of
from btcpay.values.money import SATS_PER_BTC
from tests.support.shop_refunds import address

MOST_SATS = 100_000 * SATS_PER_BTC


@given(st.integers(1, MOST_SATS))
@example(29)
@example(4_350_001)
def test_both_wallets_read_exactly_the_satoshis(sats):
    """They multiply as these lines do: Electrum's parse_amount, Sparrow's SendToManyDialog."""
    line = lines_of([Refund(address=address(1), amount_sats=sats)])
    to, amount = line.removesuffix("\n").split(",")
    assert to == address(1)
    by_electrum = int(10**8 * Decimal(amount))
    by_sparrow = int(float(amount) * 100_000_000)
    assert by_electrum == by_sparrow == sats
