"""What a scene's people do: the shop makes an invoice, a customer pays, a miner mines."""

from dataclasses import dataclass
from decimal import Decimal
from typing import Any

from btcpay.sandbox.errors import ShopAway
from btcpay.sandbox.lie import Lie, invent
from btcpay.sandbox.payer import misbehave
from btcpay.sandbox.scenes.stage import Stage
from btcpay.sandbox.shop import Shop
from btcpay.sandbox.state import Sandbox

Json = dict[str, Any]
PRICE_USD = Decimal(25)


@dataclass(frozen=True)
class Actors:
    """One scene's; `say` and `until` are the stage's."""

    stage: Stage
    sandbox: Sandbox
    shop: Shop

    def say(self, text: str) -> None:
        self.stage.say(text)

    def invoice(self, expires_in_s: int | None = None) -> Json:
        """A new one over 25 dollars, which the scene is about."""
        made = self.shop.create(PRICE_USD, "Two bags of coffee", expires_in_s)
        self.stage.show(made)
        return made

    def pay(self, invoice: Json, sats: int | None = None) -> str:
        """The customer pays all of it, or so much; the transaction's id."""
        amount_sats = invoice["amount_sats"] if sats is None else sats
        wallet, now = self.sandbox.wallet, self.sandbox.clock()
        return wallet.pay(invoice["deposit_address"], amount_sats, now)

    def replace(self, txid: str, away: bool = False) -> str:
        """The customer pays a higher fee or, with `away`, takes the money back."""
        return misbehave.replace(self.sandbox.wallet, self.sandbox.clock(), txid, away)

    def mine(self, blocks: int = 1) -> int:
        """The height of the chain afterwards."""
        self.sandbox.chain.mine(blocks, self.sandbox.clock())
        return self.sandbox.chain.ledger.height

    def confirm(self, invoice: Json) -> None:
        """Mines as many blocks as the invoice asks for."""
        self.mine(self.shop.look(invoice)["confirmations_needed"])

    @property
    def next_height(self) -> str:
        """Of the next block, as it is said."""
        return f"{self.sandbox.chain.ledger.height + 1:,}"

    def reorganise(self, blocks: int) -> None:
        """A longer branch without these blocks, in which their payments went elsewhere."""
        with self.sandbox.chain.lock:
            instead = misbehave.double_spends(self.sandbox.wallet, blocks)
            self.sandbox.chain.reorganise(blocks, self.sandbox.clock(), instead)

    def lie(self, invoice: Json) -> Lie:
        """The explorer says that the invoice was paid."""
        told = invent(self.sandbox.wallet, invoice["deposit_address"], invoice["amount_sats"])
        self.sandbox.switches.lie = told
        return told

    def until_seen(self, invoice: Json, sats: int | None = None) -> None:
        """The shop has seen so much, or all of it."""
        wanted_sats = invoice["amount_sats"] if sats is None else sats
        self._until(invoice, "received_sats", wanted_sats)

    def until_gone(self, invoice: Json) -> None:
        """The shop sees none of it any more."""
        self._until(invoice, "received_sats", 0)

    def until_status(self, invoice: Json, status: str) -> None:
        self._until(invoice, "status", status)

    def _until(self, invoice: Json, name: str, wanted: Any) -> None:
        def holds() -> bool:
            try:
                return bool(self.shop.look(invoice)[name] == wanted)
            except ShopAway:  # for a moment, as when a server is started again
                return False

        self.stage.until(holds, f"{invoice['id']} to have {wanted} as {name}")
