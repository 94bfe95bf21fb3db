"""Blocks that leave the best chain take their payments with them, and nothing else ever does."""

import json
import logging
import threading

import pytest

from btcpay.check.parts import undo_planned
from btcpay.check.undo import undo_above
from btcpay.sandbox.payer.wallet import double_spends, replace
from storage.database import open_database
from storage.queries import payments
from tests.support.builders import at_once, dump
from tests.support.fake_esplora import Terminal, say

pytestmark = pytest.mark.both_databases


def paid_invoice(till, **fields):
    """An invoice that is paid in the best block, and by which transaction."""
    invoice = till.shop.invoice(**fields)
    txid = till.pay(invoice)
    assert till.mine_and_check().new_statuses == {invoice["id"]: "paid"}
    return invoice, txid


def reorganise(till, depth=1, double_spend=False):
    """Other blocks in place of the last ones; their payments wait again, or have become void."""
    instead = double_spends(till.sandbox.wallet, depth) if double_spend else []
    return till.sandbox.chain.reorganise(depth, till.now, instead)


def looks(till, invoice, count=2):
    """Two looks: an output that no longer waits is gone when both have missed it."""
    for _ in range(count):
        till.clock.move(minutes=1)
        till.look_for(invoice)


def blocks_of(till, invoice):
    rows = till.shop.service.db.rows(payments.OUTPUTS, invoice_id=invoice["id"])
    return [(row.block_height, row.block_hash) for row in rows]


def height(till):
    return till.sandbox.chain.ledger.height


def test_a_payment_whose_block_is_lost_is_taken_back_and_waits_again(till, caplog):
    invoice, txid = paid_invoice(till)
    amount_sats = invoice["amount_sats"]
    lost = till.sandbox.chain.ledger.tip.hash
    reorganise(till)
    with caplog.at_level(logging.ERROR):
        run = till.check()
    assert (run.failed, run.new_statuses) == ([], {})
    shown = till.look(invoice)
    assert (shown["status"], shown["tx_hash"], shown["paid_at"]) == ("open", None, None)
    assert till.payments() == [] and till.balance() == (0, amount_sats)
    assert blocks_of(till, invoice) == [(None, None)]
    assert till.shop.sql("SELECT count(*) FROM proof").fetchone() == (0,)
    shown = Terminal(till).json("invoice", "show", invoice["id"])
    (event,) = (e for e in shown["events"] if e["kind"] == "reorganised")
    assert event["detail"]["txid"] == txid
    assert event["detail"]["block"] == {"height": height(till) - 1, "hash": lost}
    errors = [r.getMessage() for r in caplog.records if r.levelno == logging.ERROR]
    assert any(invoice["id"] in error and "open again" in error for error in errors)


def test_the_other_payment_of_an_invoice_is_a_part_again(till):
    invoice = till.shop.invoice()
    part = till.pay(invoice, 10_000)
    till.mine_and_check()
    assert till.confirm(invoice, invoice["amount_sats"] - 10_000).new_statuses == {
        invoice["id"]: "paid"
    }
    assert len(till.payments(invoice)) == 2
    reorganise(till, double_spend=True)
    till.check()
    assert till.look(invoice)["status"] == "open"
    assert [(p["tx_hash"], p["invoice_id"]) for p in till.payments()] == [(part, None)]
    assert till.balance() == (10_000, 10_000)
    rest = till.pay(invoice, invoice["amount_sats"] - 10_000)
    assert till.mine_and_check().new_statuses == {invoice["id"]: "paid"}
    assert {p["tx_hash"] for p in till.payments(invoice)} == {part, rest}


def test_what_was_beyond_the_amount_since_its_block_was_read_late_pays_when_the_other_is_lost(
    till,
):
    invoice = till.shop.invoice()
    till.check()
    first = till.pay(invoice)
    till.mine()
    late = till.sandbox.chain.ledger.tip.hash
    second = till.pay(invoice)
    till.mine()
    till.liar.lies = {f"/block/{late}/raw": lambda _: say("busy", 503)}
    till.check()
    till.liar.lies = {}
    till.check()
    assert [p["tx_hash"] for p in till.payments(invoice)] == [second]
    reorganise(till, double_spend=True)
    till.check()
    assert (
        till.look(invoice)["status"] == "paid"
        and till.look(invoice)["tx_hash"] == first
    )
    assert [(p["tx_hash"], p["invoice_id"]) for p in till.payments()] == [
        (first, invoice["id"])
    ]


def test_a_late_payment_is_taken_back_and_the_invoice_stays_expired(till):
    invoice = till.shop.invoice(expires_in_hours=1)
    till.clock.move(hours=2)
    till.check()
    till.confirm(invoice)
    assert [p["invoice_id"] for p in till.payments()] == [None]
    reorganise(till, double_spend=True)
    till.check()
    looks(till, invoice)
    assert till.look(invoice)["status"] == "expired"
    assert till.payments() == [] and till.balance() == (0, 0)
    assert "reorganised" in till.kinds(invoice)


