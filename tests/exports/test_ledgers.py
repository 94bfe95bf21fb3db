"""Payments as spreadsheets, Koinly and beancount take them: cells, marks, words."""

import csv
import io
from zoneinfo import ZoneInfo

import pytest

from btcpay.exports.ledgers import FORMATS
from btcpay.languages.catalogs import catalog

TXID = "ab" * 32
COFFEE = {
    "day": "2026-11-28", "received_at": "2026-11-27T23:30:00.000Z", "merchant": "Café \"N\\1\"",
    "invoice_id": "inv_1", "invoice_status": "paid", "settled": True, "reference": "A-17",
    "description": "=1+1; \"two\"\nbags", "amount_sats": 2_469_000, "amount_btc": "0.02469000",
    "currency": "EUR", "value_at_receipt": "1234.50", "tip": "1.5", "outputs": [f"{TXID}:1"],
}  # fmt: skip
BLANKS = dict.fromkeys(("reference", "description", "tip", "value_at_receipt"))
UNPRICED = (
    COFFEE | BLANKS | {"outputs": [], "settled": False, "invoice_status": "expired"}
)
REFUND = COFFEE | {
    "settled": False,
    "payment_id": "rfd_1",
    "amount_sats": -1_000,
    "amount_btc": "-0.00001000",
    "value_at_receipt": "-0.50",
}
BERLIN = ZoneInfo("Europe/Berlin")


def lines(name, *records, language="en"):
    return "".join(FORMATS[name].lines(records, language, BERLIN))


SHEETS = {"en": ",.", "ja": ",.", "ar": ";.", "fa": ";."}
SHEETS |= dict.fromkeys(("de", "es", "fr", "pt"), ";,")


@pytest.mark.parametrize("language", SHEETS)
def test_a_spreadsheet_has_the_marks_and_words_of_its_language(language):
    separator, mark = SHEETS[language]
    text = lines("spreadsheet", COFFEE, language=language)
    assert text.startswith("\ufeff") and not text.startswith("\ufeff\ufeff")
    heads, row = csv.reader(io.StringIO(text[1:], newline=""), delimiter=separator)
    assert len(heads) == len(row) == 11 and heads[9] == "BTC" and all(heads)
    # The time is that of the shop's zone, and a formula is none.
    assert row[:2] == ["2026-11-28", "00:30"] and row[4].startswith("'=1+1;")
    assert row[5:7] == [catalog(language).gettext("Paid"), "EUR"]
    assert row[7:] == [f"1234{mark}50", f"1{mark}5", f"0{mark}02469000", TXID]


@pytest.mark.parametrize("language", SHEETS)
def test_a_locale_with_the_other_separator_finds_no_formula_either(language):
    other = ";" if SHEETS[language][0] == "," else ","
    text = lines(
        "spreadsheet", COFFEE | {"reference": f"A{other}=1"}, language=language
    )
    rows = list(csv.reader(io.StringIO(text, newline=""), delimiter=other))
    assert any(len(row) > 1 for row in rows)
    assert not any(cell.startswith("=") for row in rows for cell in row)


def test_a_refund_is_a_number_and_what_is_unknown_is_empty():
    row = lines("spreadsheet", REFUND, language="de").splitlines()[-1].split(";")
    assert row[-4:] == ["-0,50", "1,5", "-0,00001000", TXID]
    assert lines("spreadsheet", UNPRICED).splitlines()[1].endswith(",EUR,,,0.02469000,")


def test_koinly_gets_its_simple_template():
    heads, *rows = csv.reader(
        io.StringIO(lines("koinly", COFFEE, UNPRICED, REFUND), newline="")
    )
    assert (
        heads[:4] == ["Koinly Date", "Amount", "Currency", "Label"]
        and heads[-1] == "TxHash"
    )
    began = ["2026-11-27 23:30 UTC", "0.02469000", "BTC", "income"]
    assert rows[0] == [*began, "1234.50", "EUR", 'A-17 · =1+1; "two"\nbags', TXID]
    assert rows[1] == [*began, "", "", "", ""]
    assert rows[2][1:6] == ["-0.00001000", "BTC", "", "-0.50", "EUR"]


def test_beancount_gets_a_transaction_that_balances():
    assert lines("beancount", COFFEE, UNPRICED, REFUND) == (
        "2009-01-03 open Assets:Bitcoin\n2009-01-03 open Income:Sales\n\n"
        '2026-11-28 * "Café \\"N\\\\1\\"" "A-17 · =1+1; \\"two\\" bags" ^inv_1\n'
        f'  transaction: "{TXID}"\n'
        "  Assets:Bitcoin  0.02469000 BTC @@ 1234.50 EUR\n  Income:Sales  -1234.50 EUR\n\n"
        '2026-11-28 ! "Café \\"N\\\\1\\"" "" ^inv_1\n  transaction: ""\n'
        "  Assets:Bitcoin  0.02469000 BTC\n  Income:Sales  -0.02469000 BTC\n\n"
        '2026-11-28 * "Café \\"N\\\\1\\"" "A-17 · =1+1; \\"two\\" bags" ^inv_1\n'
        f'  transaction: "{TXID}"\n'
        "  Assets:Bitcoin  -0.00001000 BTC @@ 0.50 EUR\n  Income:Sales  0.50 EUR\n\n"
    )


def test_a_refund_without_an_invoice_is_known_by_its_own_number():
    refund = REFUND | dict.fromkeys(
        ("invoice_id", "invoice_status", "reference", "description")
    )
    assert (
        lines("spreadsheet", refund)
        .splitlines()[1]
        .startswith("2026-11-28,00:30,,,,,EUR,-0.50")
    )
    assert ' * "Café \\"N\\\\1\\"" "" ^rfd_1\n' in lines("beancount", refund)
