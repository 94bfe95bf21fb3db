"""Whom explorers are asked for, so that they name blocks: coins, and histories of addresses."""

from peewee import fn

from storage.database import slot
from storage.models import Invoice, Output
from storage.queries.invoices import MAY_BE_PAID

# Coins that were there before blocks were followed, and were not asked for since: has an explorer
# seen them spent? And all coins, the longest unasked first.
_COIN = Output.select(Output.invoice_id, Output.txid, Output.vout, Output.block_height).where(
    Output.block_height.is_null(False) & Output.spent_height.is_null()
)
OLD_COINS = _COIN.where(Output.asked_at < 0).limit(slot("limit"))
COINS = (
    _COIN.where(Output.asked_at < slot("asked_before"))
    .order_by(Output.asked_at)
    .limit(slot("limit"))
)
ASKED = Output.update({Output.asked_at: slot("at")}).where(
    (Output.invoice_id == slot("invoice_id"))
    & (Output.txid == slot("txid"))
    & (Output.vout == slot("vout"))
)

# Whose histories name blocks: open or lately finished invoices, the longest unasked first.
HISTORIES = (
    Invoice.select(Invoice.id, Invoice.deposit_address)
    .where(MAY_BE_PAID & (fn.COALESCE(Invoice.history_at, 0) < slot("asked_before")))
    .order_by(fn.COALESCE(Invoice.history_at, 0), Invoice.seq)
    .limit(slot("limit"))
)
HISTORY_ASKED = Invoice.update({Invoice.history_at: slot("at")}).where(Invoice.id == slot("id"))
