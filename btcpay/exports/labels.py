"""Labels for wallets: what each address, transaction and output was for (BIP329)."""

from collections.abc import Container, Iterator

import orjson

from btcpay.exports.payments import PAGE
from storage.database import Database, Row, Values, grouped
from storage.models import Invoice, Merchant, Output
from storage.queries.lists import exports, keyset

MAX_LENGTH = 255  # BIP329 advises wallets to keep this much


def labels(db: Database, merchant: Merchant, page: int = PAGE) -> Iterator[Row]:
    """A merchant's records: for each invoice its address, then what was paid to it.

    A transaction that pays several invoices comes last, once, with all their labels. There is no
    `origin`: an account key does not have the fingerprint of its wallet's master key.
    """
    of: Values = {"merchant_id": merchant.id}
    shared = grouped(db.rows(exports.SHARED_TRANSACTIONS, **of), lambda row: row.txid)
    for rows in keyset.pages(db, exports.INVOICES, page, **of):
        of |= {"first_at": rows[0].created_at, "last_at": rows[-1].created_at}
        outputs = db.rows(exports.OUTPUTS_OF_INVOICES, **of)
        paid = grouped(outputs, lambda output: output.invoice_id)
        for row in rows:
            yield from _of_invoice(row, paid[row.id], shared)
    for txid, invoices in shared.items():
        yield _label("tx", txid, "; ".join(map(_text_of, invoices)))


def label_lines(db: Database, merchant: Merchant) -> Iterator[str]:
    for label in labels(db, merchant):
        yield orjson.dumps(label).decode() + "\n"


def _of_invoice(row: Invoice, outputs: list[Output], shared: Container[str]) -> Iterator[Row]:
    text = _text_of(row)
    yield _label("addr", row.deposit_address, text)
    for txid in dict.fromkeys(output.txid for output in outputs):
        if txid not in shared:
            yield _label("tx", txid, text)
    for output in outputs:
        yield _label("output", f"{output.txid}:{output.vout}", text)


def _text_of(row: Invoice | exports.SharedTransaction) -> str:
    """Reference and description in one line, or the id: a label must say something."""
    return " ".join(f"{row.reference or ''} {row.description or ''}".split()) or row.id


def _label(kind: str, ref: str, text: str) -> Row:
    return {"type": kind, "ref": ref, "label": text[:MAX_LENGTH]}
