"""Parts that fail: the core counts every payment, and what a part could not do is done later."""

from dataclasses import replace

import pytest

from btcpay.check import store_block
from tests.support.fake_esplora import Terminal

pytestmark = pytest.mark.both_databases
money = pytest.importorskip("btcpay.parts.bills.money")
after_check = pytest.importorskip("btcpay.parts.bills.after_check")
blocks = pytest.importorskip("btcpay.parts.refunds.blocks")
bills = pytest.importorskip("tests.support.bills")
refunds = pytest.importorskip("tests.support.shop_refunds")


class Broken:
    """A function of a part that raises while `error` is set, and counts its calls."""

    def __init__(self, function, error):
        self.function = function
        self.error = error
        self.calls = 0

    def __call__(self, *args, **kwargs):
        self.calls += 1
        if self.error:
            raise self.error
        return self.function(*args, **kwargs)


@pytest.fixture
def broken(monkeypatch):
    def make(module, name, error):
        """Of a part's module a function of its hook, of another its own."""
        is_hook = hasattr(module, "HOOK")
        function = Broken(getattr(module.HOOK if is_hook else module, name), error)
        if is_hook:
            monkeypatch.setattr(
                module, "HOOK", replace(module.HOOK, **{name: function})
            )
        else:
            monkeypatch.setattr(module, name, function)
        return function

    return make


ERRORS = [
    MemoryError(),
    RecursionError("too deep"),
    OverflowError("too large"),
    ValueError("odd"),
]
AS_KINDS = [type(error).__name__ for error in ERRORS]


def work(till):
    rows = till.shop.sql(
        "SELECT part, kind, height, invoice_id, failures FROM part_work"
    )
    return [tuple(row) for row in rows.fetchall()]


def status(till, refund):
    row = refunds.found(till, refund)
    return row.status, row.tx_hash


def red(till):
    lines = Terminal(till).json("doctor", status=1)
    return [one for one in lines if one["name"].startswith("work of")]


@pytest.mark.parametrize("error", ERRORS, ids=AS_KINDS)
@pytest.mark.parametrize("hook", ["matches", "connect_block"])
def test_a_part_that_fails_in_a_block_keeps_no_payment_from_being_found(
    till, clock, broken, hook, error
):
    refund = refunds.made(till, refunds.paid(till), to=refunds.address(1))
    invoice = till.shop.invoice()
    function = broken(blocks, hook, error)
    txid = refunds.send(till, refund)
    run = till.confirm(invoice)
    assert (
        run.complete
        and run.new_statuses == {invoice["id"]: "paid"}
        and run.parts_behind == 1
    )
    assert status(till, refund) == ("ready", None)
    height = till.sandbox.chain.ledger.height
    assert work(till) == [("refunds", "block", height, "", 1)]

    later = till.shop.invoice()
    assert till.confirm(later).complete  # at once it is not tried again
    function.error = None
    clock.move(minutes=3)
    run = till.check()
    assert run.complete and run.parts_behind == 0
    assert (status(till, refund), work(till)) == (("sent", txid), [])
    assert refunds.found(till, refund).sent_height == height


def test_a_part_that_fails_is_said_in_red_and_is_no_alarm(till, broken):
    refund = refunds.made(till, refunds.paid(till), to=refunds.address(1))
    broken(blocks, "connect_block", MemoryError())
    refunds.send(till, refund)
    assert till.mine_and_check().complete
    (line,) = red(till)
    assert line["colour"] == "red" and "MemoryError" in line["sentence"]
    assert "payments are found" in line["sentence"]
    assert till.shop.client.get("/readyz").status_code == 200


def test_what_a_part_could_not_do_in_a_block_that_left_is_not_done(till, clock, broken):
    refund = refunds.made(till, refunds.paid(till), to=refunds.address(1))
    function = broken(blocks, "connect_block", MemoryError())
    refunds.send(till, refund)
    till.mine_and_check()
    function.error = None
    till.sandbox.chain.reorganise(1, till.now)
    clock.move(minutes=3)
    till.check()
    assert work(till) == []


def test_a_part_that_cannot_undo_keeps_no_chain_from_being_followed(
    till, clock, broken
):
    """Its work on the blocks that came instead waits until it has undone the others."""
    refund = refunds.made(till, refunds.paid(till), to=refunds.address(1))
    other = refunds.made(till, refunds.paid(till), to=refunds.address(2))
    refunds.send(till, refund)
    till.mine_and_check()
    function = broken(blocks, "disconnect_blocks", MemoryError())
    till.sandbox.chain.reorganise(1, till.now)
    invoice = till.shop.invoice()
    txid = refunds.send(till, other)
    assert till.confirm(invoice).new_statuses[invoice["id"]] == "paid"
    assert {row[1] for row in work(till)} == {"undo", "block"}
    assert status(till, other) == ("ready", None)
    function.error = None
    clock.move(minutes=3)
    till.mine_and_check()
    assert work(till) == [] and status(till, other) == ("sent", txid)
    assert status(till, refund)[0] in ("sent", "ready")


@pytest.mark.parametrize("error", ERRORS, ids=AS_KINDS)
def test_a_part_that_cannot_count_keeps_no_invoice_from_its_payment(
    till, clock, broken, error
):
    bill = bills.new_bill(till.shop)
    invoice = bills.pay_now(till.shop, bill)
    beside = till.shop.invoice()
    function = broken(money, "recount", error)
    till.pay(invoice)
    run = till.confirm(beside)
    assert (
        run.new_statuses == {invoice["id"]: "paid", beside["id"]: "paid"}
        and run.complete
    )
    assert bills.bill_now(till.shop, bill).status == "open"
    function.error = None
    clock.move(minutes=3)
    assert till.check().complete and work(till) == []
    assert bills.bill_now(till.shop, bill).status == "paid"


def test_a_turn_that_fails_ends_no_run_and_is_said_until_it_succeeds(till, broken):
    function = broken(after_check, "on_check", MemoryError())
    invoice = till.shop.invoice()
    assert till.confirm(invoice).complete and red(till)
    function.error = None
    till.check()
    assert work(till) == []


@pytest.mark.parametrize("error", ERRORS, ids=AS_KINDS)
def test_a_block_that_cannot_be_read_is_set_aside_and_the_others_are_read(
    till, clock, broken, error
):
    odd = till.shop.invoice()
    sound = till.shop.invoice()
    till.pay(odd)
    till.mine()
    height = till.sandbox.chain.ledger.height
    real = store_block.facts_of

    def facts_of(db, network, at, *others):
        if at == height and function.error:
            raise function.error
        return real(db, network, at, *others)

    function = broken(store_block, "facts_of", error)
    function.__class__ = type(
        "At", (Broken,), {"__call__": lambda _, *args: facts_of(*args)}
    )
    run = till.confirm(sound)
    assert run.new_statuses == {sound["id"]: "paid"} and not run.complete
    assert run.set_aside == [height] and run.blocks_behind == 1
    (line,) = red(till)
    assert f"block {height}" in line["sentence"] and "not found" in line["sentence"]

    clock.move(minutes=2)
    assert till.check().set_aside == [height]
    function.error = None
    clock.move(minutes=2)
    run = till.check()
    assert run.complete and run.new_statuses == {odd["id"]: "paid"} and work(till) == []
