"""One invoice whose rows are spoiled: the others are somebody's money too."""

import pytest

pytestmark = pytest.mark.both_databases


def spoil(till, invoice, what):
    till.shop.sql(f"UPDATE invoice SET {what} WHERE id = '{invoice['id']}'")  # noqa: S608


def test_blocks_that_pay_a_spoiled_invoice_keep_no_other_from_being_read(till):
    odd, sound = till.shop.invoice(), till.shop.invoice()
    assert till.check().complete
    spoil(till, odd, "amount_usd_quote = 'much'")
    for _ in range(4):
        till.pay(odd, 1_000)
        till.mine()
    assert till.confirm(sound).changed == {sound["id"]: "paid"}


def test_a_part_that_waits_for_depth_at_a_spoiled_invoice_stops_no_run(till):
    odd, sound = till.shop.invoice(), till.shop.invoice(amount_usd=5000)
    till.confirm(odd, 1_000)
    till.shop.sql("UPDATE output SET payment_id = NULL")
    spoil(till, odd, "amount_usd_quote = 'much'")
    till.pay(sound)
    till.mine(6)
    report = till.check()
    assert report.changed == {sound["id"]: "paid"} and odd["id"] in report.failed


def test_what_waits_with_spoiled_inputs_stops_no_run(till):
    odd, sound = till.shop.invoice(), till.shop.invoice()
    till.pay(odd, 1_000)
    till.look_for(odd)
    till.shop.sql("UPDATE output SET inputs = 'one'")
    till.confirm(sound)
    assert till.look(sound)["status"] == "paid"


def test_a_spoiled_address_stops_no_run(till):
    odd, sound = till.shop.invoice(), till.shop.invoice()
    spoil(till, odd, "deposit_address = 'one'")
    till.open_page(odd, sound)
    report = till.confirm(sound)
    assert report.changed == {sound["id"]: "paid"} and odd["id"] in report.unreached


@pytest.mark.parametrize(
    "what", ["invoice SET amount_usd_quote = 'much'", "event SET detail = '{'"]
)
def test_a_block_that_leaves_with_a_payment_to_a_spoiled_invoice_stops_no_run(till, what):
    odd = till.shop.invoice()
    till.confirm(odd)
    till.shop.sql(f"UPDATE {what}")  # noqa: S608
    sound = till.shop.invoice()
    till.sandbox.chain.reorganise(1, till.now)
    assert till.confirm(sound).changed == {sound["id"]: "paid"}
    assert [payment["invoice_id"] for payment in till.payments()] == [sound["id"]]
