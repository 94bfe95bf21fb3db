"""Exports for bookkeeper and wallet: `blocktill export payments` and `export labels`."""

import csv
import io
import json
import subprocess
import sys
from datetime import timedelta

import pytest
from click.testing import CliRunner

from btcpay.cli.export import export
from btcpay.exports.csv_file import cells, defuse
from btcpay.exports.labels import labels
from btcpay.exports.payments import COLUMNS, payment_records
from btcpay.values.times import iso
from storage.database import Database
from storage.queries import merchants, payments
from storage.statement import as_dict
from tests.support.builders import pay
from tests.support.fake_esplora import Terminal
from tests.support.paths import PROJECT, VECTORS

pytestmark = pytest.mark.both_databases

VECTORS = json.loads((VECTORS / "bip329.json").read_text())


@pytest.fixture
def blocktill(shop):
    return Terminal(shop)


def table(text):
    return list(csv.DictReader(io.StringIO(text, newline="")))


def merchant_of(shop):
    return shop.service.db.get(merchants.BY_ID, id=shop.merchant_id)


CELLS = {
    "plain text stays": ("Two bags of coffee", "Two bags of coffee"),
    "nothing stays nothing": ("", ""),
    "a sign inside stays": ("3 - 1 = 2; fine", "3 - 1 = 2; fine"),
    "a line break stays": ("one\r\ntwo", "one\r\ntwo"),
    "equals": ("=1+1", "'=1+1"),
    "plus": ("+1", "'+1"),
    "minus": ("-1", "'-1"),
    "at": ("@SUM(A1)", "'@SUM(A1)"),
    "tab": ("\t=1", "'\t'=1"),
    "carriage return": ("\r=1", "'\r'=1"),
    "line feed": ("\n=1", "'\n'=1"),
    "blanks before it": ("  =1", "'  =1"),
    "a no-break space before it": ("\u00a0=1", "'\u00a0=1"),
    "a byte order mark before it": ("\ufeff=1", "'\ufeff=1"),
    "a mark that turns writing around before it": ("\u202e=1", "'\u202e=1"),
    "an Arabic letter mark before it": ("\u061c+1", "'\u061c+1"),
    "isolates before it": ("\u2066\u2067\u2068\u2069@A", "'\u2066\u2067\u2068\u2069@A"),
    "controls before it": ("\x01\x1b\x1f\x7f-1", "'\x01\x1b\x1f\x7f-1"),
    "a variation selector before it": ("\ufe0f=1", "'\ufe0f=1"),
    "a letter that shows nothing before it": ("\u3164=1", "'\u3164=1"),
    "a tag of no language before it": ("\U000e0001=1", "'\U000e0001=1"),
    "a sign of no table before it": ("\u2065=1", "'\u2065=1"),
    "a mark of direction in the next cell": ("a;\u202e=1", "a;'\u202e=1"),
    "marks of direction in a text": ("a\u2066=1\u2069", "a\u2066=1\u2069"),
    "full-width equals": ("\uff1d1", "'\uff1d1"),
    "full-width plus": ("\uff0b1", "'\uff0b1"),
    "full-width minus": ("\uff0d1", "'\uff0d1"),
    "full-width at": ("\uff20A", "'\uff20A"),
    "the next cell where a semicolon parts them": ("a;=1", "a;'=1"),
    "the next cell where a tab parts them": ("a\t=1", "a\t'=1"),
    "a quote that closes its own": ('";=1', "\";'=1"),
}


def test_what_a_spreadsheet_would_calculate_is_defused():
    for case, (text, cell) in CELLS.items():
        assert defuse(text) == cell, case


