"""A mempool that invents, or may be cut: what is kept of it, and what it holds, has a bound."""

import pytest

from btcpay.check import settlements
from btcpay.check.apply import apply
from btcpay.sandbox.node.script import script_of
from btcpay.sandbox.payer.wallet import replace
from btcpay.settlement.bound import MOST_KEPT
from btcpay.settlement.values import Scan, SeenOutput
from storage.queries import events, payments
from storage.queries.lists import mempool_watch
from tests.support.attention_cases import reason_of
from tests.support.builders import is_summed
from tests.support.fake_esplora import tx_of

pytestmark = pytest.mark.both_databases
SHOWN = 148
INPUTS = tuple(f"{number:064x}:0" for number in range(100))


def invented(look, sats):
    txids = [f"{look:032x}{number:032x}" for number in range(SHOWN)]
    return [SeenOutput(txid, 0, sats, inputs=INPUTS) for txid in txids]


def look(shop, invoice, *shown, is_cut=False):
    scan = Scan(shop.clock(), 100, waiting=shown, absent_is_gone=True, is_cut=is_cut)
    apply(shop.service.db, shop.service.settings, {invoice["id"]: scan}, shop.clock())


def rows(shop, invoice):
    return shop.service.db.rows(payments.OUTPUTS, invoice_id=invoice["id"])


@pytest.fixture
def long_after(monkeypatch):
    """As if a thousand lines were three hundred."""
    monkeypatch.setattr(settlements, "LONG_HISTORY", 300)
    yield


@pytest.mark.parametrize("is_cut", [True, False], ids=["a cut list", "a whole list"])
def test_what_is_invented_has_a_bound_and_the_payers_stays(shop, long_after, is_cut):
    invoice = shop.invoice()
    db = shop.service.db
    ours = SeenOutput("0a" * 32, 0, invoice["amount_sats"], inputs=(f"{'ab' * 32}:0",))
    look(shop, invoice, ours)
    for number in range(1, 7):
        shop.clock.move(minutes=4)
        look(shop, invoice, *invented(number, 330), ours, is_cut=is_cut)
        assert is_summed(shop)
        waiting = [row for row in rows(shop, invoice) if row.vanished_ms is None]
        assert len(waiting) == MOST_KEPT and ours.txid in {row.txid for row in waiting}
    assert len(rows(shop, invoice)) <= 2 * MOST_KEPT
    assert len(db.rows(mempool_watch.INPUTS, invoice_id=invoice["id"])) <= 2 * MOST_KEPT
    lines = db.rows(events.OF_INVOICE, invoice_id=invoice["id"])
    assert len(lines) <= 300 + 2 * (MOST_KEPT + SHOWN)


def test_what_vanished_an_hour_ago_is_a_line_of_history_that_no_look_loads(till):
    shop = till.shop
    db = till.shop.service.db
    invoice = shop.invoice()
    look(shop, invoice, *invented(1, 330))
    look(shop, invoice)
    assert till.check().complete
    assert len(db.rows(mempool_watch.INPUTS, invoice_id=invoice["id"])) == MOST_KEPT
    shop.clock.move(minutes=61)
    assert till.check().complete
    known = db.rows(
        payments.KNOWN, invoice_id=invoice["id"], vanished_after=till.now * 1000
    )
    assert known == [] and {row.inputs for row in rows(shop, invoice)} == {None}
    assert (
        len(rows(shop, invoice)) == MOST_KEPT and till.kinds(invoice)[-1] == "vanished"
    )
    # An output that is shown again keeps the time of its first sight.
    before = min(row.first_seen_ms for row in rows(shop, invoice))
    look(shop, invoice, invented(1, 330)[0])
    again = [row for row in rows(shop, invoice) if row.vanished_ms is None]
    assert [row.first_seen_ms for row in again] == [before] and is_summed(shop)


def show(till, invoice, *txs):
    """The liar's mempool, for this invoice's address."""
    till.liar.lies[f"^/address/{invoice['deposit_address']}/txs/mempool"] = lambda _: (
        list(txs)
    )


def sighting(invoice, number, sats):
    return tx_of(number, script_of(invoice["deposit_address"]), sats)


@pytest.mark.parametrize("block", ["of no height", "of the tip"])
def test_a_sighting_that_is_said_to_be_in_a_block_is_not_even_one(till, block):
    invoice = till.shop.invoice()
    till.check()
    tip = till.sandbox.chain.ledger
    of_block = {
        "block_height": tip.height,
        "block_hash": tip.tip.hash,
        "block_time": till.now,
    }
    if block == "of no height":
        of_block |= {"block_height": 90_000_000, "block_hash": "ab" * 32}
    shown = sighting(invoice, 1, invoice["amount_sats"])
    show(till, invoice, shown | {"status": {"confirmed": True} | of_block})
    assert till.look_for(invoice).complete
    assert rows(till.shop, invoice) == [] and till.balance() == (0, 0)


def test_a_fee_that_is_raised_after_the_deadline_makes_nobody_late(till):
    invoice = till.shop.invoice(expires_in_hours=1)
    txid = till.pay(invoice)
    till.look_for(invoice)
    till.clock.move(minutes=61)
    raised = replace(till.sandbox.wallet, till.now, txid)
    assert till.mine_and_check().new_statuses == {invoice["id"]: "paid"}
    assert [one["tx_hash"] for one in till.payments(invoice)] == [raised]
    assert till.balance() == (invoice["amount_sats"],) * 2
    assert reason_of(till, invoice) is None


def test_25_small_payments_hold_an_end_for_a_day_and_late_money_then_wants_attention(
    till,
):
    invoice = till.shop.invoice(expires_in_hours=1)
    path = f"^/address/{invoice['deposit_address']}/txs/mempool"
    dust = [sighting(invoice, number, 330) for number in range(1, 26)]
    till.liar.lies[path] = lambda true: [*dust, *true]
    till.look_for(invoice)
    till.clock.move(hours=2)
    assert till.confirm(invoice).complete and till.look_for(invoice).new_statuses == {}
    assert (
        till.look(invoice)["status"] == "open"
        and till.payments()[0]["invoice_id"] is None
    )
    till.clock.move(hours=23.1)
    assert till.look_for(invoice).new_statuses == {invoice["id"]: "expired"}
    assert reason_of(till, invoice) == "paid_late"
    assert till.balance()[0] == invoice["amount_sats"]
