"""No stranger's text begins a cell that calculates, whichever separator a file is read with."""

import csv
import io
import random
from datetime import UTC

import pytest

from btcpay.exports.csv_file import SUMS
from btcpay.exports.ledgers import FORMATS
from btcpay.exports.payments import COLUMNS

TEXTS = [
    "reference",
    "description",
    "customer_email",
    "customer_name",
    "customer_note",
    "merchant",
]
CALCULATES = tuple("=+-@\t\r\uff1d\uff0b\uff0d\uff20")
SHEETS = {
    "csv": "en",
    "koinly": "en",
    "spreadsheet in English": "en",
    "spreadsheet in German": "de",
}
OWN_SEPARATOR = dict.fromkeys(SHEETS, ",") | {"spreadsheet in German": ";"}
SEPARATORS = {"comma": ",", "semicolon": ";", "tab": "\t"}
ATTACKS = {
    "a quoted cell between semicolons": "thanks;\"=cmd|' /C calc'!A0;",
    "a quoted cell between commas": "thanks,\"=cmd|' /C calc'!A0,",
    "a quoted cell between tabs": "thanks\t\"=cmd|' /C calc'!A0\t",
    "a quoted cell in a line of its own": 'thanks\n"=1+1',
    "empty quotes before it": 'thanks;""""=1+1',
    "blanks and quotes before it": 'thanks; " "" =1+1',
    "a tab behind a semicolon": "thanks;\tx",
    "a carriage return behind a semicolon": 'thanks;"\r=1+1',
    "a minus in full width": "thanks;\uff0d1",
    "a mark that is not seen": 'thanks;\u200b"\u2060@SUM(A1)',
    "marks of direction": "thanks;\u202e\u2066=1+1",
    "a control": "thanks;\x01=1+1",
    "a separator at its end": 'thanks;"',
    "a line separator": "thanks\u2028=1+1",
}
# Controls, marks of direction, a space without width, a selector of emoji, a letter of no shape.
UNSEEN = "\x01\x1f\u061c\u200b\u202e\u2066\u2069\ufe0f\u3164"
NUMBERS = {
    "amount_sats": -1_000,
    "amount_btc": "-0.00001000",
    "value_at_receipt": "-0.50",
}


def record(**texts):
    row = dict.fromkeys(COLUMNS.split()) | {
        "day": "2026-11-28",
        "outputs": [f"{'ab' * 32}:1"],
    }
    row |= {
        "received_at": "2026-11-27T23:30:00.000Z",
        "currency": "EUR",
        "settled": False,
    }
    return row | {"invoice_id": "inv_1", "payment_id": "rfd_1"} | NUMBERS | texts


def written(sheet, records):
    name = sheet.partition(" ")[0]
    return "".join(FORMATS[name].lines(records, SHEETS[sheet], UTC)).removeprefix(
        "\ufeff"
    )


def cells_that_calculate(text, separator):
    rows = csv.reader(io.StringIO(text, newline=""), delimiter=separator)
    cells = [cell for row in rows for cell in row]
    return [cell for cell in cells if cell.lstrip(UNSEEN).startswith(CALCULATES)]


def own_numbers(sheet):
    """Our own negative numbers of one record, as this file has them."""
    if sheet == "csv":
        return [str(NUMBERS[name]) for name in SUMS if name in NUMBERS]
    if sheet == "koinly":
        return ["-0.00001000", "-0.50"]
    numbers = ["-0.50", "-0.00001000"]
    return (
        [number.replace(".", ",") for number in numbers]
        if "German" in sheet
        else numbers
    )


@pytest.mark.parametrize("reading", SEPARATORS)
@pytest.mark.parametrize("sheet", SHEETS)
@pytest.mark.parametrize("attack", ATTACKS)
def test_no_text_begins_a_cell_that_calculates(attack, sheet, reading):
    text = written(sheet, [record(**dict.fromkeys(TEXTS, ATTACKS[attack]))])
    is_own = SEPARATORS[reading] == OWN_SEPARATOR[sheet]
    found = cells_that_calculate(text, SEPARATORS[reading])
    assert found == (own_numbers(sheet) if is_own else [])


@pytest.mark.parametrize("reading", SEPARATORS)
@pytest.mark.parametrize("sheet", SHEETS)
def test_neither_does_any_of_a_thousand_random_texts(sheet, reading):
    chance = random.Random(f"{sheet} {reading}")
    letters = "=+-@;,\t\"'\r\n a\u3000\uff1d\u2028" + UNSEEN
    is_own = SEPARATORS[reading] == OWN_SEPARATOR[sheet]
    for _ in range(1_000):
        texts = [
            "".join(chance.choices(letters, k=chance.randrange(13))) for _ in TEXTS
        ]
        text = written(sheet, [record(**dict(zip(TEXTS, texts, strict=True)))] * 2)
        found = cells_that_calculate(text, SEPARATORS[reading])
        assert found == (own_numbers(sheet) * 2 if is_own else []), texts


def test_what_cannot_calculate_is_left_as_it_was():
    plain = 'Two bags; 1 - 2 = "x", a+b @ home'
    (_, row) = csv.reader(
        io.StringIO(written("csv", [record(description=plain)]), newline="")
    )
    assert row[COLUMNS.split().index("description")] == plain
