"""Formats payments for spreadsheets, Koinly and beancount."""

import re
from collections.abc import Callable, Iterable, Iterator
from datetime import datetime, tzinfo
from decimal import Decimal
from itertools import chain
from typing import NamedTuple

from btcpay.exports.csv_file import csv_lines, defuse, table
from btcpay.languages.catalogs import catalog
from btcpay.languages.formats import has_decimal_comma
from storage.database import Row

# beancount needs accounts to be opened before their first transaction. The date is that of
# Bitcoin's first block.
ACCOUNTS = "2009-01-03 open Assets:Bitcoin\n2009-01-03 open Income:Sales\n\n"
KOINLY = "Koinly Date,Amount,Currency,Label,Net Worth Amount,Net Worth Currency,Description,TxHash"


def _txid(record: Row) -> str:
    """Returns the txid of the record's first output; "" if it has no output."""
    if not record["outputs"]:
        return ""
    outpoint = str(record["outputs"][0])
    return outpoint.partition(":")[0]


def _purpose(record: Row) -> str:
    """Returns the record's reference and description, joined by a dot.

    Returns "" if the record has neither.
    """
    texts = [record["reference"], record["description"]]
    return " · ".join(text for text in texts if text)


def spreadsheet(records: Iterable[Row], language: str, zone: tzinfo) -> Iterator[str]:
    """Yields a CSV file with the headers, separator and decimal mark of the language.

    The file begins with a byte order mark, so that Excel recognises UTF-8. Digits are
    ASCII and days are in ISO 8601, which spreadsheets of all languages understand.
    Times are in `zone`.
    """
    # The separator that Excel expects in this language, and the one in other languages.
    separator = ";"
    other_separator = ","
    if language in ("en", "ja"):
        separator = ","
        other_separator = ";"
    headers = _headers(catalog(language).gettext)
    lines = (
        _spreadsheet_line(record, language, zone, other_separator) for record in records
    )
    byte_order_mark = "\ufeff"
    return chain([byte_order_mark], table(chain([headers], lines), separator))


def _spreadsheet_line(
    record: Row,
    language: str,
    zone: tzinfo,
    other_separator: str,
) -> list[str]:
    """Returns the cells of a record, in the order of `_headers`.

    Reference and description get an apostrophe before each formula (see `defuse`), also
    after `other_separator`: a spreadsheet in another language would split the cell there.
    """
    received_at = datetime.fromisoformat(record["received_at"]).astimezone(zone)
    status = record["invoice_status"] or ""  # None for records without an invoice
    if status:
        status = catalog(language).gettext(status.capitalize())
    return [
        record["day"],
        f"{received_at:%H:%M}",
        record["invoice_id"],
        defuse(record["reference"] or "", other_separator),
        defuse(record["description"] or "", other_separator),
        status,
        record["currency"],
        _number(record["value_at_receipt"], language),
        _number(record["tip"], language),
        _number(record["amount_btc"], language),
        _txid(record),
    ]


def _number(text: str | None, language: str) -> str:
    """Returns a number with the decimal mark of the language; "" for None."""
    number = text or ""
    if has_decimal_comma(language):
        return number.replace(".", ",")
    return number


def _headers(gettext: Callable[[str], str]) -> list[str]:
    """Returns the headers of the spreadsheet's columns."""
    return [
        gettext("Day"),
        gettext("Time"),
        gettext("Invoice"),
        gettext("Reference"),
        gettext("For"),
        gettext("Status"),
        gettext("Currency"),
        gettext("Amount"),
        gettext("Tip"),
        "BTC",
        gettext("Transaction"),
    ]


def koinly(records: Iterable[Row], _language: str, _zone: tzinfo) -> Iterator[str]:
    """Yields a CSV file for Koinly.

    Source: support.koinly.io, "How to create a custom CSV file", the simple template.
    """
    headers = KOINLY.split(",")
    return table(chain([headers], map(_koinly_line, records)))


def _koinly_line(record: Row) -> list[str]:
    """Returns the cells of a record, in the order of KOINLY."""
    received_at = datetime.fromisoformat(record["received_at"])
    is_refund = record["amount_sats"] < 0
    label = "income"
    if is_refund:
        label = ""
    worth = ""
    worth_currency = ""
    if record["value_at_receipt"]:
        worth = record["value_at_receipt"]
        worth_currency = record["currency"]
    return [
        f"{received_at:%Y-%m-%d %H:%M} UTC",
        record["amount_btc"],
        "BTC",
        label,
        worth,
        worth_currency,
        defuse(_purpose(record)),
        _txid(record),
    ]


def beancount(records: Iterable[Row], _language: str, _zone: tzinfo) -> Iterator[str]:
    """Yields beancount transactions, each valued at the exchange rate of its receipt.

    If that rate is unknown, both postings of the transaction are in bitcoin. A payment
    that settled no invoice has the flag `!`. Source: beancount.github.io, "Language
    Syntax".
    """
    return chain([ACCOUNTS], map(_transaction, records))


def _transaction(record: Row) -> str:
    """Returns a record as a beancount transaction of two postings."""
    btc = record["amount_btc"]
    value = record["value_at_receipt"]
    currency = record["currency"]
    total_price = ""
    income = f"{-Decimal(btc)} BTC"
    if value:
        total_price = f" @@ {abs(Decimal(value))} {currency}"
        income = f"{-Decimal(value)} {currency}"
    is_refund = record["amount_sats"] < 0
    flag = "!"  # incomplete: somebody should look at it
    if record["settled"] or is_refund:
        flag = "*"
    payee = _quote(record["merchant"])
    narration = _quote(_purpose(record))
    link = record["invoice_id"] or record["payment_id"]
    return (
        f"{record['day']} {flag} {payee} {narration} ^{link}\n"
        f"  transaction: {_quote(_txid(record))}\n"
        f"  Assets:Bitcoin  {btc} BTC{total_price}\n"
        f"  Income:Sales  {income}\n\n"
    )


def _quote(text: str) -> str:
    """Returns the text as a beancount string of one line."""
    line = " ".join(text.split())
    escaped = re.sub(r'(["\\])', r"\\\1", line)
    return f'"{escaped}"'


class Format(NamedTuple):
    """A file format for payments.

    `ending` is the end of the file's name. `lines` is the function that formats the
    file: it gets the records, a language and a time zone, and yields pieces of text.
    """

    ending: str
    media_type: str
    lines: Callable[[Iterable[Row], str, tzinfo], Iterator[str]]


def _all_columns(
    records: Iterable[Row], _language: str, _zone: tzinfo
) -> Iterator[str]:
    """Yields a CSV file with all columns, which is the same in every language."""
    return csv_lines(records)


FORMATS = {
    "csv": Format(".csv", "text/csv", _all_columns),
    "spreadsheet": Format(".csv", "text/csv", spreadsheet),
    "koinly": Format("-koinly.csv", "text/csv", koinly),
    "beancount": Format(".beancount", "text/plain", beancount),
}
