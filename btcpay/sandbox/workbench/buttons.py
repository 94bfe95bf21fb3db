"""The buttons: form POSTs that answer 303 to the page, or JSON when asked for it."""

from collections.abc import Callable
from typing import NamedTuple

from flask import Blueprint, jsonify, redirect, request
from flask.typing import ResponseReturnValue

from btcpay.sandbox.state import Sandbox, current
from btcpay.sandbox.strangers import refuse_strangers
from btcpay.sandbox.workbench import presses
from btcpay.sandbox.workbench.presses import Answer


class Button(NamedTuple):
    """What it does, and what the page says of it afterwards: of the answer's fields."""

    press: Callable[[Sandbox], Answer]
    told: str


PAID = "Paid {amount_sats:,} sat to {address}. It waits: mine a block."
BUTTONS = {
    "pay": Button(presses.pay, PAID),
    "pay-short": Button(presses.pay_short, PAID),
    "pay-too-much": Button(presses.pay_too_much, PAID),
    "mine": Button(presses.mine, "Mined. The tip is block {height:,}."),
    "replace": Button(presses.replace, "Replaced {replaced:.12} by {txid:.12}."),
    "reorganise": Button(
        presses.reorganise, "Reorganised. The tip is block {height:,} of another branch."
    ),
    "explorer": Button(presses.explorer, "Explorer {explorer}."),
    "price": Button(presses.price, "A bitcoin is ${price_usd:,.2f}; the price source is {price}."),
    "invoice": Button(presses.invoice, "An invoice over {amount_sats:,} sat."),
    "scene": Button(presses.scene, ""),  # the scene tells itself
    "stop": Button(presses.stop, "The scene was stopped."),
}


def create_buttons() -> Blueprint:
    """`POST /sandbox/...`; wrong input raises BadRequest, Rejected or ShopAway."""
    blueprint = Blueprint("buttons", __name__, url_prefix="/sandbox")
    blueprint.before_request(refuse_strangers)
    for name, button in BUTTONS.items():
        blueprint.add_url_rule(f"/{name}", name, _pressing(button), methods=["POST"])
    return blueprint


def wants_json() -> bool:
    """Whether the client asked for JSON rather than the page."""
    return (
        request.accept_mimetypes.best_match(["text/html", "application/json"]) == "application/json"
    )


def _pressing(button: Button) -> Callable[[], ResponseReturnValue]:
    def press() -> ResponseReturnValue:
        answer, switches = button.press(current()), current().switches
        switches.told = button.told.format(**answer, price_usd=switches.price_usd)
        return jsonify(answer) if wants_json() else redirect("/", 303)

    return press
