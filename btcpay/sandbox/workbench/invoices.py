"""The shop's invoices beside what the chain knows of their addresses."""

from dataclasses import dataclass
from typing import Any

from btcpay.sandbox.errors import BadRequest
from btcpay.sandbox.node.ledger import Found
from btcpay.sandbox.node.script import script_of
from btcpay.sandbox.shop import Json, Shop
from btcpay.sandbox.state import Sandbox
from btcpay.sandbox.workbench.forms import Form, Order, field, read_amount, read_order

OVER = ("paid", "expired", "canceled")


@dataclass(frozen=True)
class OnChain:
    """Satoshis that came to an invoice's address: waiting, and in blocks."""

    waiting_sats: int
    confirmed_sats: int
    missing_sats: int
    payments: tuple[str, ...]  # txids that the payer could replace, newest first


def on_chain(sandbox: Sandbox, invoice: Json) -> OnChain:
    """Raises BadRequest for an address that is not regtest's."""
    with sandbox.chain.lock:
        script, own = script_of(invoice["deposit_address"]), sandbox.wallet.payments()
        waiting, confirmed = sandbox.chain.waiting_of(script), sandbox.chain.confirmed_of(script)
    waiting_sats, confirmed_sats = _sum(waiting, script), _sum(confirmed, script)
    return OnChain(
        waiting_sats,
        confirmed_sats,
        max(0, invoice["amount_sats"] - waiting_sats - confirmed_sats),
        tuple(found.tx.txid for found in waiting if found.tx.txid in own),
    )


def _sum(all_found: list[Found], script: bytes) -> int:
    outputs = (output for found in all_found for output in found.tx.outputs)
    return sum(output.value_sats for output in outputs if output.script == script)


def require_shop(sandbox: Sandbox) -> Shop:
    """Raises BadRequest where the chain runs alone."""
    if sandbox.shop is None:
        raise BadRequest("no shop runs beside this chain; `btcpay sandbox` starts both")
    return sandbox.shop


def order_of(sandbox: Sandbox, form: Form) -> Order:
    """Field `amount`, else the sum that is missing, or all again. Raises BadRequest, ShopAway."""
    if not (id := field(form, "invoice")):
        return read_order(form)
    invoice = require_shop(sandbox).invoice(id)
    if given := field(form, "amount"):
        return Order(invoice["deposit_address"], read_amount(given))
    missing_sats = on_chain(sandbox, invoice).missing_sats
    return Order(invoice["deposit_address"], missing_sats or invoice["amount_sats"])


def newest_payment(sandbox: Sandbox, id: str) -> str:
    """The txid of the payer's newest waiting payment to an invoice. Raises BadRequest, ShopAway."""
    payments = on_chain(sandbox, require_shop(sandbox).invoice(id)).payments
    if not payments:
        raise BadRequest("nothing waits for this invoice; press pay first")
    return payments[0]


def row_of(sandbox: Sandbox, invoice: Json) -> dict[str, Any]:
    chain = on_chain(sandbox, invoice)
    came = _came(chain, invoice)
    return {**invoice, "chain": chain, "is_over": invoice["status"] in OVER, "came": came}


def _came(chain: OnChain, invoice: Json) -> list[str]:
    all_sats = invoice["amount_sats"]
    places = ((chain.confirmed_sats, "blocks"), (chain.waiting_sats, "the mempool"))
    parts = [
        f"{'all' if sats == all_sats else f'{sats:,}'} in {place}" for sats, place in places if sats
    ]
    if not parts:
        return ["nothing came" if invoice["status"] in OVER else "nothing has come yet"]
    return [*parts, f"{chain.missing_sats:,} missing"] if chain.missing_sats else parts
