"""Histories and facts: only declared kinds and keys are ever written."""

import ast

import pytest
from paths import PROJECT

from btcpay.invoices.events import record
from storage.queries import events, meta
from storage.queries.events import Kind

pytestmark = pytest.mark.both_databases

SOURCES = [
    path for folder in ("btcpay", "storage") for path in sorted((PROJECT / folder).rglob("*.py"))
]
# The functions that write or read, and which of their arguments says the kind or the key.
SAYS = {"record": 2, "meta.get": 1, "meta.put": 1, "meta.keep": 1, "meta.time": 1}


def said(path):
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Call) and (place := SAYS.get(ast.unparse(node.func))):
            yield node.args[place]


def kinds_of_a_scan():
    """What settlement calls that which a scan has changed; it knows no storage."""
    tree = ast.parse((PROJECT / "btcpay/settlement/settle.py").read_text(encoding="utf-8"))
    (found,) = (n for n in ast.walk(tree) if isinstance(n, ast.FunctionDef) and n.name == "kind")
    for node in ast.walk(found):
        if isinstance(node, ast.Constant) and node.value and node.value != ast.get_docstring(found):
            yield Kind(node.value)


def test_the_product_names_kinds_and_keys_by_their_declarations():
    found = [(path.name, argument) for path in SOURCES for argument in said(path)]
    assert len(found) >= 15
    assert [(name, a.value) for name, a in found if isinstance(a, ast.Constant)] == []


def test_every_kind_is_written_and_every_key_used_somewhere():
    written = {ast.unparse(argument) for path in SOURCES for argument in said(path)}
    ends = {Kind.PAID, Kind.EXPIRED, Kind.CANCELED}  # `finish` writes the status as a kind
    scanned = set(kinds_of_a_scan())
    assert len(scanned) == 5
    assert [kind for kind in set(Kind) - ends - scanned if f"Kind.{kind.name}" not in written] == []
    text = "".join(path.read_text(encoding="utf-8") for path in SOURCES)
    assert [key for key in meta.Key if f"Key.{key.name}" not in text] == []


def test_declared_kinds_are_stored_by_their_names_and_no_other_kind_or_key_is_written(shop):
    db, invoice = shop.service.db, shop.invoice()
    for kind in Kind:
        record(db, invoice["id"], kind, {}, shop.clock())
    with pytest.raises(ValueError, match="lost"):
        record(db, invoice["id"], "lost", {}, shop.clock())
    with pytest.raises(ValueError, match="secret"):
        meta.put(db, "secret", "1")
    stored = [row["kind"] for row in db.rows(events.OF_INVOICE, invoice_id=invoice["id"])]
    assert stored == list(Kind) and "secret" not in meta.all(db)
