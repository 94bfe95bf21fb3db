"""The addresses of invoices, and the scripts by which blocks are searched for them."""

from storage.database import slot
from storage.models import Invoice, Proof

OF_MERCHANT = (
    Invoice.select(
        Invoice.id,
        Invoice.address_index,
        Invoice.deposit_address,
        Invoice.script,
        Invoice.created_at,
    )
    .where((Invoice.merchant_id == slot("merchant_id")) & (Invoice.address_index > slot("after")))
    .order_by(Invoice.address_index)
    .limit(slot("limit"))
)
SET_SCRIPT = Invoice.update({Invoice.script: slot("script")}).where(Invoice.id == slot("id"))
PROOFS = Proof.select(Proof.document).where(Proof.invoice_id == slot("id"))
