"""A merchant whose wallet the test has, so that coins can be moved."""

from accounts import Owner
from fake_esplora import Json, Till


class Sweeper(Owner):
    """Adds itself to a till's shop; `keep_shop` leaves the shop's keys with its first merchant."""

    def __init__(self, till: Till, keep_shop: bool = False) -> None:
        super().__init__(till.shop, "p2wpkh")
        self._till = till
        if not keep_shop:
            till.shop.write_key = till.shop.read_key = self.key

    @property
    def total_sats(self) -> int:
        """The merchant's balance as the shop tells it, waiting money included."""
        return self.balance()[1]

    def sweep(self, invoice: Json, txid: str) -> None:
        """Moves the first output of `txid`, which paid this invoice in full; waits to be mined."""
        sandbox = self._till.sandbox
        tx = self.spend(invoice, txid, 0, sandbox.wallet.address)
        sandbox.chain.accept(tx.raw, self._till.now)
