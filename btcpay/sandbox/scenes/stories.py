"""The scenes: each a story of one invoice over 25 dollars, with a line for each step."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from decimal import Decimal
from typing import Any, NamedTuple

from btcpay.sandbox.errors import ShopAway
from btcpay.sandbox.shop import Json, Shop
from btcpay.sandbox.state import Sandbox

PRICE_USD = Decimal(25)
# Seconds that a customer hesitates: with a reader, and in a quick scene.
SOON_S, SOON_QUICK_S = 20, 4


@dataclass(frozen=True)
class Actors:
    """The shop that makes an invoice, a customer who pays. Each method may raise SandboxError."""

    sandbox: Sandbox
    shop: Shop

    def invoice(self, expires_in_s: int | None = None) -> Json:
        made = self.shop.create(PRICE_USD, "Two bags of coffee", expires_in_s)
        self.sandbox.stage.show(made)
        return made

    def pay(self, invoice: Json, sats: int | None = None, before_sats: int = 0) -> str:
        """The customer pays these satoshis, or all, and the shop sees them; the txid."""
        amount_sats = invoice["amount_sats"] if sats is None else sats
        txid = self.sandbox.pay(invoice["deposit_address"], amount_sats)
        self.until(invoice, "received_sats", before_sats + amount_sats)
        return txid

    def confirm(self, invoice: Json, status: str = "paid") -> int:
        """Mines until the shop may deliver, and waits for the status; the number of blocks."""
        blocks: int = self.shop.look(invoice)["confirmations_needed"]
        self.sandbox.mine(blocks)
        self.until(invoice, "status", status)
        return blocks

    @property
    def next_height(self) -> str:
        return f"{self.sandbox.chain.ledger.height + 1:,}"

    def until(self, invoice: Json, name: str, expected: Any) -> None:
        def holds() -> bool:
            try:
                return bool(self.shop.look(invoice)[name] == expected)
            except ShopAway:  # for a moment, as when a server is started again
                return False

        self.sandbox.stage.until(holds, f"{invoice['id']} to have {expected} as {name}")


class Scene(NamedTuple):
    """`about` is the button's text beside its title; `play` may raise SandboxError."""

    title: str
    about: str
    play: Callable[[Actors], Iterator[str]]


def in_time(on: Actors) -> Iterator[str]:
    invoice = on.invoice()
    yield (
        f"Two bags of coffee for $25. The shop makes an invoice: {sats(invoice['amount_sats'])} at"
        " today's price, to an address that nobody else ever gets."
    )
    yield "The customer scans the code and pays. Nothing is final yet: the payment waits."
    on.pay(invoice)
    yield "The shop has seen it and says so. It does not deliver: what waits can be taken back."
    yield f"A miner puts it into block {on.next_height}. The shop reads the block, and proves it."
    on.confirm(invoice)
    yield (
        "Paid. A signed webhook tells the shop's program. The money is in the shop's own wallet:"
        " no key was ever on this server."
    )


def in_parts(on: Actors) -> Iterator[str]:
    invoice = on.invoice()
    part_sats = invoice["amount_sats"] // 2
    rest_sats = invoice["amount_sats"] - part_sats
    yield f"An invoice over {sats(invoice['amount_sats'])}. The customer sends only half of it."
    on.pay(invoice, part_sats)
    yield f"The page asks for the rest: {sats(rest_sats)}, to the same address."
    on.confirm(invoice, "open")
    yield "The half is in a block now. The invoice stays open, and the money is not lost."
    yield "The customer sends the rest, and another block comes."
    on.pay(invoice, rest_sats, part_sats)
    on.confirm(invoice)
    yield "Both together make it paid, once: two payments, one invoice."


def too_much(on: Actors) -> Iterator[str]:
    invoice = on.invoice()
    more_sats = 20_000
    yield "The customer types the amount by hand, and sends too much."
    on.pay(invoice, invoice["amount_sats"] + more_sats)
    on.confirm(invoice)
    yield f"Paid, and {sats(more_sats)} too much. The seller makes a refund, and sends its page."
    refund = on.shop.refund("create", invoice["id"], "--reason", "too much")
    on.sandbox.stage.show({"id": invoice["id"], "pay_url": refund["refund_url"]})
    address = on.sandbox.wallet.address
    yield f"The customer gives an address there, {address}, and compares it before it is kept."
    on.shop.give_address(refund, address)
    yield "The service holds no key: the seller's own wallet sends the money."
    on.sandbox.pay(address, refund["amount_sats"])
    height = on.next_height
    on.sandbox.mine(1)
    on.sandbox.stage.until(
        lambda: on.shop.refund("show", refund["id"])["status"] == "sent", "the refund"
    )
    yield (
        f"Sent: block {height} has it, and nobody pressed anything. `btcpay refund proof` proves"
        " it, and the invoice needs no attention any more."
    )


