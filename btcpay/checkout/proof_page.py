"""The proofs of a paid invoice, as its payer may see them."""

import json
from typing import Any

from btcpay.checkout.snapshot import Snapshot
from btcpay.values.errors import NotFound
from btcpay.web.service import Service
from storage.queries import payments

# An allow-list, as an invoice's page has: all of it is in the blockchain, but the format's name.
SHOWN = "format network txid script confirmations payment coinbase headers"


def proofs_of(service: Service, snapshot: Snapshot) -> list[dict[str, Any]]:
    """Of the oldest payments to its address, MAX_SHOWN at most. Raises NotFound for none."""
    row = snapshot.row
    kept = service.db.rows(payments.FIRST_PROOFS, invoice_id=row.id) if row.status == "paid" else []
    if not kept:
        raise NotFound("this invoice has no payment that is proven")
    documents = [json.loads(payment.document) for payment in kept]
    return [
        {
            "amount_sats": payment.amount_sats,
            "height": payment.block_height,
            "block": payment.block_hash,
            "document": {name: document[name] for name in SHOWN.split()},
        }
        for payment, document in zip(kept, documents, strict=True)
    ]
