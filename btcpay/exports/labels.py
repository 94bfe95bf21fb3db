"""Exports labels for wallets (BIP329): what each payment and address was for."""

from collections.abc import Iterator

import orjson

from btcpay import hooks
from btcpay.exports.payments import PAGE
from storage.database import Database, Row, group_by
from storage.models import Invoice, Merchant, Output
from storage.queries.lists import exports, keyset

# BIP329 recommends that wallets store labels of up to this length.
MAX_LABEL_LENGTH = 255


def labels(db: Database, merchant: Merchant, page: int = PAGE) -> Iterator[Row]:
    """Yields labels for the address, the transactions and the outputs of each invoice.

    Then yields the labels that parts (optional plug-ins) add. `page` is the number of
    invoices that are loaded at a time. The field `origin` of BIP329 is omitted, since
    the account key does not contain the fingerprint of its wallet.
    """
    pages = keyset.pages(db, exports.INVOICES, page, merchant_id=merchant.id)
    for invoices in pages:
        outputs = db.rows(
            exports.OUTPUTS_OF_INVOICES,
            merchant_id=merchant.id,
            first_ms=invoices[0].created_ms,
            last_ms=invoices[-1].created_ms,
        )
        outputs_by_invoice = group_by(outputs, lambda output: output.invoice_id)
        for invoice in invoices:
            yield from _labels_of(invoice, outputs_by_invoice[invoice.id])
    for part in hooks.of(hooks.Exports):
        yield from part.labels(db, merchant)


def label_lines(db: Database, merchant: Merchant) -> Iterator[str]:
    """Yields the labels as JSON Lines."""
    for label in labels(db, merchant):
        yield orjson.dumps(label).decode() + "\n"


def _labels_of(invoice: Invoice, outputs: list[Output]) -> Iterator[Row]:
    """Yields the labels of an invoice's address, transactions and outputs.

    Their text is the reference and the description in one line. If the invoice has
    neither, the text is its id.
    """
    words = f"{invoice.reference or ''} {invoice.description or ''}".split()
    text = " ".join(words) or invoice.id
    yield label_of("addr", invoice.deposit_address, text)
    txids = dict.fromkeys(output.txid for output in outputs)  # each once, in order
    for txid in txids:
        yield label_of("tx", txid, text)
    for output in outputs:
        yield label_of("output", f"{output.txid}:{output.vout}", text)


def label_of(kind: str, ref: str, text: str) -> Row:
    """Returns a label in the format of BIP329, truncated to MAX_LABEL_LENGTH.

    `kind` is "addr", "tx", "input" or "output". `ref` is the address, the txid, or the
    input or output as "txid:index".
    """
    return {"type": kind, "ref": ref, "label": text[:MAX_LABEL_LENGTH]}
