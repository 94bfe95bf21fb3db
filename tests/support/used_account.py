"""An account that another shop or a wallet has used: 200 addresses, with gaps of up to 20."""

from collections.abc import Iterable

from btcpay.merchants.account import derive
from tests.support.fake_esplora import Till

# The last used one has number 312.
USED = [*range(120), 139, 140, *range(160, 234), 253, 273, 293, 312]
BLOCK_EVERY = 25  # payments
SATS = 10_000


def use(till: Till, descriptor: str, indexes: Iterable[int] = USED) -> None:
    """Pays these addresses of the account in blocks, and the last one in the mempool."""
    for count, index in enumerate(indexes):
        if count % BLOCK_EVERY == 0:
            till.mine()
        address = derive(descriptor, index, till.settings.network)
        till.sandbox.wallet.pay(address, SATS, till.now)
