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
    """What has come to an address: in satoshis, by what waits and by the blocks' heights."""

    waiting_sats: int
    confirmed_sats: int
    heights: tuple[int, ...]
    payments: tuple[str, ...]  # what the payer's wallet has sent and could replace, newest first

    def missing_sats(self, amount_sats: int) -> int:
        return max(0, amount_sats - self.waiting_sats - self.confirmed_sats)


def on_chain(sandbox: Sandbox, address: str) -> OnChain:
    """Hold the chain's lock. Raises BadRequest for what is no regtest address."""
    script, own = script_of(address), sandbox.wallet.payments()
    waiting, confirmed = sandbox.chain.waiting_of(script), sandbox.chain.confirmed_of(script)
    return OnChain(
        _sum(waiting, script),
        _sum(confirmed, script),
        tuple(sorted({found.height for found in confirmed if found.height is not None})),
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
    """Field `amount`, else the invoice's rest or all of it again. Raises BadRequest, ShopAway."""
    if not (id := field(form, "invoice")):
        return read_order(form)
    invoice = require_shop(sandbox).invoice(id)
    address, amount_sats = invoice["deposit_address"], invoice["amount_sats"]
    if given := field(form, "amount"):
        return Order(address, read_amount(given))
    with sandbox.chain.lock:
        return Order(address, on_chain(sandbox, address).missing_sats(amount_sats) or amount_sats)


def newest_payment(sandbox: Sandbox, id: str) -> str:
    """The txid of the payer's newest waiting payment to an invoice. Raises BadRequest, ShopAway."""
    address = require_shop(sandbox).invoice(id)["deposit_address"]
    with sandbox.chain.lock:
        payments = on_chain(sandbox, address).payments
    if not payments:
        raise BadRequest("nothing waits for this invoice; press pay first")
    return payments[0]


def row_of(sandbox: Sandbox, invoice: Json) -> dict[str, Any]:
    """Hold the chain's lock."""
    chain = on_chain(sandbox, invoice["deposit_address"])
    return {
        **invoice,
        "chain": chain,
        "missing_sats": chain.missing_sats(invoice["amount_sats"]),
        "is_over": invoice["status"] in OVER,
        "came": _came(chain, invoice),
    }


def _came(chain: OnChain, invoice: Json) -> list[str]:
    all_sats = invoice["amount_sats"]
    blocks = ", ".join(f"{height:,}" for height in chain.heights)
    places = ((chain.confirmed_sats, f"block {blocks}"), (chain.waiting_sats, "the mempool"))
    parts = [
        f"{'all' if sats == all_sats else f'{sats:,}'} in {place}" for sats, place in places if sats
    ]
    if not parts:
        return ["nothing came" if invoice["status"] in OVER else "nothing has come yet"]
    missing_sats = chain.missing_sats(all_sats)
    return [*parts, f"{missing_sats:,} missing"] if missing_sats else parts
