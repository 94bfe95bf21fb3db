"""Queries stay fast as the shop grows: none reads a whole table that grows with its history."""

import re

import pytest
from databases import QUERIES, about_sqlite, plan
from peewee import Delete, Select, Update

from storage.statement import Statement

pytestmark = pytest.mark.both_databases

GROWING = (
    "invoice|output|payment|event|payment_link|proof|idempotency_key|api_key|attention|block"
    "|public_event|delivery|merchant_session|merchant_day|refund|refund_output"
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
    "listings.WANTING": "ends at the last row that is shown, in the order of its index",
    "links.CURRENCIES": "is asked by the doctor alone",
    "idempotency.FREE": "is run by a restore, once",
    "sessions.END_EVERYTHING 1": "is run by a restore, once",
    "sessions.END_OLD": "is run at a login, of the browsers of thirty days",
}
# Never run by themselves: others are made of them.
PARTS = {
    *("balances._SUMS", "listings._CHOSEN"),
    *("invoices._CAME", "invoices._EVER_CAME", "invoices.CAME_SATS", "invoices._UNTOUCHED"),
    *("invoices._GONE_AT", "invoices._WAITED_FOR", "sessions._REFUNDS", "sessions._WANTING"),
    *("blocks._COIN", "listings._LISTED", "mempool_watch._WATCHED"),
    *("merchant_pages._INVOICES", "merchant_pages._PAYMENTS", "merchant_pages._SALES"),
    *("deliveries._WHOLE", "deliveries._COUNTED", "bills._ENDED", "refunds._SOUGHT"),
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
    return [table + how for table, how in lines if table in growing and not how.endswith(SMALL)]


# SQLite chooses without having counted rows; a server counts them, and has the same indexes.
@about_sqlite
@pytest.mark.parametrize("name", sorted(CONSTANTS.keys() - WHOLE.keys()))
def test_no_query_reads_all_of_a_table_that_grows(shop, name):
    assert scans(shop.service.db, CONSTANTS[name]) == []
