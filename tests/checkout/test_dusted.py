"""The sums that a page is made of, in place of the outputs: they say the same, at once."""

from dataclasses import replace
from datetime import timedelta

import pytest
from builders import finish, pay

from btcpay.invoices.status import verdict_of, verdict_on
from btcpay.invoices.sums import Sums
from storage.queries import invoices

CASES = {
    "nothing": [],
    "a part that waits": [{"amount_sats": 300, "confirmed": False}],
    "parts in several blocks, and one that waits": [
        {"amount_sats": 300},
        {"amount_sats": 400},
        {"amount_sats": 500, "confirmed": False},
    ],
    "all of it": [{}],
    "twice": [{}, {}],
    "all of it, and dust behind it": [{}, {"amount_sats": 300, "confirmed": False}],
}


@pytest.mark.both_databases
@pytest.mark.parametrize("status", ["", "late", "canceled"])
@pytest.mark.parametrize("case", CASES)
def test_the_sums_say_what_the_outputs_say(shop, case, status):
    invoice = shop.invoice(expires_in_hours=1)
    if status == "late":
        pay(shop, invoice, 700)
        shop.clock.move(hours=2)
    elif status:
        finish(shop, invoice, status)
    for one in CASES[case]:
        pay(shop, invoice, **one)
    row = shop.service.db.only(invoices.WHOLE, id=invoice["id"])
    given = shop.service.db, shop.service.settings, row, shop.clock() + timedelta(minutes=1)
    whole, summed = verdict_of(*given), verdict_on(*given, Sums(given[0]).of(row, given[3]))
    for settles in (True, False):
        assert sum(r.amount_sats for r in whole.receipts if r.settles == settles) == sum(
            r.amount_sats for r in summed.receipts if r.settles == settles
        )
    assert replace(summed, receipts=(), reason="") == replace(whole, receipts=(), reason="")


@pytest.mark.both_databases
def test_the_page_shows_each_change_at_once(till):
    shop, invoice = till.shop, till.shop.invoice()

    def received() -> tuple[int, int]:
        status = shop.client.get(f"/pay/{invoice['id']}/status").json
        return status["received_sats"], status["unconfirmed_sats"]

    assert received() == (0, 0)
    till.pay(invoice)
    till.look_for(invoice)
    assert received() == (invoice["amount_sats"], invoice["amount_sats"])
    till.mine()
    till.check()
    assert received() == (invoice["amount_sats"], 0)
    till.sandbox.chain.reorganise(1, till.now, [])
    till.check()
    assert received() == (invoice["amount_sats"], invoice["amount_sats"])