def too_late(on: Actors) -> Iterator[str]:
    left_s = SOON_QUICK_S if on.sandbox.stage.quick else SOON_S
    invoice = on.invoice(left_s)
    yield f"This invoice ends in {left_s} seconds, and its customer hesitates."
    on.until(invoice, "status", "expired")
    yield (
        "Time is up. The shop has asked the chain once more, then closed it: an explorer that does"
        " not answer is never read as “unpaid”."
    )
    yield "Now the customer pays all the same, as happens with slow wallets and low fees."
    txid = on.sandbox.pay(invoice["deposit_address"], invoice["amount_sats"])
    height = on.next_height
    on.sandbox.mine(1)
    on.sandbox.stage.until(lambda: on.shop.has_received(txid), "the late payment")
    yield (
        f"The shop finds the money in block {height}: addresses are watched for ever. It is in the"
        " balance, and the invoice stays expired."
    )
    yield (
        "A human decides. `btcpay invoice list --attention` shows it; accept it with `btcpay"
        " invoice settle`, or send it back from your wallet."
    )


def replaced(on: Actors) -> Iterator[str]:
    invoice = on.invoice()
    yield "The customer pays with a low fee, and becomes impatient."
    txid = on.pay(invoice)
    yield "The wallet replaces the payment by one with a higher fee. It is counted once."
    txid = on.sandbox.replace(txid, away=False)
    on.until(invoice, "received_sats", invoice["amount_sats"])
    yield "Now the customer replaces it again, and sends the money back home."
    on.sandbox.replace(txid, away=True)
    on.until(invoice, "received_sats", 0)
    yield "The page says that what was seen has vanished. Who delivered on “seen” has lost."
    yield "An honest payment, after all; and a block."
    on.pay(invoice)
    on.confirm(invoice)
    yield "Paid: only a block makes it so."


def reorganised(on: Actors) -> Iterator[str]:
    invoice = on.invoice()
    yield "An invoice is paid, in a block, as it should be."
    on.pay(invoice)
    blocks = on.confirm(invoice)
    yield "Then miners find a longer branch without that block: the chain is reorganised."
    on.sandbox.reorganise(blocks, double_spend=True)
    on.until(invoice, "status", "open")
    yield (
        "In it the same coins went elsewhere. The shop takes the payment back, opens the invoice,"
        " and sends an event: invoice.reopened."
    )
    yield 'It is rare. For large sums ask for more blocks: BTCPAY_CONFIRMATIONS="1 3@1000".'
    yield "The customer pays again."
    on.pay(invoice)
    on.confirm(invoice)
    yield "Paid again, and counted once."


def explorer_lies(on: Actors) -> Iterator[str]:
    invoice = on.invoice()
    yield "Nobody pays this invoice. But the explorer that the shop asks begins to lie."
    invented = on.sandbox.invent(invoice)
    on.until(invoice, "received_sats", invoice["amount_sats"])
    yield "It shows a payment that nobody has sent. The page says “seen”, and no more than that."
    yield f"Now it swears that the payment is in block {on.next_height}."
    on.sandbox.mine(1)
    on.sandbox.stage.until(lambda: invented.blocks_shown >= 2, "the shop to read the block twice")
    yield (
        "The shop reads the block and computes its Merkle root: the header does not prove this"
        " payment. The block is refused, again and again, and the log says why."
    )
    yield "The explorer tells the truth again. The shop reads the real block: nothing was paid."
    on.sandbox.switches.invented = None
    on.until(invoice, "received_sats", 0)
    yield "Somebody pays in earnest, and a block has it."
    on.pay(invoice)
    on.confirm(invoice)
    yield "Paid. No explorer's word was needed for that: the block proves it."


def sats(number: int) -> str:
    return f"{number:,} sat"


SCENES = {
    "paid-in-time": Scene("Paid in time", "scan, pay, one block: done", in_time),
    "part-and-rest": Scene("Part and rest", "half now, half later, paid once", in_parts),
    "too-much": Scene("Too much, sent back", "a refund, proven by a block", too_much),
    "too-late": Scene("Too late", "the money is found all the same", too_late),
    "replaced": Scene("Replaced", "a higher fee, then taken back", replaced),
    "reorganised": Scene("Reorganised away", "a block that was paid in is gone", reorganised),
    "explorer-lies": Scene(
        "The explorer lies", "an invented payment is not believed", explorer_lies
    ),
}
