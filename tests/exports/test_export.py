"""What the bookkeeper and the wallet take away: `btcpay export payments` and `export labels`."""

import csv
import io
import json
import subprocess
import sys
from datetime import timedelta
from types import SimpleNamespace

import pytest
from builders import Shop, pay
from fake_esplora import Terminal
from paths import PROJECT, VECTORS

from btcpay.exports.labels import labels
from btcpay.exports.payments import COLUMNS, cells, defused, received
from btcpay.settlement.values import Block, SeenOutput
from btcpay.values.times import iso, to_ms
from storage.queries import merchants, payments

pytestmark = pytest.mark.both_databases

VECTORS = json.loads((VECTORS / "bip329.json").read_text())


@pytest.fixture
def btcpay(shop: Shop) -> Terminal:
    return Terminal(SimpleNamespace(shop=shop))


def table(text: str) -> list[dict[str, str]]:
    return list(csv.DictReader(io.StringIO(text, newline="")))


def merchant_of(shop: Shop) -> dict:
    return shop.service.db.only(merchants.BY_ID, id=shop.merchant_id)


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
    "full-width equals": ("\uff1d1", "'\uff1d1"),
    "full-width plus": ("\uff0b1", "'\uff0b1"),
    "full-width minus": ("\uff0d1", "'\uff0d1"),
    "full-width at": ("\uff20A", "'\uff20A"),
    "the next cell where a semicolon parts them": ("a;=1", "a;'=1"),
    "the next cell where a tab parts them": ("a\t=1", "a\t'=1"),
    "a quote that closes its own": ('";=1', "\";'=1"),
}


def test_what_a_spreadsheet_would_calculate_is_defused():
    assert {case: defused(text) for case, (text, _) in CELLS.items()} == {
        case: cell for case, (_, cell) in CELLS.items()
    }


def test_a_payment_is_one_line_with_everything_a_bookkeeper_asks_for(shop, clock, btcpay):
    invoice = shop.invoice(25, description="Coffee, \u201ctwo\u201d\nbags")
    mined_at = clock() - timedelta(minutes=5)
    clock.move(minutes=10)
    txid = pay(shop, invoice, mined_at=mined_at + timedelta(minutes=7))
    output, _ = btcpay.run("export", "payments")
    (line,) = table(output)
    assert tuple(line) == COLUMNS
    (payment,) = shop.get("/payments").json["data"]
    assert line == {
        "received_at": iso(mined_at + timedelta(minutes=7)),
        "recorded_at": iso(clock()),
        "merchant": "shop",
        "invoice_id": invoice["id"],
        "invoice_status": "paid",
        "settled": "yes",
        "description": "Coffee, \u201ctwo\u201d\nbags",
        "address": invoice["deposit_address"],
        "amount_sats": "41667",
        "amount_btc": "0.00041667",
        "usd_at_quote": "25.00",
        "usd_at_receipt": "25.00",
        "invoice_usd_quote": "25",
        "outputs": f"{txid}:0",
        "block_height": "100",
        "block_hash": "0b" * 32,
        "payment_id": payment["id"],
        "currency": "",
        "value_at_receipt": "",
    }


def test_the_file_is_what_rfc_4180_says_whatever_the_terminal_speaks(shop, btcpay):
    pay(shop, shop.invoice(1, description='a "b", \u00fc'))
    btcpay.environ |= {"LC_ALL": "C", "PYTHONIOENCODING": "ascii"}
    ended = subprocess.run(
        [sys.executable, "-m", "btcpay", "export", "payments"],
        env=btcpay.environ,
        cwd=PROJECT,
        capture_output=True,
        timeout=60,
    )
    lines = ended.stdout.split(b"\r\n")
    assert lines[0] == ",".join(COLUMNS).encode() and lines[-1] == b"" and len(lines) == 3
    assert '"a ""b"", \u00fc"'.encode() in lines[1] and b"\n" not in lines[1]


def test_no_payments_leave_the_header_or_an_empty_array(btcpay):
    assert btcpay.run("export", "payments")[0] == ",".join(COLUMNS) + "\n"
    assert btcpay.json("export", "payments") == []
    assert btcpay.run("export", "labels")[0] == ""


def test_what_is_short_or_late_has_not_settled(shop, btcpay):
    invoice = shop.invoice(25)
    pay(shop, invoice, 20_000)
    (record,) = btcpay.json("export", "payments")
    assert (record["settled"], record["invoice_status"], record["amount_sats"]) == (
        False,
        "open",
        20_000,
    )
    assert record["usd_at_quote"] == 12


