"""The buttons of the sandbox's page. Each is a POST of a form.

The response redirects (303) to the page, or is JSON if the request prefers that. A
button's function returns the result, or raises BadRequest or ShopAway.
"""

from collections.abc import Callable
from functools import partial

from flask import Blueprint, jsonify, redirect, request
from flask.typing import ResponseReturnValue

from btcpay.sandbox.errors import BadRequest, ShopAway
from btcpay.sandbox.scenes.stories import scenes
from btcpay.sandbox.shop import Json, Shop
from btcpay.sandbox.state import Sandbox, current_sandbox
from btcpay.sandbox.workbench import forms
from btcpay.sandbox.workbench.page import create_page, on_chain, show
from btcpay.values.statuses import InvoiceStatus

MAX_PRICE_USD = 1_000_000_000
MAX_INVOICE_USD = 1_000_000


def pay(sandbox: Sandbox, tenths: int = 10) -> Json:
    """Pays a sum times `tenths` / 10, rounded down to satoshis.

    If the field `invoice` has an invoice's id, the sum is the missing amount of the
    invoice, or its whole amount if nothing is missing. Otherwise the sum is in the
    field `amount`, and is paid to the address in the field `address`.
    """
    invoice_id = forms.field("invoice")
    if invoice_id:
        invoice = sandbox.require_shop().invoice(invoice_id)
        address = invoice["deposit_address"]
        sum_sats = on_chain(sandbox, invoice).missing_sats or invoice["amount_sats"]
    else:
        address, sum_sats = forms.read_order()
    amount_sats = sum_sats * tenths // 10
    txid = sandbox.pay(address, amount_sats)
    return {"txid": txid, "address": address, "amount_sats": amount_sats}


def mine(sandbox: Sandbox) -> Json:
    return _new_tip(sandbox, sandbox.mine(forms.read_count("blocks")))


def replace(sandbox: Sandbox) -> Json:
    """Replaces an unconfirmed payment by one with a higher fee.

    The field `txid` has the payment's txid. If it is empty, the newest payment of the
    invoice in the field `invoice` is replaced. If both are empty, the newest of all is.
    With the field `away`, the replacement pays the wallet itself.
    """
    old_txid = forms.field("txid").lower()
    away = forms.read_flag("away")
    invoice_id = forms.field("invoice")
    if invoice_id and not old_txid:
        invoice = sandbox.require_shop().invoice(invoice_id)
        payments = on_chain(sandbox, invoice).payments
        if not payments:
            raise BadRequest("nothing waits for this invoice; press pay first")
        old_txid = payments[0]
    with sandbox.chain.lock:
        if not old_txid:
            old_txid = next(iter(sandbox.wallet.payments()), "")
        new_txid = sandbox.replace(old_txid, away)
    return {"txid": new_txid, "replaced": old_txid}


def reorganise(sandbox: Sandbox) -> Json:
    """Replaces the last blocks of the chain. The field `depth` has their number.

    With the field `double_spend`, the wallet's payments in these blocks become invalid.
    """
    depth = forms.read_count("depth")
    double_spend = forms.read_flag("double_spend")
    with sandbox.chain.lock:
        lost_hashes = sandbox.chain.ledger.hashes[-depth:]
        hashes = sandbox.reorganise(depth, double_spend)
    return {**_new_tip(sandbox, hashes), "lost": lost_hashes}


def explorer(sandbox: Sandbox) -> Json:
    """Sets the state of the explorer from the field `state`: up, down or lies.

    In the state `lies`, the explorer invents a payment to the invoice in the field
    `invoice`, by default to the newest open one.
    """
    switches = sandbox.switches
    state = forms.read_state("up", "down", "lies")
    if state != "lies":
        switches.explorer = state
        switches.invented = None
        return {"explorer": state}
    invoice = _invoice_to_lie_about(sandbox.require_shop())
    txid = sandbox.invent(invoice).entry.tx.txid
    return {"explorer": state, "invoice": invoice["id"], "txid": txid}


def _invoice_to_lie_about(shop: Shop) -> Json:
    """Returns the invoice in the field `invoice`, by default the newest open one.

    Raises BadRequest if there is no such invoice.
    """
    invoice_id = forms.field("invoice")
    if invoice_id:
        return shop.invoice(invoice_id)
    for invoice in shop.invoices():
        if invoice["status"] == InvoiceStatus.OPEN:
            return invoice
    raise BadRequest(
        "no invoice is open that the explorer could lie about; make one first"
    )


