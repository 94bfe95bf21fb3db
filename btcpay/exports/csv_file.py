"""Payments as a table that spreadsheets and bookkeepers' programs read (RFC 4180)."""

import csv
import io
import re
import unicodedata
from collections.abc import Iterable, Iterator
from itertools import chain, pairwise

from btcpay.exports.payments import COLUMNS
from btcpay.values.texts import is_unseen
from storage.database import Row

# Our own numbers, which may begin with a minus sign; no formula can be in them.
SUMS = [
    "amount_sats",
    "amount_btc",
    "value_at_receipt",
    "usd_at_receipt",
    "usd_at_quote",
]
# OWASP, "CSV Injection": characters that make a spreadsheet calculate, in ASCII and full width, tab
# and CR, also after blanks and after the quotes that open a cell in which they are the first.
_CALCULATES = r"(?=[\s\"]*[=+\-@\t\r\uff1d\uff0b\uff0d\uff20])"
# A cell begins where ours does, and where a reader with another separator splits it.
_BREAKS = "\t\r\n\x0b\x0c\x1c\x1d\x1e\x85\u2028\u2029"
_FORMULA = {
    mark: re.compile(rf"\A(?=\n)|(?:\A|(?<=[{mark}{_BREAKS}])){_CALCULATES}")
    for mark in ",;"
}
# Controls, and signs that no table of Python's has.
_UNSEEN_KINDS = ("Cc", "Cn")


class _VisibleSigns:
    """A table for str.translate: a blank for each sign that cannot be seen, but ends of cells."""

    def __getitem__(self, code: int) -> str:
        sign = chr(code)
        if sign in _BREAKS:
            return sign
        if is_unseen(sign) or unicodedata.category(sign) in _UNSEEN_KINDS:
            return " "
        return sign


_VISIBLE_SIGNS = _VisibleSigns()


def defuse(text: str, mark: str = ";") -> str:
    """The text as a cell that no spreadsheet runs: a formula gets an apostrophe before it.

    `mark`: the separator of other locales, at which one of them splits this file; a tab and the
    end of a line split it everywhere. A formula is found behind signs that cannot be seen, too.
    """
    visible = text.translate(_VISIBLE_SIGNS)
    starts = [formula.start() for formula in _FORMULA[mark].finditer(visible)]
    bounds = [0, *starts, len(text)]
    pieces = [text[start:end] for start, end in pairwise(bounds)]
    return "'".join(pieces)


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
    if value is None:
        return ""
    if isinstance(value, bool):
        if value:
            return "yes"
        return "no"
    if isinstance(value, list):
        return " ".join(value)
    if is_sum:
        return str(value)
    return defuse(str(value))
