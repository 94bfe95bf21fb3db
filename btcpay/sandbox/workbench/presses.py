"""What each button does to the chain, its mempool, the faults, the shop; by the form's fields.

Each raises BadRequest, Rejected or ShopAway, and answers what happened as JSON.
"""

from functools import partial
from typing import Any

from flask import request

from btcpay.sandbox.errors import BadRequest
from btcpay.sandbox.esplora.plain import HASH
from btcpay.sandbox.lie import invent
from btcpay.sandbox.node.rules import least_sats
from btcpay.sandbox.node.script import script_of
from btcpay.sandbox.payer.misbehave import double_spends
from btcpay.sandbox.payer.misbehave import replace as replace_payment
from btcpay.sandbox.scenes.actors import Actors
from btcpay.sandbox.scenes.stories import SCENES
from btcpay.sandbox.state import Sandbox
from btcpay.sandbox.workbench.forms import (
    Order,
    read_count,
    read_flag,
    read_invoice_usd,
    read_price,
    read_switch,
    refused,
)
from btcpay.sandbox.workbench.invoices import newest_payment, order_of, require_shop

Answer = dict[str, Any]
EXPLORER_STATES = ("up", "down", "lies")


def pay(sandbox: Sandbox) -> Answer:
    """Field `invoice`, or `address` and `amount`."""
    return _pay(sandbox, order_of(sandbox, request.form))


def pay_short(sandbox: Sandbox) -> Answer:
    """Half of it, rounded down, but no less than is relayed."""
    order = order_of(sandbox, request.form)
    least = least_sats(script_of(order.address))
    if order.amount_sats <= least:
        raise refused("amount", f"give at least {least + 1}; {least} is the least to send")
    return _pay(sandbox, Order(order.address, max(least, order.amount_sats // 2)))


def pay_too_much(sandbox: Sandbox) -> Answer:
    """A tenth more, rounded down but at least a satoshi, and no less than is relayed."""
    order = order_of(sandbox, request.form)
    more_sats = order.amount_sats + max(1, order.amount_sats // 10)
    least = least_sats(script_of(order.address))
    return _pay(sandbox, Order(order.address, max(least, more_sats)))


def mine(sandbox: Sandbox) -> Answer:
    hashes = sandbox.chain.mine(read_count(request.form, "blocks", "1"), sandbox.clock())
    return _new_tip(sandbox, hashes)


def replace(sandbox: Sandbox) -> Answer:
    """Field `invoice` or `txid`, by default the newest waiting payment; `away` takes it back."""
    given = request.form.get("txid", "").strip().lower()
    if given and not HASH.fullmatch(given):
        raise refused("txid", "give its txid of 64 hex digits, or nothing for the newest")
    away = read_flag(request.form, "away")
    if not given and (id := request.form.get("invoice", "").strip()):
        given = newest_payment(sandbox, id)
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
    """Field `state`; it lies about `invoice`, by default the newest open one."""
    switches = sandbox.switches
    state = read_switch(request.form, switches.explorer, EXPLORER_STATES)
    if state == "lies":
        invoice = _lied_about(sandbox)
        switches.lie = invent(sandbox.wallet, invoice["deposit_address"], invoice["amount_sats"])
        switches.explorer_up = True
        return {"explorer": state, "invoice": invoice["id"], "txid": switches.lie.tx.txid}
    switches.lie, switches.explorer_up = None, state == "up"
    return {"explorer": state}


def price(sandbox: Sandbox) -> Answer:
    """Field `usd` sets the price; field `state`, or no field at all, switches the ticker."""
    switches, new_usd = sandbox.switches, read_price(request.form)
    now = "up" if switches.price_up else "down"
    if new_usd is None or request.form.get("state"):
        now = read_switch(request.form, now)
    switches.price_up = now == "up"
    switches.price_usd = switches.price_usd if new_usd is None else new_usd
    return {"price": now, "usd": f"{switches.price_usd:.2f}"}


def invoice(sandbox: Sandbox) -> Answer:
    """Fields `amount_usd`, `description`, and `minutes` until it ends."""
    minutes = request.form.get("minutes", "").strip()
    expires_in_s = read_count(request.form, "minutes") * 60 if minutes else None
    usd, words = read_invoice_usd(request.form), request.form.get("description", "").strip()
    return require_shop(sandbox).create(usd, words, expires_in_s)


def scene(sandbox: Sandbox) -> Answer:
    """Field `scene`; `quick` waits for no reader. Explorer and price are up, and true, again."""
    shop, name = require_shop(sandbox), request.form.get("scene", "").strip()
    if not (chosen := SCENES.get(name)):
        raise refused("scene", f"give one of {', '.join(SCENES)}")
    quick = read_flag(request.form, "quick")
    sandbox.switches.mend()
    stage = sandbox.stage
    stage.start(name, chosen.title, partial(chosen.play, Actors(stage, sandbox, shop)), quick)
    return {"scene": name, "title": chosen.title}


def stop(sandbox: Sandbox) -> Answer:
    """Ends the scene that plays; explorer and price are up again."""
    sandbox.stage.stop()
    sandbox.switches.mend()
    return {"scene": None}


def _lied_about(sandbox: Sandbox) -> Answer:
    shop = require_shop(sandbox)
    if id := request.form.get("invoice", "").strip():
        return shop.invoice(id)
    found = next((one for one in shop.invoices() if one["status"] == "open"), None)
    if found is None:
        raise BadRequest("no invoice is open that the explorer could lie about; make one first")
    return found


def _pay(sandbox: Sandbox, order: Order) -> Answer:
    txid = sandbox.wallet.pay(order.address, order.amount_sats, sandbox.clock())
    return {"txid": txid, "address": order.address, "amount_sats": order.amount_sats}


def _new_tip(sandbox: Sandbox, hashes: list[str]) -> Answer:
    height = sandbox.chain.ledger.heights[hashes[-1]]
    return {"height": height, "hash": hashes[-1], "hashes": hashes}