def price(sandbox: Sandbox) -> Json:
    """Sets the simulated price of one bitcoin from the field `usd`.

    If this field is empty, the field `state` (`up` or `down`) sets whether the price
    ticker responds.
    """
    switches = sandbox.switches
    if forms.field("usd"):
        switches.price_usd = forms.read_usd("usd", MAX_PRICE_USD)
    else:
        switches.price = forms.read_state("up", "down")
    return {"price": switches.price, "usd": f"{switches.price_usd:.2f}"}


def invoice(sandbox: Sandbox) -> Json:
    """Creates an invoice from the fields `amount_usd`, `description` and `minutes`.

    The invoice expires after this number of minutes. If the field is empty, the shop's
    default applies.
    """
    expires_in_s = None
    if forms.field("minutes"):
        expires_in_s = forms.read_count("minutes") * 60
    usd = forms.read_usd("amount_usd", MAX_INVOICE_USD)
    return sandbox.require_shop().create(usd, forms.field("description"), expires_in_s)


def scene(sandbox: Sandbox) -> Json:
    """Ends all simulated faults, and starts the scene named in the field `scene`.

    With the field `quick`, there are no pauses for reading.
    """
    shop = sandbox.require_shop()
    scenes_by_name = scenes()
    name = forms.field("scene")
    if name not in scenes_by_name:
        raise forms.field_error("scene", f"give one of {', '.join(scenes_by_name)}")
    quick = forms.read_flag("quick")
    chosen = scenes_by_name[name]
    sandbox.switches.mend()
    sandbox.stage.start(name, chosen.title, chosen.play(sandbox, shop), quick)
    return {"scene": name, "title": chosen.title}


def stop(sandbox: Sandbox) -> Json:
    sandbox.stage.stop()
    sandbox.switches.mend()
    return {"scene": None}


PAID = "Paid {amount_sats:,} sat to {address}. It waits: mine a block."
# By the button's name: its function, and the sentence about its result.
BUTTONS: dict[str, tuple[Callable[[Sandbox], Json], str]] = {
    "pay": (pay, PAID),
    "pay-short": (partial(pay, tenths=5), PAID),
    "pay-too-much": (partial(pay, tenths=11), PAID),
    "mine": (mine, "Mined. The tip is block {height:,}."),
    "replace": (replace, "Replaced {replaced:.12} by {txid:.12}."),
    "reorganise": (
        reorganise,
        "Reorganised. The tip is block {height:,} of another branch.",
    ),
    "explorer": (explorer, "Explorer {explorer}."),
    "price": (price, "A bitcoin is ${price_usd:,.2f}; the price source is {price}."),
    "invoice": (invoice, "An invoice over {amount_sats:,} sat."),
    "scene": (scene, ""),  # the scene shows its own lines
    "stop": (stop, "The scene was stopped."),
}


def create_workbench() -> Blueprint:
    """Returns the blueprint of the workbench: its page and its buttons."""
    blueprint = create_page()
    for name in BUTTONS:
        blueprint.add_url_rule(
            f"/sandbox/{name}",
            endpoint=name,
            view_func=partial(_press, name),
            methods=["POST"],
        )
    for kind, status in ((BadRequest, 400), (ShopAway, 502)):
        blueprint.register_error_handler(kind, partial(_problem, status))
    return blueprint


def _wants_json() -> bool:
    json = "application/json"
    return request.accept_mimetypes.best_match(["text/html", json]) == json


def _press(name: str) -> ResponseReturnValue:
    """Does the action of a button, and stores the sentence about it for the page."""
    button, notice = BUTTONS[name]
    sandbox = current_sandbox()
    result = button(sandbox)
    switches = sandbox.switches
    switches.notice = notice.format(**result, price_usd=switches.price_usd)
    if _wants_json():
        return jsonify(result)
    return redirect("/", 303)


def _problem(status: int, error: Exception) -> ResponseReturnValue:
    """Returns the page, or JSON, with the reason why a button could not do its action."""
    if _wants_json():
        return jsonify({"error": str(error)}), status
    return show(str(error)), status


def _new_tip(sandbox: Sandbox, hashes: list[str]) -> Json:
    height = sandbox.chain.ledger.heights[hashes[-1]]
    return {"height": height, "hash": hashes[-1], "hashes": hashes}
