"""The figures stored for pages say the same as the outputs, and at once."""

import pytest

from btcpay.checkout.snapshot import snapshot_of, status_of
from btcpay.invoices.status import verdict_on
from storage.queries import invoices, payments
from tests.support.builders import finish, pay

CASES = {
    "nothing": [],
    "a part that waits": [{"amount_sats": 300, "confirmed": False}],
    "parts in several blocks, and one that waits": [{"amount_sats": 300}, {"amount_sats": 400},
        {"amount_sats": 500, "confirmed": False}],
    "all of it": [{}],
    "twice": [{}, {}],
    "all of it, and dust behind it": [{}, {"amount_sats": 300, "confirmed": False}],
}  # fmt: skip
SHOWN = ("status", "missing_sats", "confirmations")
# What the row and the verdict both have.
STORED = ("received_sats", "unconfirmed_sats", "coming_unapplied_sats")


@pytest.mark.both_databases
@pytest.mark.parametrize("status", ["", "late", "canceled"])
@pytest.mark.parametrize("case", CASES)
def test_what_is_stored_says_what_the_outputs_say(shop, case, status):
    invoice = shop.invoice(expires_in_hours=1)
    if status == "late":
        pay(shop, invoice, 700)
        shop.clock.move(hours=2)
    elif status:
        finish(shop, invoice, status)
    for one in CASES[case]:
        pay(shop, invoice, **one)
    row = shop.service.db.get(invoices.WHOLE, id=invoice["id"])
    outputs = shop.service.db.rows(payments.ALIVE, invoice_id=row.id)
    whole = verdict_on(outputs, shop.service.settings, row, shop.clock(), None)
    shown = status_of(snapshot_of(shop.service, invoice["id"]), returned_sats=0)
    assert {name: shown[name] for name in SHOWN} == {
        name: getattr(whole, name) for name in SHOWN
    }
    assert [getattr(row, name) for name in STORED] == [
        getattr(whole, name) for name in STORED
    ]
    beside = sum(
        receipt.amount_sats for receipt in whole.receipts if not receipt.settles
    )
    assert row.unapplied_sats == beside
    # While it can be paid the page shows what counts, then all that came.
    came = whole.received_sats, whole.unconfirmed_sats
    if status or row.status == "paid":
        waiting = sum(one.amount_sats for one in outputs if one.payment_id is None)
        came = sum(one.amount_sats for one in outputs), waiting
    assert (shown["received_sats"], shown["unconfirmed_sats"]) == came


@pytest.mark.both_databases
def test_the_page_shows_each_change_at_once(till):
    shop = till.shop
    invoice = till.shop.invoice()

    def received():
        status = shop.client.get(f"/pay/{invoice['id']}/status").json
        return status["received_sats"], status["unconfirmed_sats"]

    assert received() == (0, 0)
    till.pay(invoice)
    till.look_for(invoice)
    assert received() == (invoice["amount_sats"], invoice["amount_sats"])
    till.mine_and_check()
    assert received() == (invoice["amount_sats"], 0)
    till.sandbox.chain.reorganise(1, till.now, [])
    till.check()
    assert received() == (invoice["amount_sats"], invoice["amount_sats"])
