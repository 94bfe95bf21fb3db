"""A bill is paid in parts, each at the price of its moment: late, too much, taken back, ended."""

import pytest

from btcpay.check import store_block
from btcpay.check.apply import try_apply
from btcpay.invoices import manual
from btcpay.parts.bills import actions
from btcpay.values.errors import ChangeRefused
from storage.queries import attentions
from tests.support.attention_cases import reason_of
from tests.support.bills import new_bill, page_of, pay_now, stands
from tests.support.other_database import on

pytestmark = pytest.mark.both_databases


def hour(till):
    """Its invoices end."""
    till.clock.move(hours=1.5)
    till.mine_and_check()


def test_half_is_paid_today_and_half_after_the_price_has_doubled(
    till, ticker, blocktill
):
    bill = new_bill(till.shop)
    first = pay_now(till.shop, bill)
    assert first["amount_sats"] == 166_667  # 100 dollars at 60,000
    till.confirm(first, 83_334)
    assert stands(till.shop, bill) == ("open", "50.00")
    hour(till)
    assert till.look(first)["status"] == "expired" and reason_of(till, first) is None
    till.clock.move(days=1)
    ticker.price("120000.00")
    with on(
        till.shop.environ["BLOCKTILL_DATABASE_URL"], till
    ) as later:  # which knows no old price
        second = pay_now(later.shop, bill)
        assert second["amount_sats"] == 41_667  # 50 dollars at 120,000
        later.confirm(second)
    assert stands(till.shop, bill) == ("paid", "100.00")
    assert "submit" not in page_of(till.shop.client, bill).attributes
    books = blocktill.run("export", "payments")[0].splitlines()
    columns = books[0].split(",")
    rows = [dict(zip(columns, line.split(","), strict=True)) for line in books[1:]]
    assert [row["value_at_receipt"] for row in rows] == ["50.00", "50.00"]
    assert [row["bill_id"] for row in rows] == [bill.id] * 2


def test_a_late_part_counts_once_the_merchant_accepts_it(till):
    bill = new_bill(till.shop)
    shop = till.shop
    invoice = pay_now(shop, bill)
    hour(till)
    till.confirm(invoice)
    assert (
        stands(shop, bill) == ("open", "0.00")
        and reason_of(till, invoice) == "paid_late"
    )
    manual.settle(shop.service.db, till.settings, invoice["id"], "fine", till.clock())
    assert stands(shop, bill) == ("paid", "100.00") and reason_of(till, invoice) is None


def test_what_comes_beyond_the_bill_needs_attention(till):
    bill = new_bill(till.shop)
    shop = till.shop
    one, other = (pay_now(shop, bill, shop.app.test_client()) for _ in range(2))
    till.confirm(one)
    assert stands(shop, bill) == ("paid", "100.00") and reason_of(till, one) is None
    till.confirm(other, other["amount_sats"] // 2)
    assert stands(shop, bill) == ("paid", "149.99")
    hour(till)
    assert (reason_of(till, one), reason_of(till, other)) == (None, "short")


def stakes(till, invoices):
    """What is at stake for each, in cents of today; None for what needs no attention."""
    db = till.shop.service.db
    rows = [
        db.get_or_none(attentions.OF_INVOICE, invoice_id=invoice["id"])
        for invoice in invoices
    ]
    return [row and row.stake_minor for row in rows]


def test_a_bill_that_was_paid_three_times_keeps_its_excess_whatever_comes_later(till):
    bill = new_bill(till.shop)
    shop = till.shop
    three = [pay_now(shop, bill, shop.app.test_client()) for _ in range(3)]
    for invoice in three:
        till.confirm(invoice)
    assert stakes(till, three) == [None, 100_00, 100_00]
    till.confirm(three[1], 294)
    assert stakes(till, three) == [None, 100_18, 100_00]
    till.confirm(three[0], 294)
    assert stakes(till, three) == [18, 100_18, 100_00]


def test_what_was_too_much_is_so_no_more_once_an_earlier_part_is_taken_back(till):
    bill = new_bill(till.shop)
    shop = till.shop
    chain = till.sandbox.chain
    one, other = (pay_now(shop, bill, shop.app.test_client()) for _ in range(2))
    till.confirm(one)
    raw = chain.mempool.entries[till.pay(other)].tx.raw
    till.mine_and_check()
    assert stakes(till, [other]) == [100_00]
    chain.reorganise(2, till.now, [raw])
    till.check()
    assert stands(shop, bill) == ("paid", "100.00")
    assert reason_of(till, one) == "reorganised" and stakes(till, [other]) == [None]


@pytest.mark.parametrize("how", ["together", "one by one, the last one first"])
def test_two_who_pay_it_at_once_are_told_apart(till, monkeypatch, how):
    bill = new_bill(till.shop)
    shop = till.shop
    both = [pay_now(shop, bill, shop.app.test_client()) for _ in range(2)]

    def one_by_one(db, settings, scans, *more):
        for invoice in both[::-1]:
            try_apply(db, settings, {invoice["id"]: scans[invoice["id"]]}, *more)
        return set()

    if how != "together":
        monkeypatch.setattr(store_block, "try_apply", one_by_one)
    till.pay(both[0]), till.pay(both[1])
    till.mine_and_check()
    assert stands(shop, bill) == ("paid", "200.00")
    assert sorted(map(str, (reason_of(till, one) for one in both))) == [
        "None",
        "too_much",
    ]


def test_a_reorganisation_of_the_second_of_three_parts_opens_it_again(till):
    bill = new_bill(till.shop)
    shop = till.shop
    chain = till.sandbox.chain
    raws = []
    for sats in (50_000, 60_000, None):
        invoice = pay_now(shop, bill, shop.app.test_client())
        raws.append(chain.mempool.entries[till.pay(invoice, sats)].tx.raw)
        till.mine_and_check()
    assert stands(shop, bill) == ("paid", "100.00")
    chain.reorganise(2, till.now, [raws[2]])
    till.check()
    assert stands(shop, bill) == ("open", "64.01")
    till.look_for(*shop.get("/invoices").json["data"])
    page = page_of(shop.client, bill)
    assert (
        "$35.99 is on its way" in page.texts["coming"]
        and "submit" not in page.attributes
    )
    till.mine_and_check()
    assert stands(shop, bill) == ("paid", "100.00")


def test_what_is_missing_but_cannot_be_sent_is_forgiven(till):
    bill = new_bill(till.shop)
    till.confirm(invoice := pay_now(till.shop, bill), 166_667 - 280)
    assert till.look(invoice)["status"] == "open"
    assert stands(till.shop, bill) == ("paid", "99.83")


def test_a_bill_that_ends_ends_its_invoices_and_what_comes_then_needs_attention(till):
    bill = new_bill(till.shop)
    shop = till.shop
    invoice = pay_now(shop, bill)
    actions.end(shop.service.db, till.settings, bill.id, till.clock())
    assert stands(shop, bill) == ("ended", "0")
    assert till.look(invoice)["status"] == "canceled"
    till.confirm(invoice)
    assert (
        stands(shop, bill) == ("ended", "0")
        and reason_of(till, invoice) == "after_cancellation"
    )
    with pytest.raises(ChangeRefused, match="nothing to end"):
        actions.end(shop.service.db, till.settings, bill.id, till.clock())
    answer = shop.client.post(f"/bill/{bill.id}")
    assert answer.status_code == 410 and "nothing to pay" in answer.text
