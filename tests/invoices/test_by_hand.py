"""Cancel, settle by hand, dismiss: the functions below the command line, and what they refuse."""

import pytest

from btcpay.invoices import by_hand
from btcpay.invoices.events import record
from btcpay.values.errors import CommandError
from storage.queries import events, meta
from storage.queries.events import Kind

pytestmark = pytest.mark.both_databases


def paid_in_part(till, mined=1):
    invoice = till.shop.invoice()
    till.pay(invoice, 1_000)
    if mined:
        till.mine(mined)
    till.check(), till.look_for(invoice)
    return invoice


def cancel(till, invoice_id, force=False):
    by_hand.cancel(till.shop.service.db, till.settings, invoice_id, till.clock(), force)


def settle(till, invoice_id, reason="a friend"):
    by_hand.settle(till.shop.service.db, till.settings, invoice_id, reason, till.clock())


def dismiss(till, invoice_id, reason="sent back"):
    return by_hand.dismiss(till.shop.service.db, till.settings, invoice_id, reason, till.clock())


def refused(message):
    return pytest.raises(CommandError, match=message)


@pytest.mark.parametrize("mined", [0, 1], ids=["waiting", "a part"])
def test_a_cancellation_is_refused_while_money_is_on_its_way_unless_forced(till, mined):
    invoice = paid_in_part(till, mined)
    with refused("1000 satoshis.*--force"):
        cancel(till, invoice["id"])
    assert till.look(invoice)["status"] == "open"
    cancel(till, invoice["id"], force=True)
    assert till.look(invoice)["status"] == "canceled"
    with refused("the invoice is canceled"):
        cancel(till, invoice["id"], force=True)


def test_a_settlement_is_refused_when_nothing_confirmed_came_or_it_is_paid(till):
    invoice = till.shop.invoice()
    with refused("nothing to accept"):
        settle(till, invoice["id"])
    till.pay(invoice)
    till.check()
    with refused("nothing to accept"):
        settle(till, invoice["id"])
    till.mine()
    till.check()
    with refused("paid already"):
        settle(till, invoice["id"])


def test_a_dismissal_says_what_was_wanted_and_is_refused_when_nothing_is(till):
    invoice = paid_in_part(till)
    with refused("nothing about"):
        dismiss(till, invoice["id"])
    cancel(till, invoice["id"], force=True)
    till.confirm(invoice, 2_000)
    assert dismiss(till, invoice["id"]) == "after_cancellation"
    with refused("nothing about"):
        dismiss(till, invoice["id"])
    assert till.kinds(invoice).count("dismissed") == 1


def test_an_empty_reason_and_an_unknown_invoice_are_refused(till):
    invoice = paid_in_part(till)
    before = till.kinds(invoice)
    for end in (settle, dismiss):
        with refused("needs a reason"):
            end(till, invoice["id"], " ")
    for end in (cancel, settle, dismiss):
        with refused("'inv_x'"):
            end(till, "inv_x")
    assert till.kinds(invoice) == before


def test_declared_kinds_are_stored_by_their_names_and_no_other_kind_or_key_is_written(shop):
    db, invoice = shop.service.db, shop.invoice()
    for kind in Kind:
        record(db, invoice["id"], kind, {}, shop.clock())
    with pytest.raises(ValueError, match="lost"):
        record(db, invoice["id"], "lost", {}, shop.clock())
    with pytest.raises(ValueError, match="secret"):
        meta.put(db, "secret", "1")
    stored = [row.kind for row in db.rows(events.OF_INVOICE, invoice_id=invoice["id"])]
    assert stored == list(Kind)
    assert shop.sql("SELECT 1 FROM meta WHERE name = 'secret'").fetchall() == []
