"""A bill's statuses: the schema has the words that the program compares."""

import re

from btcpay.parts.bills.models import BillStatus
from tests.support.paths import PROJECT

SCHEMA = (PROJECT / "storage/schema/0001_first.sql").read_text(encoding="utf-8")


def test_the_schema_allows_just_the_statuses_of_a_bill():
    statement = re.search(r"CREATE TABLE bill \((.*?)\n\);", SCHEMA, re.S)[1]
    allowed = re.search(r"status TEXT NOT NULL CHECK \(status IN \((.*)\)\)", statement)
    assert re.findall("'(.*?)'", allowed[1]) == list(BillStatus)