def test_several_outputs_of_a_payment_stand_in_one_line(shop, clock):
    invoice = shop.invoice(25)
    txid = pay(shop, invoice)
    db = shop.service.db
    (kept,) = db.rows(payments.OUTPUTS, invoice_id=invoice["id"])
    names = ("txid", "invoice_id", "merchant_id", "first_seen_at", "amount_sats", "coinbase")
    names += ("vanished_at", "block_height", "block_hash", "block_time_at", "spent_height")
    names += ("inputs", "replaced_height", "position", "seen_waiting")
    twin = {name: kept[name] for name in names} | {"vout": 3}
    db.run(payments.ADD_OUTPUT, **twin)
    found = {"payment_id": kept["payment_id"], "txid": txid, "invoice_id": invoice["id"]}
    db.run(payments.CREDIT_OUTPUTS, **found)
    (record,) = received(db, merchant_of(shop))
    assert record["outputs"] == [f"{txid}:0", f"{txid}:3"]
    assert cells(record)[COLUMNS.index("outputs")] == f"{txid}:0 {txid}:3"


def test_days_are_utc_and_half_open(shop, clock, btcpay):
    day = clock().replace(hour=0, minute=0, second=0)
    clock.at = day - timedelta(hours=2)
    invoices = [shop.invoice(10, description=str(number)) for number in range(4)]
    clock.at = day + timedelta(days=2)
    ms = timedelta(milliseconds=1)
    moments = [day - ms, day, day + timedelta(days=1) - ms, day + timedelta(days=1)]
    for invoice, at in zip(invoices, moments, strict=True):
        pay(shop, invoice, mined_at=at)

    def found(*words: str) -> list[str]:
        return [row["description"] for row in btcpay.json("export", "payments", *words)]

    today, tomorrow = day.date().isoformat(), (day + timedelta(days=1)).date().isoformat()
    assert found() == ["0", "1", "2", "3"]
    assert found("--from", today) == ["1", "2", "3"]
    assert found("--to", today) == ["0"]
    assert found("--from", today, "--to", tomorrow) == ["1", "2"]
    assert found("--from", tomorrow, "--to", tomorrow) == []
    # An hour before the day in Lisbon's summer, the day itself in UTC; seconds count.
    assert found("--from", f"{today}T01:00:00+01:00", "--to", f"{today}T00:00:01Z") == ["1"]


@pytest.mark.parametrize(
    ("words", "says"),
    [
        (("--from", "yesterday"), "neither a day"),
        (("--from", "2026-02-30"), "neither a day"),
        (("--from", "2026-02-02", "--to", "2026-02-01"), "later than --to"),
    ],
)
def test_dates_that_are_none_are_wrong_use(btcpay, words, says):
    assert says in btcpay.run("export", "payments", *words, status=2)[1]


def test_one_merchants_payments_alone(shop, btcpay):
    other = shop.add_merchant("=other")
    pay(shop, shop.invoice(10))
    response = shop.post("/invoices", {"amount_usd": 10}, shop.issue("write", other))
    pay(shop, response.json)
    assert [row["merchant"] for row in btcpay.json("export", "payments")] == ["shop", "=other"]
    (row,) = table(btcpay.run("export", "payments", "--merchant", "=other")[0])
    assert row["merchant"] == "'=other"
    assert len(btcpay.run("export", "labels", "--merchant", "=other")[0].splitlines()) == 3
    refused = btcpay.run("export", "payments", "--merchant", "nobody", status=1)
    assert "no merchant 'nobody'" in refused[1]


@pytest.mark.parametrize("page", [1, 2, 3, 500])
def test_pages_neither_lose_nor_repeat_what_came_in_one_millisecond(shop, clock, page):
    made = [shop.invoice(10, description=str(number)) for number in range(5)]
    for invoice in made:
        pay(shop, invoice)
    found = received(shop.service.db, merchant_of(shop), page=page)
    assert [row["description"] for row in found] == [str(number) for number in range(5)]
    refs = [row["ref"] for row in labels(shop.service.db, merchant_of(shop), page=page)]
    assert len(refs) == len(set(refs)) == 15


