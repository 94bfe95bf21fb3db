"""The proofs of a paid invoice, as its payer may see them: on a page, and as a file."""

import json
from typing import Any

from btcpay.checkout.snapshot import Snapshot
from btcpay.values.errors import NotFound
from btcpay.web.service import Service
from storage.queries import payments

# An allow-list, as the page's: all of it stands in the blockchain, but the name of the format.
SHOWN = "format network txid script confirmations payment coinbase headers"


def documents_of(service: Service, snapshot: Snapshot) -> list[dict[str, Any]]:
    """What `btcpay invoice show --proof` shows, at most MAX_PROVEN. Raises NotFound for none."""
    return [payment["document"] for payment in proofs_of(service, snapshot)["payments"]]


def proofs_of(service: Service, snapshot: Snapshot) -> dict[str, Any]:
    """The values for the template; the oldest payments first. Raises NotFound where none is proven.

    `elsewhere`: by host, the page of the public explorers to which a block's hash is added; never
    the shop's own explorers, whose addresses are nobody's business.
    """
    row, network = snapshot.row, service.settings.network
    kept = service.db.rows(payments.PROVEN, invoice_id=row.id) if row.status == "paid" else []
    if not kept:
        raise NotFound("this invoice has no payment that is proven")
    pages = [root.removesuffix("api") for root in network.explorers if root.endswith("/api")]
    return {
        "invoice": {"id": row.id, "address": row.deposit_address},
        "network": {"name": network.name, "floor": network.max_target_bits},
        "elsewhere": {page.split("/")[2]: f"{page}block/" for page in pages},
        "are_all": len(kept) < payments.MAX_PROVEN,
        "payments": [
            {
                "txid": payment.txid,
                "amount_sats": payment.amount_sats,
                "height": payment.block_height,
                "block": payment.block_hash,
                "document": _shown(payment.document),
            }
            for payment in kept
        ],
    }


def _shown(document: str) -> dict[str, Any]:
    whole = json.loads(document)
    return {name: whole[name] for name in SHOWN.split()}
