"""Loads the payment proofs that an invoice's page of proofs shows."""

import json
from typing import Any

from btcpay.checkout.snapshot import Snapshot
from btcpay.values.errors import NotFound
from btcpay.values.statuses import InvoiceStatus
from btcpay.web.service import Service
from storage.queries import payments

# The public members of a payment proof. All except the name of the format can be read
# from the blockchain.
PROOF = (
    "format",
    "network",
    "txid",
    "script",
    "confirmations",
    "payment",
    "coinbase",
    "headers",
)


def proofs_of(service: Service, snapshot: Snapshot) -> list[dict[str, Any]]:
    """Returns the proofs of the oldest payments of a paid invoice, at most MAX_SHOWN.

    Each has these members:

    - `amount_sats`: the amount of the payment.
    - `height` and `block`: the height and the hash of the payment's block.
    - `document`: the public members of the proof.

    Raises NotFound if the invoice is not paid, or if no payment has a proof.
    """
    row = snapshot.row
    rows = []
    if row.status == InvoiceStatus.PAID:
        rows = service.db.rows(payments.FIRST_PROOFS, invoice_id=row.id)
    if not rows:
        raise NotFound("this invoice has no payment that is proven")
    proofs = []
    for payment in rows:
        document = json.loads(payment.document)
        proof = {
            "amount_sats": payment.amount_sats,
            "height": payment.block_height,
            "block": payment.block_hash,
            "document": {name: document[name] for name in PROOF},
        }
        proofs.append(proof)
    return proofs