def test_labels_are_bip329_with_the_description_or_the_id(shop, btcpay):
    one, two = shop.invoice(10, description="Two\nbags " + "x" * 300), shop.invoice(10)
    txid = pay(shop, one)
    lines = [json.loads(line) for line in btcpay.run("export", "labels")[0].splitlines()]
    text = ("Two bags " + "x" * 300)[:255]
    assert lines == [
        {"type": "addr", "ref": one["deposit_address"], "label": text},
        {"type": "tx", "ref": txid, "label": text},
        {"type": "output", "ref": f"{txid}:0", "label": text},
        {"type": "addr", "ref": two["deposit_address"], "label": two["id"]},
    ]
    keys = {vector["type"]: set(vector) for vector in VECTORS}
    assert all(set(line) <= keys[line["type"]] for line in lines)


def test_a_transaction_that_pays_two_invoices_has_one_label(shop, clock):
    made = [shop.invoice(10, description=text) for text in ("tea", "coffee")]
    db, txid = shop.service.db, pay(shop, made[0])
    seen = SeenOutput(txid, 1, 1_000, Block(100, "0b" * 32, clock()))
    row = {"merchant_id": shop.merchant_id, "invoice_id": made[1]["id"], "txid": txid}
    empty = dict.fromkeys(("vanished_at", "spent_height", "position", "inputs", "replaced_height"))
    empty |= {"block_height": 100, "block_hash": "0b" * 32, "block_time_at": to_ms(clock())}
    db.run(
        payments.ADD_OUTPUT,
        vout=seen.vout,
        amount_sats=seen.amount_sats,
        coinbase=0,
        seen_waiting=0,
        first_seen_at=to_ms(clock()),
        **row,
        **empty,
    )
    found = [line for line in labels(db, merchant_of(shop)) if line["type"] == "tx"]
    assert [(line["ref"], sorted(line["label"].split("; "))) for line in found] == [
        (txid, ["coffee", "tea"])
    ]


def fill(shop: Shop, count: int) -> None:
    """Payments by the hundred thousand, as SQL: one for each invoice, one a second."""
    connection, values = shop.service.db.connection, (count, shop.merchant_id)
    mark = connection.param  # ? or %s
    more = f"SELECT i + 1 FROM n WHERE i < {mark}"  # noqa: S608
    numbers = f"WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL {more})"
    txid = f"substr('{'0' * 64}' || i, length('1' || i))"
    with shop.service.db.write():
        connection.execute_sql(
            f"""{numbers} INSERT INTO invoice (id, merchant_id, status, amount_sats,
            amount_usd_quote, price_usd, description, deposit_address, script, address_index,
            tx_hash, paid_at, finished_at, created_at)
            SELECT 'inv_' || i, {mark}, 'paid', 1000, '0.60', '60000', 'Order ' || i, 'addr' || i,
            's' || i, i, {txid}, i * 1000, i * 1000, i * 1000 FROM n""",  # noqa: S608
            values,
        )
        connection.execute_sql(
            f"""{numbers} INSERT INTO payment (id, merchant_id, address_invoice_id, invoice_id,
            amount_sats, amount_usd_at_receipt, tx_hash, created_at)
            SELECT 'pay_' || i, {mark}, 'inv_' || i, 'inv_' || i, 1000, '0.60', {txid},
            i * 1000 FROM n""",  # noqa: S608
            values,
        )
        connection.execute_sql(
            f"""{numbers} INSERT INTO output (txid, vout, invoice_id, merchant_id, amount_sats,
            coinbase, first_seen_at, block_height, block_hash, block_time_at, seen_waiting,
            payment_id)
            SELECT {txid}, 0, 'inv_' || i, {mark}, 1000, 0, i, i, {txid}, i, 1, 'pay_' || i
            FROM n""",  # noqa: S608
            values,
        )


MEASURE = """
import resource, subprocess, sys
with subprocess.Popen(sys.argv[1:], stdout=subprocess.PIPE) as process:
    lines = sum(1 for _ in process.stdout)
assert process.returncode == 0
print(lines, resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss)
"""


def test_a_hundred_thousand_payments_do_not_fill_the_memory(shop, btcpay):
    fill(shop, 100_000)
    for words, lines in ((("payments",), 100_001), (("labels",), 300_000)):
        # By way of a small process: a child's peak begins with that of who started it.
        command = [sys.executable, "-m", "btcpay", "export", *words]
        output = subprocess.run(
            [sys.executable, "-c", MEASURE, *command],
            env=btcpay.environ,
            cwd=PROJECT,
            capture_output=True,
            check=True,
            text=True,
        ).stdout
        counted, peak_kib = map(int, output.split())
        # A command that answers nothing takes some 60 MiB.
        assert counted == lines and peak_kib < 100 * 1024
