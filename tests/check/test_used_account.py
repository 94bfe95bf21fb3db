"""An account that others use too: neither old coins nor late customers pay invoices here."""

import json

import pytest

from btcpay.chain.explorers.pool import Explorers
from btcpay.chain.look_ahead import AGAIN_AFTER_FAILURE, AHEAD
from btcpay.merchants.account import derive
from storage.queries import merchants
from tests.support.accounts import descriptor_of
from tests.support.fake_esplora import Terminal
from tests.support.used_account import USED, use

pytestmark = pytest.mark.both_databases


def pay_number(till, descriptor, index, sats=41_667):
    address = derive(descriptor, index, till.settings.network)
    return till.sandbox.wallet.pay(address, sats, till.now)


def add(till, descriptor, name="used"):
    """The merchant, as `blocktill merchant add` makes it; the shop's orders are its own now."""
    terminal = Terminal(till)
    words = ("merchant", "add", name, "--descriptor", descriptor, "--yes")
    said = terminal.run(*words)[1]
    row = till.shop.service.db.get(merchants.BY_NAME, name=name)
    till.shop.merchant_id = row.id
    return row, said


def status(till, invoice):
    sql = f"SELECT status FROM invoice WHERE id = '{invoice['id']}'"  # noqa: S608
    return till.shop.sql(sql).fetchone()[0]


@pytest.mark.parametrize("form", ["p2wpkh", "p2wsh"])
def test_nobodys_old_coin_and_no_late_customer_pays_a_strangers_invoice(form, lied_to):
    till = lied_to(has_begun=False)
    descriptor = descriptor_of(form)
    use(till, descriptor)
    row, said = add(till, descriptor)
    assert row.next_index == USED[-1] + 1 == 313 and len(USED) == 200
    # The wallet is tried at the shop's first address, before anybody was asked for money.
    pay_number(till, descriptor, 313)
    till.mine()
    till.clock.move(minutes=2)
    assert till.check().complete
    invoice = till.shop.invoice()
    assert invoice["deposit_address"] == derive(descriptor, 313, till.settings.network)
    # Late customers of the former shop: at a used number, in a gap, at its last order.
    for index in (0, 150, 312):
        pay_number(till, descriptor, index)
    till.mine()
    till.clock.move(minutes=10)
    report = till.check()
    assert report.complete and status(till, invoice) == "open"
    till.pay(invoice)
    till.mine()
    till.check()
    assert status(till, invoice) == "paid"


def looks(till):
    return till.liar.count("^/address/[^/]+/txs$")


def shared(till):
    """What is stored about the next addresses of the shop's account."""
    row = till.shop.service.db.get(merchants.BY_ID, id=till.shop.merchant_id)
    return row.used_ahead


def number_ahead(till, ahead):
    row = till.shop.service.db.get(merchants.BY_ID, id=till.shop.merchant_id)
    return row.descriptor, row.next_index + ahead


def test_a_check_asks_about_the_next_addresses_once_a_day(lied_to):
    till = lied_to()
    till.shop.invoice()
    descriptor, index = number_ahead(till, AHEAD - 1)
    pay_number(till, descriptor, index)
    till.mine_and_check()
    till.clock.move(hours=23)
    till.mine_and_check()
    assert (looks(till), shared(till)) == (0, None)
    till.clock.move(hours=1)
    till.mine_and_check()
    assert (looks(till), shared(till)) == (AHEAD, index)
    till.mine_and_check()
    assert looks(till) == AHEAD


def test_one_that_is_further_ahead_is_not_asked_about(lied_to):
    till = lied_to()
    pay_number(till, *number_ahead(till, AHEAD))
    till.clock.move(hours=24)
    till.mine_and_check()
    assert (looks(till), shared(till)) == (AHEAD, None)


def test_a_look_that_fails_forgets_nothing_and_is_made_again_in_an_hour(lied_to):
    till = lied_to()
    descriptor, index = number_ahead(till, 3)
    pay_number(till, descriptor, index)
    till.clock.move(hours=24)
    till.mine_and_check()
    assert shared(till) == index
    till.liar.instead = lambda path: (
        (lambda request: setattr(request, "close_connection", True))
        if path.startswith("/address")
        else None
    )
    till.clock.move(hours=24)
    till.mine_and_check()
    asked = looks(till)
    assert asked > AHEAD and shared(till) == index
    till.mine_and_check()
    assert looks(till) == asked
    till.liar.instead = lambda _: None
    till.clock.move(seconds=AGAIN_AFTER_FAILURE.total_seconds())
    till.mine_and_check()
    assert looks(till) == asked + AHEAD


def test_a_look_ahead_that_memory_does_not_suffice_for_does_not_fail_the_run(
    lied_to, monkeypatch
):
    till = lied_to()
    till.clock.move(hours=24)
    asked = []

    def is_used(_explorers, address):
        asked.append(address)
        raise MemoryError

    monkeypatch.setattr(Explorers, "is_used", is_used)
    for _ in range(2):
        till.mine_and_check()
    assert len(asked) == 1 and shared(till) is None


def test_no_look_takes_the_calls_that_payers_need(lied_to):
    till = lied_to(BLOCKTILL_EXPLORER_CALLS_PER_HOUR="20")
    till.clock.move(hours=24)
    for _ in range(6):
        till.check()
    till.liar.asked.clear()
    till.shop.sql("UPDATE merchant SET look_ahead_ms = 0")
    till.check()
    assert looks(till) == 0


def test_each_run_looks_ahead_of_one_merchant_the_longest_first(lied_to):
    till = lied_to()
    for name in ("second", "third"):
        till.shop.add_merchant(name)
    till.shop.sql("UPDATE merchant SET look_ahead_ms = 5 - id")
    asked = []
    for _ in range(4):
        till.mine_and_check()
        (left,) = till.shop.sql(
            "SELECT COUNT(*) FROM merchant WHERE look_ahead_ms < 10"
        ).fetchone()
        asked.append(left)
    assert asked == [2, 1, 0, 0]


def test_the_doctor_stores_what_it_was_told_and_remembers_it_without_an_explorer(
    lied_to,
):
    till = lied_to()
    descriptor, index = number_ahead(till, 2)
    pay_number(till, descriptor, index)

    def finding():
        findings = json.loads(Terminal(till).run("doctor", "--json", status=1)[0])
        by_name = {row["name"]: row for row in findings}
        return by_name["addresses of shop"]

    assert finding()["colour"] == "red" and shared(till) == index
    till.liar.lies["^/address/[^/]+/txs$"] = lambda _: "no list"
    assert f"number {index} is used" in finding()["sentence"]
