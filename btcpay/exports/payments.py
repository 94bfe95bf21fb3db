"""Payments for bookkeepers, and labels for wallets (BIP329), read page by page."""

import csv
import io
import json
import re
import unicodedata
from collections.abc import Iterable, Iterator
from decimal import Decimal
from heapq import merge
from itertools import chain, pairwise
from typing import Protocol

import orjson

from btcpay import hooks
from btcpay.values.money import SATS_PER_BTC, value_of
from btcpay.values.texts import is_unseen
from btcpay.values.times import date_of, day_of, iso_ms, zone_of
from storage.database import Database, Row, Values, grouped
from storage.models import Invoice, Merchant, Output
from storage.queries.lists import exports, keyset
from storage.queries.payments import PaymentWith
from storage.statement import as_dict, blank

COLUMNS = (
    "day received_at recorded_at merchant invoice_id invoice_status settled reference description"
    " customer_email customer_name customer_note address amount_sats amount_btc currency"
    " value_at_receipt usd_at_receipt usd_at_quote"
    " invoice_usd_quote tip tip_currency outputs block_height block_hash payment_id bill_id"
)
# Our own numbers, which may begin with a minus sign; no formula can be in them.
SUMS = [
    "amount_sats",
    "amount_btc",
    "value_at_receipt",
    "usd_at_receipt",
    "usd_at_quote",
]
PAGE = 500  # payments in memory at a time
MAX_LABEL_LENGTH = 255  # BIP329 advises wallets to keep this much
END = 2**62  # later than any stored time

# OWASP, "CSV Injection": characters that make a spreadsheet calculate, in ASCII and full width, tab
# and CR, also after blanks and after the quotes that open a cell in which they are the first.
_CALCULATES = r"(?=[\s\"]*[=+\-@\t\r\uff1d\uff0b\uff0d\uff20])"
# A cell begins where ours does, and where a reader with another separator splits it.
_BREAKS = "\t\r\n\x0b\x0c\x1c\x1d\x1e\x85\u2028\u2029"
_FORMULA = {
    mark: re.compile(rf"\A(?=\n)|(?:\A|(?<=[{mark}{_BREAKS}])){_CALCULATES}")
    for mark in ",;"
}
_UNSEEN_KINDS = ("Cc", "Cn")  # controls, and signs that no table of Python's has


class _Seen:
    """A table for str.translate: a blank for each sign that cannot be seen, but ends of cells."""

    def __getitem__(self, code: int) -> str:
        sign = chr(code)
        if sign in _BREAKS:
            return sign
        is_hidden = is_unseen(sign) or unicodedata.category(sign) in _UNSEEN_KINDS
        if is_hidden:
            return " "
        return sign


_SEEN = _Seen()


def defuse(text: str, mark: str = ";") -> str:
    """The text as a cell that no spreadsheet runs: a formula gets an apostrophe before it.

    `mark`: the separator of other locales, at which one of them splits this file; a tab and the
    end of a line split it everywhere. Signs that cannot be seen are looked through.
    """
    seen = text.translate(_SEEN)
    cuts = [found.start() for found in _FORMULA[mark].finditer(seen)]
    parts = (text[start:end] for start, end in pairwise([0, *cuts, len(text)]))
    return "'".join(parts)


def payment_records(
    db: Database,
    merchant: Merchant,
    from_ms: int = 0,
    before_ms: int = END,
    page: int = PAGE,
) -> Iterator[Row]:
    """The merchant's payments with from_ms <= received < before_ms, oldest first, by COLUMNS.

    Among them is what parts say was moved then.
    """
    sources = [_came(db, merchant, from_ms, before_ms, page)]
    for part in hooks.of(hooks.Exports):
        sources.append(part.lines(db, merchant, from_ms, before_ms, page))
    return merge(*sources, key=lambda record: str(record["received_at"]))


class Moved(Protocol):
    """A row of money that came or went."""

    @property
    def id(self) -> str: ...
    @property
    def created_at(self) -> int: ...


def line_of(merchant: Merchant, row: Moved, amount_sats: int) -> Row:
    """All COLUMNS: the row's own of that name, and values that all kinds have in the same way."""
    own = as_dict(row)
    return {name: own.get(name) for name in COLUMNS.split()} | {
        "day": date_of(day_of(row.created_at, zone_of(merchant.timezone))).isoformat(),
        "received_at": iso_ms(row.created_at),
        "merchant": merchant.name,
        "amount_sats": amount_sats,
        "amount_btc": f"{Decimal(amount_sats) / SATS_PER_BTC:.8f}",
        "payment_id": row.id,
    }


