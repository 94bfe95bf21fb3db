"""Payments as other programs take them: spreadsheets, Koinly, beancount."""

import re
from collections.abc import Callable, Iterable, Iterator
from datetime import datetime, tzinfo
from decimal import Decimal
from itertools import chain
from typing import NamedTuple

from btcpay.exports.payments import csv_lines, defuse, table
from btcpay.languages.catalogs import catalog
from btcpay.languages.formats import signs
from storage.database import Row

# An account is opened before its first payment: on the day of the first block.
ACCOUNTS = "2009-01-03 open Assets:Bitcoin\n2009-01-03 open Income:Sales\n\n"
KOINLY = "Koinly Date,Amount,Currency,Label,Net Worth Amount,Net Worth Currency,Description,TxHash"


def _txid(record: Row) -> str:
    if record["outputs"]:
        return str(record["outputs"][0]).partition(":")[0]
    return ""


def _words(record: Row) -> str:
    return " · ".join(filter(None, (record["reference"], record["description"])))


def spreadsheet(records: Iterable[Row], language: str, zone: tzinfo) -> Iterator[str]:
    """A table in that language's words and marks, as its spreadsheets open it.

    It begins with the mark by which Excel knows UTF-8. Digits are western; every language's
    spreadsheet reads a day that is written as in ISO 8601.
    """
    gettext = catalog(language).gettext
    mark = "," if signs(language)[10] == "," else "."
    heads = [gettext("Day"), gettext("Time"), gettext("Invoice"), gettext("Reference")]
    heads += [gettext("For"), gettext("Status"), gettext("Currency"), gettext("Amount")]
    heads += [gettext("Tip"), "BTC", gettext("Transaction")]

    # The separator that Excel expects there, and the one that it expects elsewhere.
    separator, other = (",", ";") if language in ("en", "ja") else (";", ",")

    def cells(record: Row) -> list[str]:
        at = datetime.fromisoformat(record["received_at"]).astimezone(zone)
        texts = [
            defuse(record[name] or "", other) for name in ("reference", "description")
        ]
        sums = [
            record[name] or "" for name in ("value_at_receipt", "tip", "amount_btc")
        ]
        value, tip, btc = (text.replace(".", mark) for text in sums)
        status = record["invoice_status"]  # what is of no invoice has none
        texts += [status and gettext(status.capitalize()), record["currency"]]
        began = [record["day"], f"{at:%H:%M}", record["invoice_id"]]
        return [*began, *texts, value, tip, btc, _txid(record)]

    return chain(["\ufeff"], table(chain([heads], map(cells, records)), separator))


def koinly(records: Iterable[Row], _language: str, _zone: tzinfo) -> Iterator[str]:
    """Koinly's simple template: support.koinly.io, "How to create a custom CSV file"."""

    def cells(record: Row) -> list[str]:
        at = datetime.fromisoformat(record["received_at"])
        value = record["value_at_receipt"]
        coins = [
            record["amount_btc"],
            "BTC",
            "" if record["amount_sats"] < 0 else "income",
        ]
        worth = [value, record["currency"]] if value else ["", ""]
        return [
            f"{at:%Y-%m-%d %H:%M} UTC",
            *coins,
            *worth,
            defuse(_words(record)),
            _txid(record),
        ]

    return table(chain([KOINLY.split(",")], map(cells, records)))


def beancount(records: Iterable[Row], _language: str, _zone: tzinfo) -> Iterator[str]:
    """Transactions at their value at receipt; without one, bitcoin stand on both sides.

    What settles no invoice has the flag `!`. Source: beancount.github.io, "Language Syntax".
    """
    return chain([ACCOUNTS], map(_transaction, records))


def _transaction(record: Row) -> str:
    btc = record["amount_btc"]
    value = record["value_at_receipt"]
    currency = record["currency"]
    worth = f" @@ {abs(Decimal(value))} {currency}" if value else ""
    income = f"{-Decimal(value)} {currency}" if value else f"{-Decimal(btc)} BTC"
    flag = "*" if record["settled"] or record["amount_sats"] < 0 else "!"
    said = f"{_quoted(record['merchant'])} {_quoted(_words(record))}"
    return (
        f"{record['day']} {flag} {said} ^{record['invoice_id'] or record['payment_id']}\n"
        f"  transaction: {_quoted(_txid(record))}\n"
        f"  Assets:Bitcoin  {btc} BTC{worth}\n  Income:Sales  {income}\n\n"
    )


def _quoted(text: str) -> str:
    return '"' + re.sub(r'(["\\])', r"\\\1", " ".join(text.split())) + '"'


class Format(NamedTuple):
    """A file's ending and media type, and its lines in a language and a time zone."""

    ending: str
    media_type: str
    lines: Callable[[Iterable[Row], str, tzinfo], Iterator[str]]


FORMATS = {
    "csv": Format(
        ".csv", "text/csv", lambda records, _language, _zone: csv_lines(records)
    ),
    "spreadsheet": Format(".csv", "text/csv", spreadsheet),
    "koinly": Format("-koinly.csv", "text/csv", koinly),
    "beancount": Format(".beancount", "text/plain", beancount),
}
