"""Runs the scenes of stories.toml. Each scene is about one invoice."""

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
MORE_SATS = 20_000  # the excess when a customer pays too much
# Seconds until an invoice of a scene expires; the second number is for a quick scene.
SOON_S = 20
SOON_QUICK_S = 4


class Scene(NamedTuple):
    """A scene of stories.toml.

    - `title`, `about`: the text of its button.
    - `steps`: one step a line. A step that begins with `> ` is a line to show. Any
      other step is an action, the name of a method of `Actors`, with its arguments.
    """

    title: str
    about: str
    steps: str

    def play(self, sandbox: Sandbox, shop: Shop) -> Iterator[str]:
        """Does the actions, and yields the lines to show.

        Raises SandboxError if an action is not possible.
        """
        actors = Actors(sandbox, shop)
        for step in self.steps.splitlines():
            if step.startswith("> "):
                yield step.removeprefix("> ").format(**actors.line_values())
            else:
                name, *arguments = step.split()
                action = getattr(actors, name)
                action(*arguments)


@cache
def scenes() -> dict[str, Scene]:
    """Returns the scenes by name, in the order of their buttons."""
    text = Path(__file__).with_name("stories.toml").read_text(encoding="utf-8")
    return {name: Scene(**fields) for name, fields in tomllib.loads(text).items()}


class Actors:
    """The participants of a scene: shop, customer, miner and explorer.

    The methods are the actions of scenes. Most of them return once the shop shows the
    result.
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
        """Returns the values of the placeholders in the lines of a scene."""
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

    def make(self, early: str = "") -> None:
        """Creates an invoice.

        If `early` is any text but "", the invoice expires early: after `self.soon_s`
        seconds.
        """
        expires_in_s = None
        if early:
            expires_in_s = self.soon_s
        self.invoice = self.shop.create(PRICE_USD, "Two bags of coffee", expires_in_s)
        self.stage.show(self.invoice)

    def pay(self, part: str = "") -> None:
        """Pays the invoice: its amount, or another sum if `part` is given.

        `part` is "half" for one half, "rest" for the other half, or "more" for more
        than the amount.
        """
        sats: int = self.invoice["amount_sats"]
        half_sats = sats // 2
        paid_sats = sats
        received_sats = sats  # in total, together with an earlier half
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
        """Replaces the payment by one with a higher fee.

        If `away` is not "", the replacement pays the customer instead of the shop.
        """
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
            "create",
            self.invoice["id"],
            "--reason",
            "too much",
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
        """Waits until the invoice's field `name` has the value `expected`."""

        def holds() -> bool:
            try:
                return bool(self.shop.look(self.invoice)[name] == expected)
            except ShopAway:  # for a moment, while the server restarts
                return False

        self.stage.until(holds, f"{self.invoice['id']} to have {expected} as {name}")
