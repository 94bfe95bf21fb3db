"""The buttons: form POSTs that answer 303 to the page, or JSON when asked for it.

Each answers with the result, or raises BadRequest or ShopAway.
"""

from collections.abc import Callable
from functools import partial

from flask import Blueprint, jsonify, redirect, request
from flask.typing import ResponseReturnValue

from btcpay.sandbox.errors import BadRequest
from btcpay.sandbox.scenes.stories import SCENES, Actors
from btcpay.sandbox.shop import Json
from btcpay.sandbox.state import Sandbox, current
from btcpay.sandbox.workbench.forms import (
    Order,
    field,
    read_amount,
    read_count,
    read_flag,
    read_order,
    read_switch,
    read_usd,
    refused,
)
from btcpay.sandbox.workbench.page import on_chain, refuse_other_sites

MAX_PRICE_USD, MAX_INVOICE_USD = 1_000_000_000, 1_000_000


def pay(sandbox: Sandbox, tenths: int = 10) -> Json:
    """Pays so many tenths of the amount, rounded down."""
    order = _order_of(sandbox)
    amount_sats = order.amount_sats * tenths // 10
    txid = sandbox.pay(order.address, amount_sats)
    return {"txid": txid, "address": order.address, "amount_sats": amount_sats}


def mine(sandbox: Sandbox) -> Json:
    count = read_count(request.form, "blocks", "1")
    return _new_tip(sandbox, sandbox.mine(count))


def replace(sandbox: Sandbox) -> Json:
    """Field `invoice` or `txid`, by default the newest waiting payment; `away` takes it back."""
    given, away = field(request.form, "txid").lower(), read_flag(request.form, "away")
    if not given and (id := field(request.form, "invoice")):
        given = _newest_payment(sandbox, id)
    with sandbox.chain.lock:
        replaced = given or next(iter(sandbox.wallet.payments()), "")
        txid = sandbox.replace(replaced, away)
    return {"txid": txid, "replaced": replaced}


def reorganise(sandbox: Sandbox) -> Json:
    """Field `depth`, by default 1; `double_spend` makes the payments of these blocks impossible."""
    depth = read_count(request.form, "depth", "1")
    double_spend = read_flag(request.form, "double_spend")
    with sandbox.chain.lock:
        lost = sandbox.chain.ledger.hashes[-depth:]
        hashes = sandbox.reorganise(depth, double_spend)
    return {**_new_tip(sandbox, hashes), "lost": lost}


def explorer(sandbox: Sandbox) -> Json:
    """Field `state`; it lies about `invoice`, by default the newest open one."""
    switches = sandbox.switches
    state = read_switch(request.form, switches.explorer, ("up", "down", "lies"))
    if state != "lies":
        switches.invented, switches.explorer_up = None, state == "up"
        return {"explorer": state}
    about = _open_invoice(sandbox)
    txid = sandbox.invent(about).found.tx.txid
    return {"explorer": state, "invoice": about["id"], "txid": txid}


def price(sandbox: Sandbox) -> Json:
    """Field `usd` sets the price; field `state`, or no field at all, switches the ticker."""
    switches, has_price = sandbox.switches, bool(field(request.form, "usd"))
    new_usd = read_usd(request.form, "usd", MAX_PRICE_USD) if has_price else switches.price_usd
    if not has_price or field(request.form, "state"):
        switches.price_up = read_switch(request.form, switches.price) == "up"
    switches.price_usd = new_usd
    return {"price": switches.price, "usd": f"{new_usd:.2f}"}


def invoice(sandbox: Sandbox) -> Json:
    """Fields `amount_usd`, `description`, and `minutes` until it ends."""
    minutes = field(request.form, "minutes")
    expires_in_s = read_count(request.form, "minutes") * 60 if minutes else None
    usd = read_usd(request.form, "amount_usd", MAX_INVOICE_USD)
    return sandbox.require_shop().create(usd, field(request.form, "description"), expires_in_s)


def scene(sandbox: Sandbox) -> Json:
    """Field `scene`; `quick` waits for no reader. First it mends explorer and price."""
    shop, name = sandbox.require_shop(), field(request.form, "scene")
    if not (chosen := SCENES.get(name)):
        raise refused("scene", f"give one of {', '.join(SCENES)}")
    quick = read_flag(request.form, "quick")
    sandbox.switches.mend()
    sandbox.stage.start(name, chosen.title, chosen.play(Actors(sandbox, shop)), quick)
    return {"scene": name, "title": chosen.title}


def stop(sandbox: Sandbox) -> Json:
    sandbox.stage.stop()
    sandbox.switches.mend()
    return {"scene": None}


PAID = "Paid {amount_sats:,} sat to {address}. It waits: mine a block."
# Each button's function, and the sentence that the page then shows, filled from its answer.
BUTTONS: dict[str, tuple[Callable[[Sandbox], Json], str]] = {
    "pay": (pay, PAID),
    "pay-short": (partial(pay, tenths=5), PAID),
    "pay-too-much": (partial(pay, tenths=11), PAID),
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


def _order_of(sandbox: Sandbox) -> Order:
    """Field `amount`, else the missing sum, or the whole again. Raises BadRequest, ShopAway."""
    if not (id := field(request.form, "invoice")):
        return read_order(request.form)
    invoice = sandbox.require_shop().invoice(id)
    if given := field(request.form, "amount"):
        return Order(invoice["deposit_address"], read_amount(given))
    missing_sats = on_chain(sandbox, invoice).missing_sats
    return Order(invoice["deposit_address"], missing_sats or invoice["amount_sats"])


def _newest_payment(sandbox: Sandbox, id: str) -> str:
    """The txid of the payer's newest waiting payment to an invoice. Raises BadRequest, ShopAway."""
    payments = on_chain(sandbox, sandbox.require_shop().invoice(id)).payments
    if not payments:
        raise BadRequest("nothing waits for this invoice; press pay first")
    return payments[0]


def _open_invoice(sandbox: Sandbox) -> Json:
    shop = sandbox.require_shop()
    if id := field(request.form, "invoice"):
        return shop.invoice(id)
    if invoice := next((each for each in shop.invoices() if each["status"] == "open"), None):
        return invoice
    raise BadRequest("no invoice is open that the explorer could lie about; make one first")


def _new_tip(sandbox: Sandbox, hashes: list[str]) -> Json:
    height = sandbox.chain.ledger.heights[hashes[-1]]
    return {"height": height, "hash": hashes[-1], "hashes": hashes}
