"""What was seen and does not count yet, by invoice. Pure."""

from collections.abc import Sequence
from dataclasses import dataclass
from decimal import Decimal

from btcpay.invoices.status import rules_for
from btcpay.settings.settings import Settings
from btcpay.values.money import usd_for_sats
from storage.database import Row


@dataclass(frozen=True)
class Coming:
    """What comes to one invoice; `usd` at the price that it was made with.

    `confirmations`: of the youngest part, 0 while that waits for a block; `needed` of them.
    """

    invoice_id: str
    description: str | None
    amount_sats: int
    usd: Decimal
    seen_ms: int
    confirmations: int
    needed: int


def by_invoice(rows: Sequence[Row], tip_height: int, settings: Settings) -> list[Coming]:
    """Each invoice once, in the order of the rows: those of `today.ON_ITS_WAY`."""
    outputs: dict[str, list[Row]] = {}
    for row in rows:
        outputs.setdefault(row["invoice_id"], []).append(row)
    return [_coming(of_one, tip_height, settings) for of_one in outputs.values()]


def _coming(outputs: Sequence[Row], tip_height: int, settings: Settings) -> Coming:
    invoice = outputs[0]
    sats = sum(row["amount_sats"] for row in outputs)
    heights = [row["block_height"] for row in outputs]
    youngest = 0 if None in heights else max(0, tip_height - max(heights) + 1)
    return Coming(
        invoice_id=invoice["invoice_id"],
        description=invoice["description"],
        amount_sats=sats,
        usd=usd_for_sats(sats, Decimal(invoice["price_usd"])),
        seen_ms=min(row["first_seen_at"] for row in outputs),
        confirmations=youngest,
        needed=rules_for(settings, invoice).confirmations,
    )
