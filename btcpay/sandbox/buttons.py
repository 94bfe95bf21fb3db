"""What the page's buttons do: form POSTs that answer 303 to the page, or JSON when asked for it."""

from collections.abc import Callable
from typing import Any

from flask import Blueprint, jsonify, redirect, request
from flask.typing import ResponseReturnValue

from btcpay.sandbox.esplora.plain import HASH
from btcpay.sandbox.forms import (
    Order,
    read_count,
    read_flag,
    read_order,
    read_price,
    read_switch,
    refused,
)
from btcpay.sandbox.node.rules import least_sats
from btcpay.sandbox.node.script import script_of
from btcpay.sandbox.payer.mischief import double_spends
from btcpay.sandbox.payer.mischief import replace as replace_payment
from btcpay.sandbox.state import Sandbox, current

Answer = dict[str, Any]
Button = Callable[[Sandbox], Answer]


def create_buttons() -> Blueprint:
    """`POST /sandbox/...`; wrong input raises BadRequest or Rejected."""
    blueprint = Blueprint("buttons", __name__, url_prefix="/sandbox")
    for name, (button, told) in BUTTONS.items():
        blueprint.add_url_rule(f"/{name}", name, _pressing(button, told), methods=["POST"])
    return blueprint


def wants_json() -> bool:
    """Whether the client asked for JSON rather than the page."""
    return (
        request.accept_mimetypes.best_match(["text/html", "application/json"]) == "application/json"
    )


def pay(sandbox: Sandbox) -> Answer:
    return _pay(sandbox, read_order(request.form))


def pay_short(sandbox: Sandbox) -> Answer:
    """Half of it, rounded down, but no less than is relayed."""
    order = read_order(request.form)
    least = least_sats(script_of(order.address))
    if order.amount_sats <= least:
        raise refused("amount", f"give at least {least + 1}; {least} is the least to send")
    return _pay(sandbox, Order(order.address, max(least, order.amount_sats // 2)))


def pay_too_much(sandbox: Sandbox) -> Answer:
    """A tenth more, rounded down but at least a satoshi, and no less than is relayed."""
    order = read_order(request.form)
    more_sats = order.amount_sats + max(1, order.amount_sats // 10)
    least = least_sats(script_of(order.address))
    return _pay(sandbox, Order(order.address, max(least, more_sats)))


def mine(sandbox: Sandbox) -> Answer:
    hashes = sandbox.chain.mine(read_count(request.form, "blocks", "1"), sandbox.clock())
    return _new_tip(sandbox, hashes)


def replace(sandbox: Sandbox) -> Answer:
    """Field `txid`, by default the newest waiting payment; `away` takes the money back."""
    given = request.form.get("txid", "").strip().lower()
    if given and not HASH.fullmatch(given):
        raise refused("txid", "give its txid of 64 hex digits, or nothing for the newest")
    away = read_flag(request.form, "away")
    with sandbox.chain.lock:
        replaced = given or next(iter(sandbox.wallet.payments()), "")
        txid = replace_payment(sandbox.wallet, sandbox.clock(), replaced, away)
    return {"txid": txid, "replaced": replaced}


def reorganise(sandbox: Sandbox) -> Answer:
    """Field `depth`, by default 1; `double_spend` makes the payments in there impossible."""
    depth = read_count(request.form, "depth", "1")
    double_spend = read_flag(request.form, "double_spend")
    with sandbox.chain.lock:
        lost = sandbox.chain.ledger.hashes[-depth:]
        instead = double_spends(sandbox.wallet, depth) if double_spend else []
        hashes = sandbox.chain.reorganise(depth, sandbox.clock(), instead)
    return {**_new_tip(sandbox, hashes), "lost": lost}


def explorer(sandbox: Sandbox) -> Answer:
    switches = sandbox.switches
    switches.explorer_up = read_switch(request.form, switches.explorer_up)
    return {"explorer": "up" if switches.explorer_up else "down"}


def price(sandbox: Sandbox) -> Answer:
    """Field `usd` sets the price; field `state`, or no field at all, switches the ticker."""
    switches, new_usd = sandbox.switches, read_price(request.form)
    if new_usd is None or request.form.get("state"):
        switches.price_up = read_switch(request.form, switches.price_up)
    switches.price_usd = switches.price_usd if new_usd is None else new_usd
    return {"price": "up" if switches.price_up else "down", "usd": f"{switches.price_usd:.2f}"}


def _pay(sandbox: Sandbox, order: Order) -> Answer:
    txid = sandbox.wallet.pay(order.address, order.amount_sats, sandbox.clock())
    return {"txid": txid, "address": order.address, "amount_sats": order.amount_sats}


def _new_tip(sandbox: Sandbox, hashes: list[str]) -> Answer:
    height = sandbox.chain.ledger.heights[hashes[-1]]
    return {"height": height, "hash": hashes[-1], "hashes": hashes}


def _pressing(button: Button, told: str) -> Callable[[], ResponseReturnValue]:
    def press() -> ResponseReturnValue:
        answer = button(current())
        current().switches.told = told.format(**answer)
        return jsonify(answer) if wants_json() else redirect("/", 303)

    return press


PAID = "Paid {amount_sats} satoshis to {address}; now mine a block."
# What each does, and what the page says of it afterwards.
BUTTONS: dict[str, tuple[Button, str]] = {
    "pay": (pay, PAID),
    "pay-short": (pay_short, PAID),
    "pay-too-much": (pay_too_much, PAID),
    "mine": (mine, "Mined; the tip is block {height}."),
    "replace": (replace, "Replaced {replaced:.12} by {txid:.12}."),
    "reorganise": (reorganise, "Reorganised; the tip is block {height} of another branch."),
    "explorer": (explorer, "The explorer is {explorer}."),
    "price": (price, "A bitcoin is {usd} dollars; the price source is {price}."),
}
