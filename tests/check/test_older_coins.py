"""A coin that is older than an invoice pays nothing of it: the address was used before."""

import pytest

from btcpay.check.beginning import begin_chain
from btcpay.check.undo import begin_anew
from btcpay.merchants.account import derive
from storage.queries import attentions, blocks, merchants
from tests.support.builders import finish
from tests.support.fake_esplora import Terminal

pytestmark = pytest.mark.both_databases
refunds = pytest.importorskip("btcpay.parts.refunds.sums")


def sums(till, invoice):
    """Satoshis that came for the invoice, and those of its refunds."""
    db = till.shop.service.db
    made = refunds.refunds_of(db, invoice["id"])
    return refunds.came_sats_of(db, invoice["id"]), refunds.total_sats_of(made)


@pytest.fixture
def till(lied_to):
    """A shop with a merchant whose chain has not begun."""
    return lied_to(has_begun=False)


def begin(till):
    """As every way to make a merchant does."""
    return begin_chain(till.shop.service.db, till.settings, till.clock)


def pay_first_address(till, sats=41_667):
    """A test payment to address 0 of the account, before anybody was asked for money."""
    (row,) = till.shop.service.db.rows(merchants.ALL)
    address = derive(row.descriptor, 0, till.settings.network)
    return till.sandbox.wallet.pay(address, sats, till.now)


def above(till, invoice):
    sql = f"SELECT above_height FROM invoice WHERE id = '{invoice['id']}'"  # noqa: S608
    return till.shop.sql(sql).fetchone()[0]


def unapplied_sats(till, invoice):
    sql = f"SELECT unapplied_sats FROM invoice WHERE id = '{invoice['id']}'"  # noqa: S608
    return till.shop.sql(sql).fetchone()[0]


def height(till):
    return till.sandbox.chain.ledger.height


def reason(till, invoice):
    row = till.shop.service.db.get_or_none(
        attentions.OF_INVOICE, invoice_id=invoice["id"]
    )
    return row and row.reason


def test_a_test_payment_before_the_shop_opened_gives_no_goods_away(till):
    """The wallet is tried, minutes later the shop is made, and its first invoice is for as much."""
    txid = pay_first_address(till)
    till.mine()
    till.clock.move(minutes=5)
    assert begin(till)
    invoice = till.shop.invoice()
    report = till.check()
    assert report.complete and till.look(invoice)["status"] == "open"
    (payment,) = till.payments()
    assert (payment["tx_hash"], payment["invoice_id"]) == (txid, None)
    assert till.confirm(invoice).new_statuses == {invoice["id"]: "paid"}
    assert (
        reason(till, invoice) is None
    )  # nobody has paid too much, and nothing is owed
    assert unapplied_sats(till, invoice) == 0
    assert sums(till, invoice) == (invoice["amount_sats"], 0)


@pytest.mark.parametrize("status", ["expired", "canceled"])
def test_an_older_coin_is_no_late_money_of_an_invoice_that_ends(till, status):
    """A plug-in would complete the order for it, and a merchant accept it."""
    pay_first_address(till)
    till.mine()
    till.clock.move(minutes=5)
    begin(till)
    invoice = till.shop.invoice()
    finish(till.shop, invoice, status)
    till.check()
    assert len(till.payments()) == 1
    assert (reason(till, invoice), unapplied_sats(till, invoice)) == (None, 0)
    assert sums(till, invoice) == (0, 0)


def test_the_tip_is_known_before_the_first_invoice_and_no_block_is_read_for_it(till):
    assert begin(till)
    assert not till.liar.count("^/address") and till.liar.count("/raw$") == 1
    till.liar.asked.clear()
    invoice = till.shop.invoice()
    assert above(till, invoice) == height(till)
    assert begin(till) and till.liar.asked == []  # it is begun once


def test_where_no_source_answers_the_next_check_begins_without_an_invoice(till):
    till.liar.instead = lambda _: (
        lambda request: setattr(request, "close_connection", True)
    )
    assert not begin(till)
    assert till.shop.service.db.get_or_none(blocks.TOP) is None
    till.liar.instead = lambda _: None
    report = till.check()
    assert report.complete and report.has_tip and report.blocks_read == 0
    assert above(till, till.shop.invoice()) == height(till)


def test_an_invoice_before_any_source_answered_keeps_the_two_hours_and_wants_attention(
    till,
):
    pay_first_address(till)
    till.mine()
    till.clock.move(minutes=5)
    invoice = till.shop.invoice()
    assert above(till, invoice) is None
    assert till.check().new_statuses == {invoice["id"]: "paid"}
    assert reason(till, invoice) == "older_coin"
    said = Terminal(till).run("invoice", "list", "--attention")[0]
    assert "older_coin" in said
    Terminal(till).run("invoice", "dismiss", invoice["id"], "--reason", "it was hers")
    assert reason(till, invoice) is None


def test_an_invoice_before_any_source_answered_that_is_paid_after_it_wants_none(till):
    invoice = till.shop.invoice()
    till.clock.move(minutes=5)
    assert till.confirm(invoice).new_statuses == {invoice["id"]: "paid"}
    assert reason(till, invoice) is None


def test_a_block_that_replaces_one_of_the_same_height_may_have_the_payment(till):
    begin(till)
    till.mine_and_check(2)
    invoice = till.shop.invoice()
    tip = height(till)
    assert above(till, invoice) == tip
    chain = till.sandbox.chain
    raw = chain.mempool.entries[till.pay(invoice)].tx.raw
    chain.reorganise(1, till.now, [raw])
    assert till.check().new_statuses == {invoice["id"]: "paid"}
    assert above(till, invoice) == tip - 1
    assert till.shop.sql("SELECT block_height FROM output").fetchall() == [(tip,)]


def test_a_check_a_day_late_takes_what_came_after_the_invoice_and_nothing_older(till):
    begin(till)
    till.mine()
    till.check()
    older = till.shop.invoice()
    invoice = till.shop.invoice()
    finish(till.shop, older, "canceled")
    till.pay_in_block(invoice)
    till.clock.move(days=1)
    till.mine(3)
    assert till.check().new_statuses == {invoice["id"]: "paid"}
    assert reason(till, invoice) is None


def test_a_chain_that_is_begun_anew_asks_about_open_invoices_and_leaves_the_others(
    till,
):
    begin(till)
    ended = till.shop.invoice()
    invoice = till.shop.invoice()
    finish(till.shop, ended, "canceled")
    begin_anew(till.shop.service.db, till.settings, till.clock())
    assert (above(till, ended), above(till, invoice)) == (-1, None)
    assert till.check().complete
    assert till.confirm(invoice).new_statuses == {invoice["id"]: "paid"}


def test_blocks_of_weeks_before_the_first_invoice_are_passed_over(till):
    """No check ran since the merchant was made."""
    begin(till)
    for _ in range(15):
        till.clock.move(days=1)
        till.mine(10)
    till.clock.move(hours=1)
    invoice = till.pay_in_block()
    report = till.check()
    assert report.new_statuses == {invoice["id"]: "paid"} and report.complete
    assert report.blocks_read <= 12
