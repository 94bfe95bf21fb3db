"""Statuses: the schema, the database and the JSON have the words that the program compares."""

import ast
import re

import orjson
import pytest

from btcpay.values import statuses
from tests.support.paths import PROJECT

SCHEMA = (PROJECT / "storage/schema/0001_first.sql").read_text(encoding="utf-8")
STORED = {
    "invoice": statuses.InvoiceStatus,
    "payment_link": statuses.LinkStatus,
    "refund": statuses.RefundStatus,
}


@pytest.mark.parametrize("table", STORED)
def test_the_schema_allows_just_these_statuses(table):
    statement = re.search(rf"CREATE TABLE {table} \((.*?)\n\);", SCHEMA, re.S)[1]
    allowed = re.search(r"status TEXT NOT NULL CHECK \(status IN \((.*)\)\)", statement)
    assert re.findall("'(.*?)'", allowed[1]) == list(STORED[table])


def test_a_page_shows_each_status_or_how_far_an_open_invoice_is():
    ended = set(statuses.InvoiceStatus) - {statuses.InvoiceStatus.OPEN}
    assert ended < set(statuses.CheckoutState)


def test_json_has_the_plain_word():
    assert orjson.dumps([statuses.InvoiceStatus.PAID]) == b'["paid"]'


def _is_status(node):
    name = node.attr if isinstance(node, ast.Attribute) else getattr(node, "id", "")
    return name in ("status", "state")


def _has_words(node):
    words = getattr(node, "elts", [node])
    return any(isinstance(getattr(word, "value", None), str) for word in words)


def test_no_status_is_compared_with_a_string_which_might_be_misspelt():
    """The sandbox apart: it is a program of its own, and its `state` is a switch."""
    found = []
    for path in sorted((PROJECT / "btcpay").rglob("*.py")) + sorted(
        (PROJECT / "storage").rglob("*.py")
    ):
        if "sandbox" in path.parts:
            continue
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.Compare):
                others = node.comparators
                if _is_status(node.left) and any(map(_has_words, others)):
                    found.append(f"{path.relative_to(PROJECT)}:{node.lineno}")
    assert found == []
