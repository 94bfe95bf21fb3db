"""The scenes: each a story of one invoice over 25 dollars, with a line for each step."""

from collections.abc import Callable
from typing import NamedTuple

from btcpay.sandbox.scenes.actors import Actors

# How long a customer hesitates, and how long when nobody reads along.
SOON_S, SOON_QUICK_S = 20, 4


class Scene(NamedTuple):
    """`about` is what the button says beside its title; `play` may raise SandboxError."""

    title: str
    about: str
    play: Callable[[Actors], None]


def in_time(on: Actors) -> None:
    invoice = on.invoice()
    on.say(
        f"Two bags of coffee for $25. The shop makes an invoice: {sats(invoice['amount_sats'])} at"
        " today's price, to an address that nobody else ever gets."
    )
    on.say("The customer scans the code and pays. Nothing is final yet: the payment waits.")
    on.pay(invoice)
    on.until_seen(invoice)
    on.say("The shop has seen it and says so. It does not deliver: what waits can be taken back.")
    on.say(f"A miner puts it into block {on.next_height}. The shop reads the block, and proves it.")
    on.confirm(invoice)
    on.until_status(invoice, "paid")
    on.say(
        "Paid. A signed webhook tells the shop's program. The money is in the shop's own wallet:"
        " no key was ever on this server."
    )


def in_parts(on: Actors) -> None:
    invoice = on.invoice()
    part_sats = invoice["amount_sats"] // 2
    rest_sats = invoice["amount_sats"] - part_sats
    on.say(f"An invoice over {sats(invoice['amount_sats'])}. The customer sends only half of it.")
    on.pay(invoice, part_sats)
    on.until_seen(invoice, part_sats)
    on.say(f"The page asks for the rest: {sats(rest_sats)}, to the same address.")
    on.confirm(invoice)
    on.say("The half is in a block now. The invoice stays open, and the money is not lost.")
    on.say("The customer sends the rest, and another block comes.")
    on.pay(invoice, rest_sats)
    on.until_seen(invoice)
    on.confirm(invoice)
    on.until_status(invoice, "paid")
    on.say("Both together make it paid, once: two payments, one invoice.")


def too_late(on: Actors) -> None:
    left_s = SOON_QUICK_S if on.stage.quick else SOON_S
    invoice = on.invoice(left_s)
    on.say(f"This invoice ends in {left_s} seconds, and its customer hesitates.")
    on.until_status(invoice, "expired")
    on.say(
        "Time is up. The shop has asked the chain once more, then closed it: an explorer that does"
        " not answer is never read as “unpaid”."
    )
    on.say("Now the customer pays all the same, as happens with slow wallets and low fees.")
    txid = on.pay(invoice)
    height = on.mine()
    on.stage.until(lambda: on.shop.has_received(txid), "the late payment")
    on.say(
        f"The shop finds the money in block {height}: addresses are watched for ever. It is in the"
        " balance, and the invoice stays expired."
    )
    on.say(
        "A human decides. `btcpay invoice list --attention` shows it; accept it with `btcpay"
        " invoice settle`, or send it back from your wallet."
    )


def replaced(on: Actors) -> None:
    invoice = on.invoice()
    on.say("The customer pays with a low fee, and becomes impatient.")
    txid = on.pay(invoice)
    on.until_seen(invoice)
    on.say("The wallet replaces the payment by one with a higher fee. It is counted once.")
    txid = on.replace(txid)
    on.until_seen(invoice)
    on.say("Now the customer replaces it again, and sends the money back home.")
    on.replace(txid, away=True)
    on.until_seen(invoice, 0)
    on.say("The page says that what was seen has vanished. Who delivered on “seen” has lost.")
    on.say("An honest payment, after all; and a block.")
    on.pay_and_confirm(invoice)
    on.say("Paid: only a block makes it so.")


def reorganised(on: Actors) -> None:
    invoice = on.invoice()
    on.say("An invoice is paid, in a block, as it should be.")
    blocks = on.pay_and_confirm(invoice)
    on.say("Then miners find a longer branch without that block: the chain is reorganised.")
    on.reorganise(blocks)
    on.until_status(invoice, "open")
    on.say(
        "In it the same coins went elsewhere. The shop takes the payment back, opens the invoice,"
        " and sends an event: invoice.reopened."
    )
    on.say('It is rare. For large sums ask for more blocks: BTCPAY_CONFIRMATIONS="1 3@1000".')
    on.say("The customer pays again.")
    on.pay_and_confirm(invoice)
    on.say("Paid again, and counted once.")


def explorer_lies(on: Actors) -> None:
    invoice = on.invoice()
    on.say("Nobody pays this invoice. But the explorer that the shop asks begins to lie.")
    invented = on.invent_payment(invoice)
    on.until_seen(invoice)
    on.say("It shows a payment that nobody has sent. The page says “seen”, and no more than that.")
    on.say(f"Now it swears that the payment is in block {on.next_height}.")
    on.mine()
    on.stage.until(lambda: invented.blocks_shown >= 2, "the shop to read the block twice")
    on.say(
        "The shop reads the block and computes its Merkle root: the header does not prove this"
        " payment. The block is refused, again and again, and the log says why."
    )
    on.say("The explorer tells the truth again. The shop reads the real block: nothing was paid.")
    on.sandbox.switches.invented = None
    on.until_seen(invoice, 0)
    on.say("Somebody pays in earnest, and a block has it.")
    on.pay_and_confirm(invoice)
    on.say("Paid. No explorer's word was needed for that: the block proves it.")


def sats(number: int) -> str:
    return f"{number:,} sat"


SCENES = {
    "paid-in-time": Scene("Paid in time", "scan, pay, one block: done", in_time),
    "part-and-rest": Scene("Part and rest", "half now, half later, paid once", in_parts),
    "too-late": Scene("Too late", "the money is found all the same", too_late),
    "replaced": Scene("Replaced", "a higher fee, then taken back", replaced),
    "reorganised": Scene("Reorganised away", "a block that was paid in is gone", reorganised),
    "explorer-lies": Scene(
        "The explorer lies", "an invented payment is not believed", explorer_lies
    ),
}