def test_a_settlement_by_hand_does_not_survive_the_loss_of_its_payment(till):
    invoice = till.shop.invoice()
    blocktill = Terminal(till)
    till.confirm(invoice, 1_000)
    blocktill.run("invoice", "settle", invoice["id"], "--reason", "good enough")
    assert till.look(invoice)["status"] == "paid"
    assert till.check().new_statuses == {}
    reorganise(till, double_spend=True)
    till.check()
    looks(till, invoice)
    shown = blocktill.json("invoice", "show", invoice["id"])["invoice"]
    assert shown["status"] == "open" and not shown.get("settled_reason")
    assert till.payments() == [] and till.balance() == (0, 0)


def test_a_block_that_leaves_and_comes_back_has_its_payment_once_more_with_a_new_proof(
    till,
):
    """Two branches in turn: each is taken over when it has more work, and left again."""
    invoice, txid = paid_invoice(till)
    chain = till.sandbox.chain
    sent = chain.ledger.confirmed[txid].tx.raw
    for _ in range(3):
        chain.reorganise(1, till.now)
        till.check()
        assert till.payments() == []
        if txid not in chain.mempool.entries:
            chain.accept(sent, till.now)
        assert till.mine_and_check().new_statuses == {invoice["id"]: "paid"}
        assert [p["tx_hash"] for p in till.payments()] == [txid]
    assert till.balance() == (invoice["amount_sats"],) * 2
    block = chain.ledger.tip
    kinds = till.kinds(invoice)
    assert blocks_of(till, invoice) == [(height(till), block.hash)]
    (document,) = json.loads(
        Terminal(till).run("invoice", "show", invoice["id"], "--proof")[0]
    )
    assert document["headers"] == [block.header.hex()]
    assert (
        kinds.count("reorganised") == 3
        and kinds.count("paid") == kinds.count("payment") == 4
    )


def test_checks_at_the_same_time_undo_once(till):
    invoices = [paid_invoice(till)[0] for _ in range(3)]
    reorganise(till, depth=3, double_spend=True)
    barrier = threading.Barrier(4)
    till.liar.lies = {
        "/blocks/tip/hash": lambda text: barrier.wait(60) and text or text
    }

    def check(_):
        db = open_database(till.settings.database_url)
        run = till.checker(db).run()
        db.close()
        return not (run.failed or run.chain_failed)

    assert at_once(4, check) == [True] * 4
    assert [till.kinds(invoice).count("reorganised") for invoice in invoices] == [
        1,
        1,
        1,
    ]
    till.liar.lies = {}
    for invoice in invoices:
        looks(till, invoice)
    assert till.payments() == [] and till.balance() == (0, 0)
    assert {till.look(invoice)["status"] for invoice in invoices} == {"open"}


def test_undoing_again_does_nothing_and_neither_does_undoing_above_the_tip(till):
    paid_invoice(till)
    db = till.shop.service.db
    top = height(till)
    before = dump(till.shop)

    def undo(above):
        with db.write():
            undo_above(db, till.settings, above, till.clock())
        undo_planned(db, till.settings, till.clock())

    undo(top)
    assert dump(till.shop) == before
    undo(top - 1)
    after = dump(till.shop)
    assert after != before
    undo(top - 1)
    assert dump(till.shop) == after


@pytest.mark.parametrize(
    "seen_waiting", [True, False], ids=["seen waiting", "seen in its block"]
)
@pytest.mark.parametrize(
    "confirmations", ["1", "2"], ids=["paid by then", "not deep enough yet"]
)
def test_what_was_in_time_by_its_block_stays_in_time_when_the_block_is_lost(
    lied_to, seen_waiting, confirmations
):
    till = lied_to(BLOCKTILL_CONFIRMATIONS=confirmations)
    invoice = till.shop.invoice(expires_in_hours=1)
    till.clock.move(minutes=59)
    till.pay(invoice)
    if seen_waiting:
        till.look_for(invoice)
    till.mine()
    till.clock.move(minutes=30)
    is_paid = confirmations == "1"
    assert till.check().new_statuses == ({invoice["id"]: "paid"} if is_paid else {})
    reorganise(till)
    assert till.check().new_statuses == {}
    assert till.look(invoice)["status"] == "open"
    assert till.mine_and_check(2).new_statuses == {invoice["id"]: "paid"}


def test_what_had_vanished_by_a_block_that_is_lost_may_come_again(till):
    invoice = till.shop.invoice()
    txid = till.pay(invoice)
    till.look_for(invoice)
    sent = till.sandbox.chain.mempool.entries[txid].tx.raw
    replace(till.sandbox.wallet, till.now, txid, away=True)
    till.mine_and_check()
    assert till.kinds(invoice) == ["seen", "vanished"]
    till.sandbox.chain.reorganise(1, till.now, [sent])
    assert till.check().new_statuses == {invoice["id"]: "paid"}
    assert till.kinds(invoice)[:3] == ["seen", "vanished", "seen again"]
    assert till.balance() == (invoice["amount_sats"],) * 2
