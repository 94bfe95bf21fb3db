"""Histories and facts: only declared kinds and keys are ever written."""

import pytest

from btcpay.invoices.events import record
from storage.queries import events, meta
from storage.queries.events import Kind

pytestmark = pytest.mark.both_databases


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