def test_a_payment_is_one_line_with_everything_a_bookkeeper_asks_for(
    shop, clock, blocktill
):
    invoice = shop.invoice(25, description="Coffee, \u201ctwo\u201d\nbags")
    mined_at = clock() - timedelta(minutes=5)
    clock.move(minutes=10)
    txid = pay(shop, invoice, mined_at=mined_at + timedelta(minutes=7))
    output, _ = blocktill.run("export", "payments")
    (line,) = table(output)
    assert list(line) == COLUMNS.split()
    (payment,) = shop.get("/payments").json["data"]
    assert line == {
        "day": f"{mined_at + timedelta(minutes=7):%Y-%m-%d}",
        "received_at": iso(mined_at + timedelta(minutes=7)), "recorded_at": iso(clock()),
        "merchant": "shop", "invoice_id": invoice["id"], "invoice_status": "paid", "settled": "yes",
        "reference": "", "description": "Coffee, \u201ctwo\u201d\nbags",
        "customer_email": "", "customer_name": "", "customer_note": "",
        "address": invoice["deposit_address"], "amount_sats": "41667", "amount_btc": "0.00041667",
        "currency": "USD", "value_at_receipt": "25.00", "usd_at_receipt": "25.00",
        "usd_at_quote": "25.00", "invoice_usd_quote": "25", "tip": "", "tip_currency": "",
        "outputs": f"{txid}:0", "block_height": "100", "block_hash": "0b" * 32,
        "payment_id": payment["id"], "bill_id": "",
    }  # fmt: skip


def test_the_file_is_what_rfc_4180_says_whatever_the_terminal_speaks(shop, blocktill):
    pay(shop, shop.invoice(1, description='a "b", \u00fc'))
    blocktill.environ |= {"LC_ALL": "C", "PYTHONIOENCODING": "ascii"}
    ended = subprocess.run(
        [sys.executable, "-m", "btcpay", "export", "payments"],
        env=blocktill.environ,
        cwd=PROJECT,
        capture_output=True,
        timeout=60,
    )
    lines = ended.stdout.split(b"\r\n")
    assert (
        lines[0] == COLUMNS.replace(" ", ",").encode()
        and lines[-1] == b""
        and len(lines) == 3
    )
    assert '"a ""b"", \u00fc"'.encode() in lines[1] and b"\n" not in lines[1]


def test_no_payments_leave_the_header_or_an_empty_array(blocktill):
    assert blocktill.run("export", "payments")[0] == COLUMNS.replace(" ", ",") + "\n"
    assert blocktill.json("export", "payments") == []
    assert blocktill.run("export", "labels")[0] == ""


def test_what_is_short_or_late_has_not_settled(shop, blocktill):
    invoice = shop.invoice(25)
    pay(shop, invoice, 20_000)
    (record,) = blocktill.json("export", "payments")
    assert (record["settled"], record["invoice_status"]) == (False, "open")
    assert (record["amount_sats"], record["usd_at_quote"]) == (20_000, 12)


def test_a_record_in_json_has_the_columns_of_the_csv_and_no_others(shop, blocktill):
    pay(shop, shop.invoice(25))
    (record,) = blocktill.json("export", "payments")
    assert list(record) == COLUMNS.split()


def test_several_outputs_of_a_payment_stand_in_one_line(shop, clock):
    invoice = shop.invoice(25)
    txid = pay(shop, invoice)
    db = shop.service.db
    (kept,) = db.rows(payments.OUTPUTS, invoice_id=invoice["id"])
    db.run(payments.PUT_OUTPUT, **as_dict(kept) | {"vout": 3})
    db.run(
        payments.CREDIT_OUTPUTS,
        payment_id=kept.payment_id,
        txid=txid,
        invoice_id=invoice["id"],
    )
    (record,) = payment_records(db, merchant_of(shop))
    assert record["outputs"] == [f"{txid}:0", f"{txid}:3"]
    assert cells(record)[COLUMNS.split().index("outputs")] == f"{txid}:0 {txid}:3"


@pytest.mark.parametrize(("zone", "begins"), [("UTC", 0), ("Asia/Kathmandu", -5.75)])
def test_days_are_those_of_the_merchants_zone_and_half_open(
    shop, clock, blocktill, zone, begins
):
    shop.sql(f"UPDATE merchant SET timezone = '{zone}'")  # noqa: S608
    date = clock().replace(hour=0, minute=0, second=0)
    day = date + timedelta(hours=begins)
    clock.at = day - timedelta(hours=2)
    invoices = [shop.invoice(10, description=str(number)) for number in range(4)]
    clock.at = day + timedelta(days=2)
    ms = timedelta(milliseconds=1)
    moments = [day - ms, day, day + timedelta(days=1) - ms, day + timedelta(days=1)]
    for invoice, at in zip(invoices, moments, strict=True):
        pay(shop, invoice, mined_at=at)

    def found(*words):
        return [
            row["description"] for row in blocktill.json("export", "payments", *words)
        ]

    today, tomorrow = (f"{date + timedelta(days):%Y-%m-%d}" for days in (0, 1))
    assert found() == ["0", "1", "2", "3"]
    assert [row["day"] for row in blocktill.json("export", "payments")][1:] == [
        today,
        today,
        tomorrow,
    ]
    assert found("--from", today) == ["1", "2", "3"]
    assert found("--to", today) == ["0"]
    assert found("--from", today, "--to", tomorrow) == ["1", "2"]
    assert found("--from", tomorrow, "--to", tomorrow) == []
    # Seconds count, and what a time says of its own zone.
    assert found(
        "--from",
        f"{day + timedelta(hours=1):%Y-%m-%dT%H:%M:%S}+01:00",
        "--to",
        f"{today}T00:00:01",
    ) == ["1"]


