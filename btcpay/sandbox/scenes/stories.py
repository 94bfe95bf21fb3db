"""Plays the scenes of stories.toml: each a story of one invoice, with a line for each step."""

import tomllib
from collections.abc import Iterator
from decimal import Decimal
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

from btcpay.sandbox.errors import ShopAway
from btcpay.sandbox.shop import Json, Shop
from btcpay.sandbox.state import InventedPayment, Sandbox
from btcpay.values.statuses import InvoiceStatus, RefundStatus

PRICE_USD = Decimal(25)
MORE_SATS = 20_000  # that a customer sends too much
# Seconds that a customer hesitates: with a reader, and in a quick scene.
SOON_S = 20
SOON_QUICK_S = 4


class Scene(NamedTuple):
    """`about` is the button's text beside its title."""

    title: str
    about: str
    steps: str

    def play(self, sandbox: Sandbox, shop: Shop) -> Iterator[str]:
        """The lines, between which the actors act. Raises SandboxError."""
        actors = Actors(sandbox, shop)
        for step in self.steps.splitlines():
            if step.startswith("> "):
                yield step.removeprefix("> ").format(**actors.line_values())
            else:
                act, *words = step.split()
                getattr(actors, act)(*words)


@cache
def scenes() -> dict[str, Scene]:
    """By their names, in the order of their buttons."""
    text = Path(__file__).with_name("stories.toml").read_text(encoding="utf-8")
    return {name: Scene(**fields) for name, fields in tomllib.loads(text).items()}


class Actors:
    """The shop that makes an invoice, a customer who pays, a miner, an explorer: a method an act.

    Each waits until the shop shows what follows from it.
    """

    def __init__(self, sandbox: Sandbox, shop: Shop) -> None:
        self.sandbox = sandbox
        self.shop = shop
        self.stage = sandbox.stage
        self.soon_s = SOON_S
        if sandbox.stage.quick:
            self.soon_s = SOON_QUICK_S
        self.txid = ""
        self.blocks = 0
        self.address = sandbox.wallet.fresh_address()
        self.invoice: Json
        self.owed_refund: Json
        self.invented: InventedPayment

    def line_values(self) -> dict[str, Any]:
        """The values that the lines of a story may name."""
        height = self.sandbox.chain.ledger.height
        sats = self.invoice["amount_sats"]
        rest_sats = sats - sats // 2
        return {
            "amount": f"{sats:,} sat",
            "rest": f"{rest_sats:,} sat",
            "more": f"{MORE_SATS:,} sat",
            "soon": self.soon_s,
            "height": f"{height:,}",
            "next_height": f"{height + 1:,}",
            "address": self.address,
        }

    def make(self, soon: str = "") -> None:
        """Makes an invoice, which with `soon` ends in a while."""
        expires_in_s = None
        if soon:
            expires_in_s = self.soon_s
        self.invoice = self.shop.create(PRICE_USD, "Two bags of coffee", expires_in_s)
        self.stage.show(self.invoice)

    def pay(self, part: str = "") -> None:
        """Pays all, the `half`, the `rest` behind it, or `more` than all."""
        sats: int = self.invoice["amount_sats"]
        half_sats = sats // 2
        paid_sats = sats
        received_sats = sats
        if part == "half":
            paid_sats = half_sats
            received_sats = half_sats
        elif part == "rest":
            paid_sats = sats - half_sats
        elif part == "more":
            paid_sats = sats + MORE_SATS
            received_sats = paid_sats
        self.txid = self.sandbox.pay(self.invoice["deposit_address"], paid_sats)
        self.until("received_sats", received_sats)

    def confirm(self, status: str = InvoiceStatus.PAID) -> None:
        self.blocks = self.shop.look(self.invoice)["confirmations_needed"]
        self.sandbox.mine(self.blocks)
        self.until("status", status)

    def replace(self, away: str = "") -> None:
        """Pays it with a higher fee, or sends the money `away` from the shop."""
        self.txid = self.sandbox.replace(self.txid, bool(away))
        received_sats = self.invoice["amount_sats"]
        if away:
            received_sats = 0
        self.until("received_sats", received_sats)

    def reorganise(self) -> None:
        self.sandbox.reorganise(self.blocks, double_spend=True)
        self.until("status", InvoiceStatus.OPEN)

    def pay_late(self) -> None:
        sats = self.invoice["amount_sats"]
        txid = self.sandbox.pay(self.invoice["deposit_address"], sats)
        self.sandbox.mine(1)
        self.stage.until(lambda: self.shop.has_received(txid), "the late payment")

    def refund(self) -> None:
        self.owed_refund = self.shop.refund(
            "create", self.invoice["id"], "--reason", "too much"
        )
        self.stage.show(
            {"id": self.invoice["id"], "pay_url": self.owed_refund["refund_url"]}
        )

    def give_address(self) -> None:
        self.shop.give_address(self.owed_refund, self.address)

    def send_back(self) -> None:
        self.sandbox.pay(self.address, self.owed_refund["amount_sats"])
        self.sandbox.mine(1)
        self.stage.until(self._is_refund_sent, "the refund")

    def _is_refund_sent(self) -> bool:
        refund = self.shop.refund("show", self.owed_refund["id"])
        return bool(refund["status"] == RefundStatus.SENT)

    def invent(self) -> None:
        self.invented = self.sandbox.invent(self.invoice)
        self.until("received_sats", self.invoice["amount_sats"])

    def put_into_block(self) -> None:
        self.sandbox.mine(1)
        self.stage.until(
            lambda: self.invented.blocks_shown >= 2, "the shop to read it twice"
        )

    def tell_the_truth(self) -> None:
        self.sandbox.switches.mend()
        self.until("received_sats", 0)

    def until(self, name: str, expected: object) -> None:
        """Waits until the invoice has this value in the field of this name."""

        def holds() -> bool:
            try:
                return bool(self.shop.look(self.invoice)[name] == expected)
            except ShopAway:  # for a moment, while a server is started again
                return False

        self.stage.until(holds, f"{self.invoice['id']} to have {expected} as {name}")
