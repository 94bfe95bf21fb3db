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
                yield step[2:].format(**actors.known())
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
        self.soon_s = SOON_QUICK_S if sandbox.stage.quick else SOON_S
        self.txid = ""
        self.blocks = 0
        self.address = sandbox.wallet.fresh_address()
        self.made: Json
        self.owed: Json
        self.invented: InventedPayment

    def known(self) -> dict[str, Any]:
        """The values that lines may name."""
        height = self.sandbox.chain.ledger.height
        sats = self.made["amount_sats"]
        parts = {"amount": sats, "rest": sats - sats // 2, "more": MORE_SATS}
        return {name: f"{part:,} sat" for name, part in parts.items()} | {
            "soon": self.soon_s,
            "height": f"{height:,}",
            "next_height": f"{height + 1:,}",
            "address": self.address,
        }

    def make(self, soon: str = "") -> None:
        self.made = self.shop.create(
            PRICE_USD, "Two bags of coffee", self.soon_s if soon else None
        )
        self.stage.show(self.made)

    def pay(self, part: str = "") -> None:
        """All, the `half`, the `rest` behind it, or `more` than all."""
        sats: int = self.made["amount_sats"]
        half = sats // 2
        parts = {"half": half, "rest": sats - half, "more": sats + MORE_SATS}
        paid_sats = parts.get(part, sats)
        self.txid = self.sandbox.pay(self.made["deposit_address"], paid_sats)
        self.until("received_sats", paid_sats + half if part == "rest" else paid_sats)

    def confirm(self, status: str = "paid") -> None:
        self.blocks = self.shop.look(self.made)["confirmations_needed"]
        self.sandbox.mine(self.blocks)
        self.until("status", status)

    def replace(self, away: str = "") -> None:
        """Pays it with a higher fee, or sends the money `away` from the shop."""
        self.txid = self.sandbox.replace(self.txid, bool(away))
        self.until("received_sats", 0 if away else self.made["amount_sats"])

    def reorganise(self) -> None:
        self.sandbox.reorganise(self.blocks, double_spend=True)
        self.until("status", "open")

    def pay_late(self) -> None:
        txid = self.sandbox.pay(self.made["deposit_address"], self.made["amount_sats"])
        self.sandbox.mine(1)
        self.stage.until(lambda: self.shop.has_received(txid), "the late payment")

    def refund(self) -> None:
        self.owed = self.shop.refund("create", self.made["id"], "--reason", "too much")
        self.stage.show({"id": self.made["id"], "pay_url": self.owed["refund_url"]})

    def give_address(self) -> None:
        self.shop.give_address(self.owed, self.address)

    def send_back(self) -> None:
        self.sandbox.pay(self.address, self.owed["amount_sats"])
        self.sandbox.mine(1)
        id = self.owed["id"]
        self.stage.until(
            lambda: self.shop.refund("show", id)["status"] == "sent", "the refund"
        )

    def invent(self) -> None:
        self.invented = self.sandbox.invent(self.made)
        self.until("received_sats", self.made["amount_sats"])

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
                return bool(self.shop.look(self.made)[name] == expected)
            except ShopAway:  # for a moment, as when a server is started again
                return False

        self.stage.until(holds, f"{self.made['id']} to have {expected} as {name}")
