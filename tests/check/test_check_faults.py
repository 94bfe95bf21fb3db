"""The check when something goes wrong: explorers, other checks, spoiled rows, its own death."""

import pytest

from btcpay.bitcoin.address import script_of
from btcpay.check.report import Report
from storage.queries import blocks
from tests.support.builders import REGTEST, dump
from tests.support.databases import ON_POSTGRES
from tests.support.dying import run_until_death
from tests.support.fake_esplora import Terminal, tx_of

pytestmark = pytest.mark.both_databases


def test_the_same_check_again_and_again_changes_nothing(till):
    paid, part, late, seen, canceled = (
        till.shop.invoice(**fields)
        for fields in ({}, {}, {"expires_in_hours": 1}, {}, {})
    )
    till.pay(paid), till.pay(part, 1_000)
    till.mine()
    till.clock.move(hours=2)
    till.pay(late), till.pay(paid), till.pay(canceled)
    till.mine()
    till.pay(seen)
    till.open_page(seen)
    till.check()
    before = dump(till.shop)
    assert len(before["payment"]) == 5 and len(before["output"]) == 6
    for _ in range(20):
        till.clock.move(seconds=2)
        assert till.check().new_statuses == {}
    assert dump(till.shop) == before


def test_what_cannot_be_stored_for_one_invoice_does_not_keep_others_from_their_payment(
    till,
):
    """Its block is read again until it can: another's payment was made at once, and once."""
    one, two, later = (till.shop.invoice() for _ in range(3))
    when = f"WHEN (NEW.invoice_id = '{one['id']}')"
    if ON_POSTGRES:
        body = "BEGIN RAISE 'no room'; END"
        till.shop.sql(
            f"CREATE FUNCTION fail() RETURNS trigger LANGUAGE plpgsql AS $${body}$$"
        )
        then = f"FOR EACH ROW {when} EXECUTE FUNCTION fail()"
    else:
        then = f"{when} BEGIN SELECT RAISE(ABORT, 'no room'); END"
    till.shop.sql(f"CREATE TRIGGER broken BEFORE INSERT ON output {then}")
    till.pay(one), till.pay(two)
    till.mine()
    run = till.confirm(later)
    assert run.failed == [one["id"]] and not run.complete
    assert run.new_statuses == {two["id"]: "paid", later["id"]: "paid"}
    assert till.look(one)["status"] == "open" and len(till.payments()) == 2
    till.shop.sql("DROP TRIGGER broken" + (" ON output" if ON_POSTGRES else ""))
    run = till.check()
    assert (run.complete, run.new_statuses) == (True, {one["id"]: "paid"})
    assert len(till.payments()) == 3 and till.kinds(two) == ["seen", "payment", "paid"]


def test_an_output_once_shown_at_a_wrong_address_is_found_at_the_right_one(till):
    wrong = till.shop.invoice()
    right = till.shop.invoice()
    txid = till.pay(right)
    script = script_of(wrong["deposit_address"], REGTEST)
    lie = tx_of(1, script, wrong["amount_sats"], txid=txid)
    till.liar.lies = {f"/address/{wrong['deposit_address']}": lambda _: [lie]}
    till.look_for(wrong)
    till.liar.lies = {}
    till.mine()
    till.look_for(wrong)
    assert till.look(right)["status"] == "paid"
    assert till.balance() == (right["amount_sats"], right["amount_sats"])


def test_the_page_does_not_say_paid_before_the_invoice_is(lied_to):
    """A killed run knows a higher tip and has settled nothing yet."""
    till = lied_to(BLOCKTILL_CONFIRMATIONS="2")
    invoice = till.shop.invoice()
    till.confirm(invoice)
    till.mine()
    checker = till.checker()
    checker.follow(Report())
    assert blocks.tip_height(checker.db) == till.sandbox.chain.ledger.height
    assert till.look(invoice)["status"] == "open" and till.payments() == []
    assert till.shop.client.get(f"/pay/{invoice['id']}/status").json["status"] == "open"
    assert "Paid" not in till.shop.client.get(f"/pay/{invoice['id']}").text


def spoil(till, invoice, what):
    till.shop.sql(f"UPDATE invoice SET {what} WHERE id = '{invoice['id']}'")  # noqa: S608


def test_blocks_that_pay_a_spoiled_invoice_keep_no_other_from_being_read(till):
    odd = till.shop.invoice()
    sound = till.shop.invoice()
    assert till.check().complete
    spoil(till, odd, "amount_usd_quote = 'much'")
    for _ in range(4):
        till.pay(odd, 1_000)
        till.mine()
    assert till.confirm(sound).new_statuses == {sound["id"]: "paid"}


def test_a_part_that_waits_for_depth_at_a_spoiled_invoice_stops_no_run(till):
    odd = till.shop.invoice()
    sound = till.shop.invoice(amount_usd=5000)
    till.confirm(odd, 1_000)
    till.shop.sql("UPDATE output SET payment_id = NULL")
    spoil(till, odd, "amount_usd_quote = 'much'")
    till.pay(sound)
    report = till.mine_and_check(6)
    assert report.new_statuses == {sound["id"]: "paid"} and odd["id"] in report.failed


def test_what_waits_with_spoiled_inputs_stops_no_run(till):
    odd = till.shop.invoice()
    sound = till.shop.invoice()
    till.pay(odd, 1_000)
    till.look_for(odd)
    till.shop.sql("UPDATE output SET inputs = 'one'")
    till.confirm(sound)
    assert till.look(sound)["status"] == "paid"


def test_a_spoiled_address_stops_no_run(till):
    odd = till.shop.invoice()
    sound = till.shop.invoice()
    spoil(till, odd, "deposit_address = 'one'")
    till.open_page(odd, sound)
    report = till.confirm(sound)
    assert (
        report.new_statuses == {sound["id"]: "paid"} and odd["id"] in report.unreached
    )


@pytest.mark.parametrize(
    "what", ["invoice SET amount_usd_quote = 'much'", "event SET detail = '{'"]
)
def test_a_block_that_leaves_with_a_payment_to_a_spoiled_invoice_stops_no_run(
    till, what
):
    odd = till.shop.invoice()
    till.confirm(odd)
    till.shop.sql(f"UPDATE {what}")  # noqa: S608
    sound = till.shop.invoice()
    till.sandbox.chain.reorganise(1, till.now)
    assert till.confirm(sound).new_statuses == {sound["id"]: "paid"}
    assert [payment["invoice_id"] for payment in till.payments()] == [sound["id"]]


@pytest.mark.parametrize("moment", [2, 5])
def test_a_check_that_is_killed_is_finished_by_the_next(open_tills, moment):
    till = open_tills(has_begun=False)
    invoice = till.shop.invoice()
    till.pay(invoice)
    till.mine()
    run_until_death(moment, "check", **till.shop.environ)
    assert "skipped" not in Terminal(till).json("check")
    assert till.look(invoice)["status"] == "paid"
    assert len(till.payments()) == 1 == till.kinds(invoice).count("paid")
