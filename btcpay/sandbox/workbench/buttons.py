"""The buttons: form POSTs that answer 303 to the page, or JSON when asked for it.

Each answers what happened, or raises BadRequest or ShopAway.
"""

from collections.abc import Callable
from functools import partial
from typing import Any

from flask import Blueprint, jsonify, redirect, request
from flask.typing import ResponseReturnValue

from btcpay.sandbox.errors import BadRequest
from btcpay.sandbox.esplora.invented import invent
from btcpay.sandbox.payer import misbehave
from btcpay.sandbox.scenes.actors import Actors
from btcpay.sandbox.scenes.stories import SCENES
from btcpay.sandbox.state import Sandbox, current
from btcpay.sandbox.workbench.forms import (
    Order,
    field,
    read_count,
    read_flag,
    read_switch,
    read_usd,
    refused,
)
from btcpay.sandbox.workbench.invoices import newest_payment, order_of, require_shop
from btcpay.sandbox.workbench.page import refuse_other_sites

MAX_PRICE_USD, MAX_INVOICE_USD = 1_000_000_000, 1_000_000

Answer = dict[str, Any]


def pay(sandbox: Sandbox) -> Answer:
    return _pay(sandbox, order_of(sandbox, request.form))


def pay_short(sandbox: Sandbox) -> Answer:
    """Half of the amount, rounded down."""
    order = order_of(sandbox, request.form)
    return _pay(sandbox, order._replace(amount_sats=order.amount_sats // 2))


def pay_too_much(sandbox: Sandbox) -> Answer:
    """A tenth more, rounded down; the dust limit makes that a satoshi at least."""
    order = order_of(sandbox, request.form)
    return _pay(sandbox, order._replace(amount_sats=order.amount_sats * 11 // 10))


def mine(sandbox: Sandbox) -> Answer:
    count = read_count(request.form, "blocks", "1")
    return _new_tip(sandbox, sandbox.chain.mine(count, sandbox.clock()))


def replace(sandbox: Sandbox) -> Answer:
    """Field `invoice` or `txid`, by default the newest waiting payment; `away` takes it back."""
    given, away = field(request.form, "txid").lower(), read_flag(request.form, "away")
    if not given and (id := field(request.form, "invoice")):
        given = newest_payment(sandbox, id)
    with sandbox.chain.lock:
        replaced = given or next(iter(sandbox.wallet.payments()), "")
        txid = misbehave.replace(sandbox.wallet, sandbox.clock(), replaced, away)
    return {"txid": txid, "replaced": replaced}


def reorganise(sandbox: Sandbox) -> Answer:
    """Field `depth`, by default 1; `double_spend` makes the payments of these blocks impossible."""
    depth = read_count(request.form, "depth", "1")
    double_spend = read_flag(request.form, "double_spend")
    with sandbox.chain.lock:
        lost = sandbox.chain.ledger.hashes[-depth:]
        instead = misbehave.double_spends(sandbox.wallet, depth) if double_spend else []
        hashes = sandbox.chain.reorganise(depth, sandbox.clock(), instead)
    return {**_new_tip(sandbox, hashes), "lost": lost}


def explorer(sandbox: Sandbox) -> Answer:
    """Field `state`; it lies about `invoice`, by default the newest open one."""
    switches = sandbox.switches
    state = read_switch(request.form, switches.explorer, ("up", "down", "lies"))
    if state != "lies":
        switches.invented, switches.explorer_up = None, state == "up"
        return {"explorer": state}
    about = _open_invoice(sandbox)
    switches.invented = invent(sandbox.wallet, about)
    switches.explorer_up = True
    return {"explorer": state, "invoice": about["id"], "txid": switches.invented.found.tx.txid}


def price(sandbox: Sandbox) -> Answer:
    """Field `usd` sets the price; field `state`, or no field at all, switches the ticker."""
    switches, has_price = sandbox.switches, bool(field(request.form, "usd"))
    new_usd = read_usd(request.form, "usd", MAX_PRICE_USD) if has_price else switches.price_usd
    if not has_price or field(request.form, "state"):
        switches.price_up = read_switch(request.form, switches.price) == "up"
    switches.price_usd = new_usd
    return {"price": switches.price, "usd": f"{new_usd:.2f}"}


def invoice(sandbox: Sandbox) -> Answer:
    """Fields `amount_usd`, `description`, and `minutes` until it ends."""
    minutes = field(request.form, "minutes")
    expires_in_s = read_count(request.form, "minutes") * 60 if minutes else None
    usd = read_usd(request.form, "amount_usd", MAX_INVOICE_USD)
    return require_shop(sandbox).create(usd, field(request.form, "description"), expires_in_s)


def scene(sandbox: Sandbox) -> Answer:
    """Field `scene`; `quick` waits for no reader. First it mends explorer and price."""
    shop, name = require_shop(sandbox), field(request.form, "scene")
    if not (chosen := SCENES.get(name)):
        raise refused("scene", f"give one of {', '.join(SCENES)}")
    quick = read_flag(request.form, "quick")
    sandbox.switches.mend()
    sandbox.stage.start(name, chosen.title, chosen.play(Actors(sandbox, shop)), quick)
    return {"scene": name, "title": chosen.title}


def stop(sandbox: Sandbox) -> Answer:
    sandbox.stage.stop()
    sandbox.switches.mend()
    return {"scene": None}


PAID = "Paid {amount_sats:,} sat to {address}. It waits: mine a block."
# Each button's function, and the sentence that the page then shows, filled from its answer.
BUTTONS: dict[str, tuple[Callable[[Sandbox], Answer], str]] = {
    "pay": (pay, PAID),
    "pay-short": (pay_short, PAID),
    "pay-too-much": (pay_too_much, PAID),
    "mine": (mine, "Mined. The tip is block {height:,}."),
    "replace": (replace, "Replaced {replaced:.12} by {txid:.12}."),
    "reorganise": (reorganise, "Reorganised. The tip is block {height:,} of another branch."),
    "explorer": (explorer, "Explorer {explorer}."),
    "price": (price, "A bitcoin is ${price_usd:,.2f}; the price source is {price}."),
    "invoice": (invoice, "An invoice over {amount_sats:,} sat."),
    "scene": (scene, ""),  # its lines are shown
    "stop": (stop, "The scene was stopped."),
}


def create_buttons() -> Blueprint:
    blueprint = Blueprint("buttons", __name__, url_prefix="/sandbox")
    blueprint.before_request(refuse_other_sites)
    for name in BUTTONS:
        blueprint.add_url_rule(f"/{name}", name, partial(_press, name), methods=["POST"])
    return blueprint


def wants_json() -> bool:
    json = "application/json"
    return request.accept_mimetypes.best_match(["text/html", json]) == json


def _press(name: str) -> ResponseReturnValue:
    button, notice = BUTTONS[name]
    answer, switches = button(current()), current().switches
    switches.notice = notice.format(**answer, price_usd=switches.price_usd)
    return jsonify(answer) if wants_json() else redirect("/", 303)


def _open_invoice(sandbox: Sandbox) -> Answer:
    shop = require_shop(sandbox)
    if id := field(request.form, "invoice"):
        return shop.invoice(id)
    if invoice := next((each for each in shop.invoices() if each["status"] == "open"), None):
        return invoice
    raise BadRequest("no invoice is open that the explorer could lie about; make one first")


def _pay(sandbox: Sandbox, order: Order) -> Answer:
    txid = sandbox.wallet.pay(order.address, order.amount_sats, sandbox.clock())
    return {"txid": txid, "address": order.address, "amount_sats": order.amount_sats}


def _new_tip(sandbox: Sandbox, hashes: list[str]) -> Answer:
    height = sandbox.chain.ledger.heights[hashes[-1]]
    return {"height": height, "hash": hashes[-1], "hashes": hashes}
