"""Labels for wallets (BIP329): who paid for what."""

from collections.abc import Iterator

import orjson

from btcpay import hooks
from btcpay.exports.payments import PAGE
from storage.database import Database, Row, Values, grouped
from storage.models import Invoice, Merchant, Output
from storage.queries.lists import exports, keyset

# BIP329 advises wallets to keep so many characters.
MAX_LABEL_LENGTH = 255


def labels(db: Database, merchant: Merchant, page: int = PAGE) -> Iterator[Row]:
    """The merchant's labels: for each invoice its address and its payments, then those of parts.

    There is no `origin`: an account key does not have the fingerprint of its wallet's master key.
    """
    span: Values = {"merchant_id": merchant.id}
    for rows in keyset.pages(db, exports.INVOICES, page, **span):
        span |= {"first_ms": rows[0].created_ms, "last_ms": rows[-1].created_ms}
        outputs = db.rows(exports.OUTPUTS_OF_INVOICES, **span)
        by_invoice = grouped(outputs, lambda output: output.invoice_id)
        for row in rows:
            yield from _labels_of(row, by_invoice[row.id])
    for part in hooks.of(hooks.Exports):
        yield from part.labels(db, merchant)


def label_lines(db: Database, merchant: Merchant) -> Iterator[str]:
    """The labels as lines of JSON."""
    for label in labels(db, merchant):
        yield orjson.dumps(label).decode() + "\n"


def _labels_of(row: Invoice, outputs: list[Output]) -> Iterator[Row]:
    # Reference and description in one line, or the id: a label must say something.
    words = f"{row.reference or ''} {row.description or ''}".split()
    text = " ".join(words) or row.id
    yield label_of("addr", row.deposit_address, text)
    for txid in dict.fromkeys(output.txid for output in outputs):
        yield label_of("tx", txid, text)
    for output in outputs:
        yield label_of("output", f"{output.txid}:{output.vout}", text)


def label_of(kind: str, ref: str, text: str) -> Row:
    """`kind`: addr, tx, input or output; `ref` names it, an output as "txid:vout"."""
    return {"type": kind, "ref": ref, "label": text[:MAX_LABEL_LENGTH]}