def _came(
    db: Database, merchant: Merchant, from_ms: int, before_ms: int, page: int
) -> Iterator[Row]:
    of: Values = {"merchant_id": merchant.id, "before": before_ms}
    for rows in keyset.pages(db, exports.PAYMENTS, page, from_ms, **of):
        of |= {"first_at": rows[0].created_at, "last_at": rows[-1].created_at}
        of_page = db.rows(exports.OUTPUTS_OF_PAGE, **of)
        outputs = grouped(of_page, lambda output: output.payment_id)
        events = db.rows(exports.RECORDS_OF_PAGE, **of)
        recorded = {
            json.loads(event.detail)["id"]: event.happened_at for event in events
        }
        for row in rows:
            yield _record(merchant, row, outputs[row.id], recorded.get(row.id))


def _record(
    merchant: Merchant, row: PaymentWith, outputs: list[Output], recorded_at: int | None
) -> Row:
    block = outputs[0] if outputs else blank(Output)
    # With the payment that completed the invoice alone: a sum has each tip once.
    has_tip = Decimal(row.tip or 0) and row.tx_hash == row.completed_by
    return line_of(merchant, row, row.amount_sats) | {
        "recorded_at": None if recorded_at is None else iso_ms(recorded_at),
        "invoice_id": row.address_invoice_id,
        "invoice_status": row.status,
        "settled": row.invoice_id is not None,
        "address": row.deposit_address,
        "usd_at_receipt": row.amount_usd_at_receipt,
        "usd_at_quote": str(value_of(row.amount_sats, Decimal(row.price_usd), "USD")),
        "invoice_usd_quote": row.amount_usd_quote,
        "tip": row.tip if has_tip else None,
        "tip_currency": row.invoice_currency if has_tip else None,
        "outputs": [f"{output.txid}:{output.vout}" for output in outputs],
        "block_height": block.block_height,
        "block_hash": block.block_hash,
    }


def csv_lines(records: Iterable[Row]) -> Iterator[str]:
    """The file, line by line (RFC 4180): the names of COLUMNS, then a record each."""
    return table(chain([COLUMNS.split()], map(cells, records)))


def table(lines: Iterable[list[str]], separator: str = ",") -> Iterator[str]:
    for line in lines:
        file = io.StringIO(newline="")
        csv.writer(file, delimiter=separator).writerow(line)
        yield file.getvalue()


def cells(record: Row) -> list[str]:
    """A line's cells: None is empty, all outputs are in one cell."""
    return [_cell(record[name], name in SUMS) for name in COLUMNS.split()]


def _cell(value: object, is_sum: bool) -> str:
    if isinstance(value, bool):
        if value:
            return "yes"
        return "no"
    if isinstance(value, list):
        return " ".join(value)
    text = "" if value is None else str(value)
    if is_sum:
        return text
    return defuse(text)


def labels(db: Database, merchant: Merchant, page: int = PAGE) -> Iterator[Row]:
    """A merchant's labels: for each invoice its address, then what was paid to it; then parts'.

    There is no `origin`: an account key does not have the fingerprint of its wallet's master key.
    """
    of: Values = {"merchant_id": merchant.id}
    for rows in keyset.pages(db, exports.INVOICES, page, **of):
        of |= {"first_at": rows[0].created_at, "last_at": rows[-1].created_at}
        outputs = db.rows(exports.OUTPUTS_OF_INVOICES, **of)
        paid = grouped(outputs, lambda output: output.invoice_id)
        for row in rows:
            yield from _of_invoice(row, paid[row.id])
    for part in hooks.of(hooks.Exports):
        yield from part.labels(db, merchant)


def label_lines(db: Database, merchant: Merchant) -> Iterator[str]:
    for label in labels(db, merchant):
        yield orjson.dumps(label).decode() + "\n"


def _of_invoice(row: Invoice, outputs: list[Output]) -> Iterator[Row]:
    # Reference and description in one line, or the id: a label must say something.
    text = " ".join(f"{row.reference or ''} {row.description or ''}".split()) or row.id
    yield label_of("addr", row.deposit_address, text)
    for txid in dict.fromkeys(output.txid for output in outputs):
        yield label_of("tx", txid, text)
    for output in outputs:
        yield label_of("output", f"{output.txid}:{output.vout}", text)


def label_of(kind: str, ref: str, text: str) -> Row:
    return {"type": kind, "ref": ref, "label": text[:MAX_LABEL_LENGTH]}