@pytest.mark.parametrize(
    ("words", "says"),
    [
        (("--from", "yesterday"), "does not match the formats"),
        (("--from", "2026-02-02", "--to", "2026-02-01"), "later than --to"),
        (("--from", "1960-01-01", "--to", "1950-01-01"), "later than --to"),
    ],
)
def test_dates_that_are_none_are_wrong_use(blocktill, words, says):
    assert says in blocktill.run("export", "payments", *words, status=2)[1]


def test_a_period_before_1970_has_no_payments(blocktill):
    words = ("--from", "1950-01-01", "--to", "1960-01-01")
    assert blocktill.json("export", "payments", *words) == []


def test_an_export_has_the_payments_of_its_merchant_alone(shop, blocktill):
    other = shop.add_merchant("=other")
    pay(shop, shop.invoice(10))
    response = shop.post("/invoices", {"amount_usd": 10}, shop.issue("write", other))
    pay(shop, response.json)
    assert [row["merchant"] for row in blocktill.json("export", "payments")] == [
        "shop",
        "=other",
    ]
    (row,) = table(blocktill.run("export", "payments", "--merchant", "=other")[0])
    assert row["merchant"] == "'=other"
    assert (
        len(blocktill.run("export", "labels", "--merchant", "=other")[0].splitlines())
        == 3
    )
    refused = blocktill.run("export", "payments", "--merchant", "nobody", status=1)
    assert "no merchant 'nobody'" in refused[1]


@pytest.mark.parametrize("page", [1, 2, 3, 500])
def test_pages_neither_lose_nor_repeat_what_came_in_one_millisecond(shop, clock, page):
    made = [shop.invoice(10, description=str(number)) for number in range(5)]
    for invoice in made:
        pay(shop, invoice)
    found = payment_records(shop.service.db, merchant_of(shop), page=page)
    assert [row["description"] for row in found] == [str(number) for number in range(5)]
    refs = [row["ref"] for row in labels(shop.service.db, merchant_of(shop), page=page)]
    assert len(refs) == len(set(refs)) == 15


def test_labels_are_bip329_with_the_description_or_the_id(shop, blocktill):
    one = shop.invoice(10, description="Two\nbags " + "x" * 300)
    two = shop.invoice(10)
    txid = pay(shop, one)
    lines = [
        json.loads(line) for line in blocktill.run("export", "labels")[0].splitlines()
    ]
    text = ("Two bags " + "x" * 300)[:255]
    assert lines == [
        {"type": "addr", "ref": one["deposit_address"], "label": text},
        {"type": "tx", "ref": txid, "label": text},
        {"type": "output", "ref": f"{txid}:0", "label": text},
        {"type": "addr", "ref": two["deposit_address"], "label": two["id"]},
    ]
    keys = {vector["type"]: set(vector) for vector in VECTORS}
    assert all(set(line) <= keys[line["type"]] for line in lines)


@pytest.mark.parametrize("name", ["payments", "labels"])
def test_an_export_is_written_page_by_page_while_it_is_read(shop, monkeypatch, name):
    for _ in range(40):
        pay(shop, shop.invoice(1, description="x" * 500))
    written = []
    read = Database.rows

    def rows(db, query, **given):
        written.append(sys.stdout.buffer.tell())
        return read(db, query, **given | ({"limit": 1} if "limit" in given else {}))

    monkeypatch.setattr(Database, "rows", rows)
    result = CliRunner().invoke(export, [name], env=shop.environ)
    assert result.exit_code == 0, result.output
    assert len(result.stdout_bytes) > 30_000
    assert (
        written[-1] > len(result.stdout_bytes) - 10_000
    )  # all but what a file keeps back
