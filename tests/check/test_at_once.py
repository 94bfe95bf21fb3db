"""A block with many payments: one statement for all of a kind, with what each alone would give."""

from collections import Counter

import pytest

from btcpay.check.apply import apply, try_apply
from btcpay.check.report import Report
from btcpay.notify import receivers
from btcpay.settlement.values import Block, Scan, SeenOutput
from storage.queries import invoices
from tests.support.builders import is_summed
from tests.support.databases import ON_POSTGRES, raw, tables
from tests.support.statements import sent

pytestmark = pytest.mark.both_databases
BLOCK_HASH = "0b" * 32
# What was asked is 41,667 satoshis.
PAID = {
    "in full": [41_667],
    "in two parts": [20_000, 21_667],
    "not enough": [20_000],
    "too much": [90_000],
    "two outputs of one": [20_000, 21_667],
}


def orders(shop, count):
    """Invoices of two merchants in turn, the first of whom has a webhook."""
    db = shop.service.db
    owners = [shop.merchant_id, shop.add_merchant("other")]
    receivers.add(db, owners[0], "https://example.com/hook", None, [], shop.clock())
    keys = [shop.issue("write", owner) for owner in owners]
    order = {"amount_usd": 25}
    return [shop.post("/invoices", order, keys[n % 2]).json["id"] for n in range(count)]


def seen_outputs(number, kind, block):
    """The outputs of that kind of payment to the invoice of this number."""
    for place, sats in enumerate(PAID[kind]):
        of_one = kind == "two outputs of one"
        txid = f"{number:032x}{0 if of_one else place:032x}"
        at = 1 + 2 * number + (0 if of_one else place)
        yield SeenOutput(
            txid, place if of_one else 0, sats, block, at if block else None
        )


def scans_of(shop, ids):
    """A scan for each; every third invoice's payment waits before, every fourth coin moves."""
    block = Block(100, BLOCK_HASH, shop.clock())
    kinds = list(PAID)
    found = {}
    waited = {}
    for number, id in enumerate(ids):
        kind = kinds[number % len(kinds)]
        confirmed = list(seen_outputs(number, kind, block))
        moved = {one.outpoint: 100 for one in confirmed if number % 4 == 3}
        facts = {"spent": moved, "proofs": {one.txid: "{}" for one in confirmed}}
        found[id] = Scan(shop.clock(), 100, confirmed, explorer="one.test", **facts)
        if number % 3 == 2:
            waiting = list(seen_outputs(number, kind, None))
            waited[id] = Scan(shop.clock(), 99, waiting=waiting, explorer="one.test")
    return waited, found


def rows_of(shop, ids):
    """Every row that payments have changed, with an invoice's place for its id."""
    places = {id: place for place, id in enumerate(ids)}
    made = {"seq", "number", "event_seq"}
    named = {
        "id",
        "payment_id",
        "about",
        "deposit_address",
        "script",
        "state",
        "receiver_id",
    }
    with raw(shop.environ["BLOCKTILL_DATABASE_URL"]) as connection:
        found = tables(connection)
    of = "invoice output payment proof event balance merchant_day public_event delivery attention"
    return {
        table: Counter(
            tuple(
                places.get(value, value) if column not in named else bool(value)
                for column, value in row.items()
                if column not in made and column != "detail"
            )
            for row in found[table]
        )
        for table in of.split()
    }


def read(shop, scans):
    apply(shop.service.db, shop.service.settings, scans, shop.clock())


def test_all_at_once_give_the_rows_that_each_alone_gives(open_shops):
    told = []
    for size in (1, 20):
        shop = open_shops()
        ids = orders(shop, 20)
        for scans in scans_of(shop, ids):
            chosen = list(scans)
            for at in range(0, len(chosen), size):
                read(shop, {id: scans[id] for id in chosen[at : at + size]})
        assert is_summed(shop, shop.merchant_id)
        told.append(rows_of(shop, ids))
    assert told[0] == told[1]


@pytest.mark.skipif(
    not ON_POSTGRES, reason="SQLite runs one for each, without a way between"
)
def test_the_number_of_statements_does_not_grow_with_the_payments(shop, monkeypatch):
    counted = sent(monkeypatch)
    needed = []
    ids = orders(shop, 50)
    _, scans = scans_of(shop, ids)
    for some in (ids[:10], ids[10:]):
        counted.clear()
        read(shop, {id: scans[id] for id in some})
        needed.append(len(counted))
    assert needed[0] == needed[1] < 60


def test_one_that_fails_stops_none_of_the_others(shop):
    ids = orders(shop, 10)
    _, scans = scans_of(shop, ids)
    shop.sql(f"UPDATE invoice SET amount_usd_quote = 'spoiled' WHERE id = '{ids[3]}'")  # noqa: S608
    report = Report()
    db = shop.service.db
    failed = try_apply(db, shop.service.settings, scans, shop.clock(), report)
    assert failed == {ids[3]} and report.failed == [ids[3]]
    paid = db.rows(
        invoices.LIST_BY_STATUS, merchant_id=shop.merchant_id, status="paid", limit=99
    )
    assert {row.id for row in paid} == {ids[n] for n in (0, 2, 4, 6, 8) if n % 5 != 2}
    assert is_summed(shop, shop.merchant_id)
