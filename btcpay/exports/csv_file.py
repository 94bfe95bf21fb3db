"""Formats payments as CSV (RFC 4180), protected against formulas in spreadsheets."""

import csv
import io
import re
import unicodedata
from collections.abc import Iterable, Iterator
from itertools import chain, pairwise

from btcpay.exports.payments import COLUMNS
from btcpay.values.texts import is_unseen
from storage.database import Row

# Columns with numbers that this program computes. They may begin with a minus sign, and cannot
# contain a formula.
SUMS = [
    "amount_sats",
    "amount_btc",
    "value_at_receipt",
    "usd_at_receipt",
    "usd_at_quote",
]
# The start of a formula (OWASP, "CSV Injection"): one of = + - @ in ASCII or full width, tab or CR,
# perhaps after blanks and opening quotes.
_FORMULA_START = r"(?=[\s\"]*[=+\-@\t\r\uff1d\uff0b\uff0d\uff20])"
# Characters at which some program starts a new cell, besides the separators.
_BREAKS = "\t\r\n\x0b\x0c\x1c\x1d\x1e\x85\u2028\u2029"


def _formula_pattern(separator: str) -> re.Pattern[str]:
    """Returns the pattern of the places at which an apostrophe must be inserted."""
    starts_with_line_feed = r"\A(?=\n)"
    start_of_cell = rf"(?:\A|(?<=[{separator}{_BREAKS}]))"
    return re.compile(f"{starts_with_line_feed}|{start_of_cell}{_FORMULA_START}")


_FORMULA = {separator: _formula_pattern(separator) for separator in ",;"}
# Unicode categories of control characters and unassigned characters.
_UNSEEN_KINDS = ("Cc", "Cn")


class _VisibleSigns:
    """A table for str.translate that replaces invisible characters by blanks.

    Characters at which a program may start a new cell stay.
    """

    def __getitem__(self, code: int) -> str:
        sign = chr(code)
        if sign in _BREAKS:
            return sign
        if is_unseen(sign) or unicodedata.category(sign) in _UNSEEN_KINDS:
            return " "
        return sign


_VISIBLE_SIGNS = _VisibleSigns()


def defuse(text: str, other_separator: str = ";") -> str:
    """Puts an apostrophe before each text that a spreadsheet could run as a formula.

    A formula is a text that begins with a sign such as `=`. It may stand at the start
    of the cell, after a tab or a line break, or after `other_separator`, at which
    spreadsheets of another locale would split the cell. Invisible characters before the
    sign do not hide it.
    """
    visible = text.translate(_VISIBLE_SIGNS)  # as long as `text`
    formulas = _FORMULA[other_separator].finditer(visible)
    starts = [formula.start() for formula in formulas]
    bounds = [0, *starts, len(text)]
    pieces = [text[start:end] for start, end in pairwise(bounds)]
    return "'".join(pieces)


def csv_lines(records: Iterable[Row]) -> Iterator[str]:
    """Yields the lines of the CSV file: a header with COLUMNS, then the records."""
    header = COLUMNS.split()
    return table(chain([header], map(cells, records)))


def table(lines: Iterable[list[str]], separator: str = ",") -> Iterator[str]:
    """Yields a line of CSV (RFC 4180) for each list of cells."""
    for line_cells in lines:
        file = io.StringIO(newline="")
        csv.writer(file, delimiter=separator).writerow(line_cells)
        yield file.getvalue()


def cells(record: Row) -> list[str]:
    """Returns a record's cells as text, in the order of COLUMNS.

    None becomes an empty cell. A list, such as the outputs, becomes one cell with its
    items separated by blanks.
    """
    return [_cell(record[name], is_sum=name in SUMS) for name in COLUMNS.split()]


def _cell(value: object, *, is_sum: bool) -> str:
    """Returns a value as the text of a cell.

    A sum is one of the columns SUMS; it needs no protection by `defuse`.
    """
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
