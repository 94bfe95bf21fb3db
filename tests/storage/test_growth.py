"""Queries stay fast as the shop grows: none reads a whole table that grows with its history."""

import random
import re

import pytest
from peewee import Delete, Select, Update

from btcpay.merchants.merchants import gap_of, gap_of_merchant
from btcpay.values.ids import new_id
from storage.models import Output
from storage.queries import invoices, merchants, payments
from storage.queries.totals import gaps
from storage.statement import Statement
from tests.support.builders import Clock, open_shop
from tests.support.databases import QUERIES, about_sqlite, plan

pytestmark = pytest.mark.both_databases

GROWING = (
    "invoice|output|payment|event|payment_link|proof|idempotency_key|api_key|attention|block"
    "|public_event|delivery|merchant_session|merchant_day|refund|refund_output|refund_transaction"
)
# A whole table, or a whole index of it, is read by these, and may be.
WHOLE = {
    "keys.ALL": "prints every key",
    "attentions.BY_REASON": "counts what wants a human, by an index that has nothing else",
    "blocks.FIRST": "ends at the first row of its index",
    "blocks.TOP": "likewise",
    "invoices.KEEP_PROVEN": "is run by `chain begin-anew`, once",
    "blocks.LAST_BEFORE": "is run by a restore, once",
    "refunds.NEWEST": "ends at the last row that is shown, in the order of its index",
    "refunds.LOWER": "is run by a reorganisation, once",
    "refunds.KEEP_OUTPUTS": "is run by `chain begin-anew`, once",
    "refunds.KEEP_TRANSACTIONS": "is run by `chain begin-anew`, once",
    "listings.WANTING": "ends at the last row that is shown, in the order of its index",
    "links.CURRENCIES": "is asked by the doctor alone",
    "idempotency.FREE": "is run by a restore, once",
    "sessions.END_EVERYTHING 1": "is run by a restore, once",
    "sessions.END_OF_OTHER_PASSWORDS": "is run at a start, of the browsers of thirty days",
    "sessions.END_OLD": "is run at a login, of the browsers of thirty days",
}
# Never run by themselves: others are made of them.
PARTS = {
    *("balances._SUMS", "listings._CHOSEN"),
    *(
        "invoices._CAME",
        "invoices._EVER_CAME",
        "invoices.CAME_SATS",
        "invoices._UNTOUCHED",
    ),
    *("invoices._GONE_AT", "invoices.WAITED_FOR"),
    *("refunds.TO_SEND", "refunds.TO_SEND_OF_OUTER"),
    *("bills.OVERDUE_OF_OUTER", "bills.DUE_OF_OUTER"),
    *("blocks._COIN", "listings._LISTED", "mempool_watch._WATCHED"),
    *("merchant_pages._INVOICES", "merchant_pages._PAYMENTS", "merchant_pages._SALES"),
    *("session_queries._OTHERS", "merchant_pages._LISTED_SALES"),
    *("merchant_pages._PAYMENTS_OF_SALE", "merchant_pages._STATES_OF_SALE 0"),
    *("refunds.OF_SALE", "refunds._WITH_INVOICE"),
    *(
        "deliveries._WHOLE",
        "deliveries._COUNTED",
        "deliveries._FIRST_OF_LINE",
        "bills._CLOSED_BY",
        "refunds._SOUGHT",
    ),
}
# Indexes that hold little, however long the history is.
SMALL = (
    *("block_unread", "block_spends", "invoice_personal"),
    *("public_event_new", "delivery_due"),
)


_PARTS = {id(QUERIES.get(name)) for name in PARTS}  # others import them by their names
CONSTANTS = {
    name: query
    for name, query in QUERIES.items()
    if isinstance(query, Select | Update | Delete) and id(query) not in _PARTS
}


def scans(db, query):
    """The lines of its plan that read all of a table that grows, or an index on all of it."""
    result = plan(db, query)
    sql = Statement(db.connection, query).sql
    aliases = re.findall(rf'"({GROWING})"(?: AS "(t\d+)")?', sql)
    growing = {name for pair in aliases for name in pair}
    lines = re.findall(r"SCAN (\w+)(.*)", result)
    return [
        table + how
        for table, how in lines
        if table in growing and not how.endswith(SMALL)
    ]


@pytest.fixture(scope="module")
def db(tmp_path_factory, ticker):
    """For tests that only have plans explained."""
    folder = tmp_path_factory.mktemp("explained")
    with open_shop(folder, ticker.url, Clock()) as opened:
        yield opened.service.db


# SQLite chooses without having counted rows; a server counts them, and has the same indexes.
@about_sqlite
@pytest.mark.parametrize("name", sorted(CONSTANTS.keys() - WHOLE.keys()))
def test_no_query_reads_all_of_a_table_that_grows(db, name):
    assert scans(db, CONSTANTS[name]) == []


def came(db, invoice, vanished):
    """A check's effect on outputs: one comes, or the waiting one vanishes."""
    with db.write():
        if vanished:
            db.run(
                Output.update({Output.vanished_ms: 1}).where(
                    Output.invoice_id == invoice.id
                )
            )
        else:
            columns = dict.fromkeys(field.name for field in Output._meta.sorted_fields)
            columns |= {"txid": new_id("inv"), "vout": 0, "invoice_id": invoice.id}
            columns |= {
                "merchant_id": invoice.merchant_id,
                "amount_sats": 1,
                "coinbase": 0,
            }
            columns |= {"first_seen_ms": 1, "seen_waiting": 1, "spent_height": None}
            db.run(payments.PUT_OUTPUT, **columns)
        gaps.note(db, [db.get(invoices.WHOLE, id=invoice.id)])


@pytest.mark.parametrize("seed", range(4))
def test_the_gap_that_is_kept_is_the_one_between_all_paid_addresses(shop, seed):
    db = shop.service.db
    chance = random.Random(seed)
    paid = set[int]()
    made = [db.get(invoices.WHOLE, id=shop.invoice()["id"]) for _ in range(20)]
    merchant = db.get(merchants.BY_ID, id=shop.merchant_id)
    for _ in range(60):
        invoice = chance.choice(made)
        is_paid = invoice.address_index in paid
        came(db, invoice, vanished=is_paid)
        paid ^= {invoice.address_index}
        assert gap_of_merchant(db, merchant) == gap_of(
            None, None, merchant.next_index, sorted(paid)
        )
