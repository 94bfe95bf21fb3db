"""Every way in which an invoice comes to need attention."""

from typing import Any

from btcpay.sandbox.payer.wallet import double_spends, replace
from storage.queries import attentions
from tests.support.fake_esplora import Json, Terminal, Till


def reason_of(till: Till, invoice: Json) -> str | None:
    row: Any = till.shop.service.db.get_or_none(
        attentions.OF_INVOICE, invoice_id=invoice["id"]
    )
    return row.reason if row else None


def late(till: Till, sats: int | None = None) -> Json:
    """An invoice that expired, and money that came afterwards."""
    invoice = till.shop.invoice(expires_in_hours=1, description="two bags")
    till.clock.move(hours=2)
    till.check()
    till.confirm(invoice, sats)
    return invoice


def short(till: Till) -> Json:
    invoice = till.shop.invoice(expires_in_hours=1)
    till.confirm(invoice, 1_000)
    till.clock.move(hours=2)
    till.check()
    return invoice


def too_much(till: Till, **fields: Any) -> Json:
    invoice = till.shop.invoice(**fields)
    till.confirm(invoice, invoice["amount_sats"] + 294)
    return invoice


def after_cancellation(till: Till) -> Json:
    invoice = till.shop.invoice()
    Terminal(till).run("invoice", "cancel", invoice["id"])
    till.confirm(invoice)
    return invoice


def reorganised(till: Till) -> Json:
    """Its payment was spent otherwise in another block: the money is gone."""
    invoice = till.shop.invoice()
    till.confirm(invoice)
    instead = double_spends(till.sandbox.wallet, 1)
    till.sandbox.chain.reorganise(1, till.now, instead)
    till.check()
    return invoice


def dust_missing(till: Till) -> Json:
    invoice = till.shop.invoice()
    till.confirm(invoice, invoice["amount_sats"] - 293)
    return invoice


def vanished(till: Till) -> Json:
    """The whole sum waited in time; then its coins went elsewhere."""
    invoice = till.shop.invoice(expires_in_hours=1)
    txid = till.pay(invoice)
    till.look_for(invoice)
    replace(till.sandbox.wallet, till.now, txid, away=True)
    till.look_for(invoice)
    till.clock.move(hours=2)
    till.check(), till.check()
    return invoice


WAYS = [late, short, too_much, after_cancellation, reorganised, dust_missing, vanished]
NAMES = ["paid_late", *(way.__name__ for way in WAYS[1:])]
