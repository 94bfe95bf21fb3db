"""The people of a scene: the shop makes an invoice, a customer pays, a miner mines."""

from dataclasses import dataclass
from decimal import Decimal
from typing import Any

from btcpay.sandbox.errors import ShopAway
from btcpay.sandbox.esplora.invented import InventedPayment, invent
from btcpay.sandbox.payer import misbehave
from btcpay.sandbox.shop import Json, Shop
from btcpay.sandbox.state import Sandbox

PRICE_USD = Decimal(25)


@dataclass(frozen=True)
class Actors:
    """Each method may raise SandboxError."""

    sandbox: Sandbox
    shop: Shop

    def invoice(self, expires_in_s: int | None = None) -> Json:
        made = self.shop.create(PRICE_USD, "Two bags of coffee", expires_in_s)
        self.sandbox.stage.show(made)
        return made

    def pay(self, invoice: Json, sats: int | None = None) -> str:
        """The customer pays these satoshis, or all of it; the txid."""
        amount_sats = invoice["amount_sats"] if sats is None else sats
        wallet, now = self.sandbox.wallet, self.sandbox.clock()
        return wallet.pay(invoice["deposit_address"], amount_sats, now)

    def replace(self, txid: str, away: bool = False) -> str:
        return misbehave.replace(self.sandbox.wallet, self.sandbox.clock(), txid, away)

    def mine(self, blocks: int = 1) -> int:
        self.sandbox.chain.mine(blocks, self.sandbox.clock())
        return self.sandbox.chain.ledger.height

    def confirm(self, invoice: Json) -> int:
        blocks: int = self.shop.look(invoice)["confirmations_needed"]
        self.mine(blocks)
        return blocks

    def pay_and_confirm(self, invoice: Json) -> int:
        """Pays and mines until the status is `paid`; the number of blocks that it took."""
        self.pay(invoice)
        self.until_seen(invoice)
        blocks = self.confirm(invoice)
        self.until_status(invoice, "paid")
        return blocks

    @property
    def next_height(self) -> str:
        return f"{self.sandbox.chain.ledger.height + 1:,}"

    def reorganise(self, blocks: int) -> None:
        """A longer branch without these blocks, in which their payments went elsewhere."""
        chain = self.sandbox.chain
        with chain.lock:
            instead = misbehave.double_spends(self.sandbox.wallet, blocks)
            chain.reorganise(blocks, self.sandbox.clock(), instead)

    def invent_payment(self, invoice: Json) -> InventedPayment:
        invented = invent(self.sandbox.wallet, invoice)
        self.sandbox.switches.invented = invented
        return invented

    def until_seen(self, invoice: Json, sats: int | None = None) -> None:
        self._until(invoice, "received_sats", invoice["amount_sats"] if sats is None else sats)

    def until_status(self, invoice: Json, status: str) -> None:
        self._until(invoice, "status", status)

    def _until(self, invoice: Json, name: str, expected: Any) -> None:
        def holds() -> bool:
            try:
                return bool(self.shop.look(invoice)[name] == expected)
            except ShopAway:  # for a moment, as when a server is started again
                return False

        self.sandbox.stage.until(holds, f"{invoice['id']} to have {expected} as {name}")
