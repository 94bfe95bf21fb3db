"""Payments on a full node's chain, through the explorer client and the check, as decided.

One chain and one clock for all, which only ever goes forward; a new shop for each test.
"""

import json
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from builders import TickerServer
from node_esplora import Answer, Fault
from node_till import Chain, NodeTill, open_chain, open_node_till

from btcpay.proofs.document import check_document
from btcpay.sandbox.node.script import script_of
from storage.queries import payments


@pytest.fixture(scope="module")
def chain() -> Iterator[Chain]:
    with open_chain() as opened:
        yield opened


@pytest.fixture
def till(tmp_path: Path, ticker: TickerServer, chain: Chain) -> Iterator[NodeTill]:
    with open_node_till(tmp_path, ticker, chain) as opened:
        yield opened


def test_an_exact_payment_is_seen_waiting_and_pays_with_its_block(till: NodeTill) -> None:
    invoice = till.shop.invoice()
    amount_sats = invoice["amount_sats"]
    txid = till.pay(invoice)
    till.open_page(invoice)
    assert till.check().changed == {}
    assert till.state(invoice) == ("open", amount_sats, amount_sats)
    assert till.balance() == (0, amount_sats)
    till.mine()
    assert till.check().changed == {invoice["id"]: "paid"}
    assert till.look(invoice)["tx_hash"] == txid
    assert [(p["amount_sats"], p["tx_hash"]) for p in till.payments(invoice)] == [
        (amount_sats, txid)
    ]
    assert till.balance() == (amount_sats, amount_sats)


def test_a_part_leaves_the_invoice_open_and_the_rest_pays_it(till: NodeTill) -> None:
    invoice = till.shop.invoice()
    amount_sats = invoice["amount_sats"]
    part = till.pay(invoice, 10_000)
    till.mine()
    assert till.check().changed == {}
    assert till.state(invoice) == ("open", 10_000, 0)
    assert [(p["amount_sats"], p["invoice_id"]) for p in till.payments()] == [(10_000, None)]
    rest = till.pay(invoice, amount_sats - 10_000)
    till.mine()
    assert till.check().changed == {invoice["id"]: "paid"}
    assert till.look(invoice)["tx_hash"] == rest
    assert {p["tx_hash"] for p in till.payments(invoice)} == {part, rest}
    assert till.balance() == (amount_sats, amount_sats)


def test_two_outputs_of_one_transaction_are_one_payment_of_their_sum(till: NodeTill) -> None:
    invoice = till.shop.invoice()
    amount_sats = invoice["amount_sats"]
    txid = till.pay_outputs((invoice, 10_000), (invoice, amount_sats - 10_000))
    till.mine()
    assert till.check().changed == {invoice["id"]: "paid"}
    assert [(p["amount_sats"], p["tx_hash"]) for p in till.payments()] == [(amount_sats, txid)]


def test_one_transaction_pays_two_invoices_each_with_its_own_amount(till: NodeTill) -> None:
    one, two = till.shop.invoice(25), till.shop.invoice(40)
    txid = till.pay_outputs((one, one["amount_sats"]), (two, two["amount_sats"]))
    till.mine()
    assert till.check().changed == {one["id"]: "paid", two["id"]: "paid"}
    for invoice in (one, two):
        assert till.look(invoice)["tx_hash"] == txid
        assert [p["amount_sats"] for p in till.payments(invoice)] == [invoice["amount_sats"]]


def test_one_transaction_that_pays_one_of_two_invoices_short_pays_the_other(till: NodeTill) -> None:
    one, two = till.shop.invoice(25), till.shop.invoice(40)
    till.pay_outputs((one, one["amount_sats"] - 1), (two, two["amount_sats"]))
    till.mine()
    assert till.check().changed == {two["id"]: "paid"}
    assert till.state(one) == ("open", one["amount_sats"] - 1, 0)


def take_back(till: NodeTill, txid: str) -> None:
    till.node.set_time(till.now)
    till.node.mine_conflict(till.node.take_back(txid))


def drop(till: NodeTill, txid: str) -> None:
    till.node.drop(txid)


GONE = {"replaced in a block": take_back, "dropped from the mempool": drop}


@pytest.mark.parametrize("lose", GONE.values(), ids=GONE)
def test_a_waiting_payment_that_is_gone_is_history_and_no_money(
    till: NodeTill, lose: Callable[[NodeTill, str], None]
) -> None:
    invoice = till.shop.invoice()
    txid = till.pay(invoice)
    till.look_for(invoice)
    lose(till, txid)
    assert till.look_for(invoice).changed == {}
    assert till.state(invoice) == ("open", 0, 0)
    assert till.kinds(invoice) == ["seen", "vanished"]
    assert till.payments() == [] and till.balance() == (0, 0)
    again = till.pay(invoice)
    till.mine()
    assert till.check().changed == {invoice["id"]: "paid"}
    assert till.look(invoice)["tx_hash"] == again
    assert [p["tx_hash"] for p in till.payments()] == [again]


@pytest.mark.parametrize("lose", GONE.values(), ids=GONE)
def test_an_invoice_waits_after_its_deadline_for_what_came_in_time_until_it_is_gone(
    till: NodeTill, lose: Callable[[NodeTill, str], None]
) -> None:
    invoice = till.shop.invoice(expires_in_hours=1)
    txid = till.pay(invoice)
    till.look_for(invoice)
    till.clock.move(hours=1)
    assert till.check().changed == {}
    lose(till, txid)
    till.clock.move(minutes=10)
    if lose is drop:
        assert till.check().changed == {}  # the look that misses the money does not end it too
        till.clock.move(minutes=1)
    assert till.check().changed == {invoice["id"]: "expired"}


def test_what_came_in_time_pays_when_its_block_comes_after_the_deadline(till: NodeTill) -> None:
    invoice = till.shop.invoice(expires_in_hours=1)
    txid = till.pay(invoice)
    till.look_for(invoice)
    till.clock.move(hours=2)
    till.mine()
    assert till.check().changed == {invoice["id"]: "paid"}
    assert till.look(invoice)["tx_hash"] == txid


def test_what_was_mined_before_the_deadline_pays_though_first_seen_after_it(till: NodeTill) -> None:
    invoice = till.shop.invoice(expires_in_hours=1)
    till.pay(invoice)
    till.clock.move(minutes=59)
    till.mine()
    till.clock.move(hours=2)
    assert till.check().changed == {invoice["id"]: "paid"}


def test_a_dropped_payment_that_another_node_kept_still_pays(till: NodeTill) -> None:
    invoice = till.shop.invoice()
    txid = till.pay(invoice)
    raw = till.node.transaction(txid).raw
    till.look_for(invoice)
    till.node.drop(txid)
    till.look_for(invoice)
    till.node.set_time(till.now)
    till.node.mine_conflict(raw)
    assert till.check().changed == {invoice["id"]: "paid"}
    assert till.look(invoice)["tx_hash"] == txid


@pytest.mark.parametrize("same_block", [True, False], ids=["in the same block", "a block later"])
def test_a_payment_that_the_merchant_swept_before_the_check_was_paid(
    till: NodeTill, same_block: bool
) -> None:
    invoice = till.shop.invoice()
    txid = till.pay(invoice)
    if not same_block:
        till.mine()
    till.sweep(invoice, txid)
    till.mine()
    assert till.check().changed == {invoice["id"]: "paid"}
    assert [p["amount_sats"] for p in till.payments(invoice)] == [invoice["amount_sats"]]
    assert till.balance() == (0, 0)


def test_a_swept_coin_leaves_the_balance_when_the_sweep_confirms(till: NodeTill) -> None:
    invoice = till.shop.invoice()
    txid = till.pay(invoice)
    till.mine()
    till.check()
    till.sweep(invoice, txid)
    till.check()
    assert till.balance() == (invoice["amount_sats"],) * 2
    till.mine()
    till.check()
    assert till.balance() == (0, 0)
    assert till.look(invoice)["status"] == "paid"


def test_a_history_of_several_pages_is_read_to_its_end(till: NodeTill) -> None:
    invoice = till.shop.invoice()
    parts = [1_000] * 51
    for sats in parts[:26]:
        till.pay(invoice, sats)
    till.mine()
    for sats in parts[26:]:
        till.pay(invoice, sats)
    till.mine()
    assert till.check().changed == {invoice["id"]: "paid"}
    assert till.balance() == (sum(parts), sum(parts))


# What the chain takes back


def test_a_payment_reorganised_away_opens_the_invoice_and_it_may_be_paid_again(
    till: NodeTill,
) -> None:
    invoice = till.shop.invoice()
    lost = till.pay(invoice)
    till.mine()
    assert till.check().changed == {invoice["id"]: "paid"}
    till.node.reorganise(1, instead=[till.node.take_back(lost)])
    till.check()
    assert till.look(invoice)["status"] == "open"
    assert till.payments() == [] and till.balance() == (0, 0)
    again = till.pay(invoice)
    till.mine()
    assert till.check().changed == {invoice["id"]: "paid"}
    assert till.look(invoice)["tx_hash"] == again
    assert [p["tx_hash"] for p in till.payments()] == [again]


def test_a_payment_that_a_reorganisation_put_back_waits_and_pays_once_more(till: NodeTill) -> None:
    invoice = till.shop.invoice()
    amount_sats = invoice["amount_sats"]
    txid = till.pay(invoice)
    till.mine()
    till.check()
    till.node.reorganise(1)
    till.check()
    assert till.state(invoice) == ("open", amount_sats, amount_sats)
    assert till.payments() == [] and till.balance() == (0, amount_sats)
    till.mine()
    assert till.check().changed == {invoice["id"]: "paid"}
    assert [p["tx_hash"] for p in till.payments(invoice)] == [txid]
    assert till.balance() == (amount_sats, amount_sats)


def test_a_payment_below_the_fork_stays(till: NodeTill) -> None:
    invoice = till.shop.invoice()
    till.pay(invoice)
    till.mine(2)
    till.check()
    paid = till.look(invoice)
    till.node.reorganise(1)
    assert till.check().changed == {}
    assert till.look(invoice) == paid
    assert till.balance() == (invoice["amount_sats"],) * 2


def test_what_is_lost_at_two_depths_is_undone_and_what_is_below_stays(till: NodeTill) -> None:
    kept, one, two = till.shop.invoice(), till.shop.invoice(), till.shop.invoice()
    for invoice in (kept, one, two):
        till.pay(invoice)
        till.mine()
    assert len(till.check().changed) == 3
    till.node.reorganise(2)
    assert till.check().changed == {}
    assert [till.look(i)["status"] for i in (kept, one, two)] == ["paid", "open", "open"]
    assert [till.kinds(i).count("reorganised") for i in (kept, one, two)] == [0, 1, 1]
    till.mine()
    assert till.check().changed == {one["id"]: "paid", two["id"]: "paid"}
    assert len(till.payments()) == 3


# What is proven


@pytest.mark.parametrize("others", [0, 1, 2, 6])
def test_a_payment_in_a_nodes_block_is_proven_and_its_proof_holds_offline(
    till: NodeTill, others: int
) -> None:
    invoice = till.shop.invoice()
    txid = till.pay(invoice)
    for _ in range(others):
        till.node.pay(till.node.wallet.address, 20_000)
    till.mine()
    till.check()
    rows = till.shop.service.db.rows(payments.PROOFS_OF_ADDRESS, invoice_id=invoice["id"])
    (proven,) = (check_document(json.loads(row["document"])) for row in rows)
    assert (proven.txid, proven.block_hash) == (txid, till.node.tip()[1])
    assert list(proven.amounts_sats.values()) == [invoice["amount_sats"]]


# What the explorer does wrong

FAULTS = {
    "answers 500": Fault("/address/", status=500),
    "answers 429": Fault("/address/", status=429),
    "answers 404": Fault("/address/", status=404),
    "hangs up": Fault("/address/", drop=True),
    "hangs up in the middle": Fault("/address/", cut=True),
    "answers garbage": Fault("/address/", body=b"<html>busy</html>"),
    "fails for the tip": Fault("/blocks/tip", status=500),
    "answers no height": Fault("/blocks/tip", body=b"[]"),
    "has no raw blocks": Fault("/raw", status=404),
    "has blocks of nothing": Fault("/raw", body=b""),
    "breaks off in every block": Fault("/raw", cut=True),
    "has headers of nothing": Fault("/header|/blocks$", body=b"00" * 80),
}


@pytest.mark.parametrize("fault", FAULTS.values(), ids=FAULTS)
def test_an_explorer_that_cannot_be_asked_changes_nothing_and_delays(
    till: NodeTill, fault: Fault
) -> None:
    unpaid, paid = till.shop.invoice(expires_in_hours=1), till.shop.invoice(expires_in_hours=1)
    till.pay(paid)
    till.mine()
    till.clock.move(hours=2)
    till.esplora.set(fault)
    run = till.check()
    assert not run.complete
    assert till.look(unpaid)["status"] == "open"
    assert till.look(paid)["status"] != "expired"
    till.esplora.clear()
    till.check()
    assert (till.look(unpaid)["status"], till.look(paid)["status"]) == ("expired", "paid")


ONCE = {
    "fails at the second address": Fault("/address/", nth=2, status=500),
    "has a block at the second try": Fault("/raw", nth=1, status=500),
    "hangs up once": Fault("/address/", nth=1, drop=True),
    "breaks off once": Fault("/raw", nth=1, cut=True),
    "fails once for the tip": Fault("/blocks/tip", nth=1, status=503),
}


@pytest.mark.parametrize("fault", ONCE.values(), ids=ONCE)
def test_what_fails_once_is_asked_again_and_delays_nothing(till: NodeTill, fault: Fault) -> None:
    unpaid, paid = till.shop.invoice(expires_in_hours=1), till.shop.invoice(expires_in_hours=1)
    till.pay(paid)
    till.mine()
    till.clock.move(hours=2)
    till.esplora.set(fault)
    run = till.check()
    assert run.complete and fault.met
    assert run.changed == {unpaid["id"]: "expired", paid["id"]: "paid"}


def test_a_tip_from_before_the_payment_is_no_confirmation(till: NodeTill) -> None:
    invoice = till.shop.invoice()
    till.pay(invoice)
    till.mine()
    till.esplora.set(Fault(stale_tip=1))
    assert till.check().changed == {}
    assert till.look(invoice)["status"] == "open"
    till.esplora.clear()
    assert till.check().changed == {invoice["id"]: "paid"}


def test_an_explorer_that_forgets_a_paid_invoice_undoes_nothing(till: NodeTill) -> None:
    invoice = till.shop.invoice()
    till.pay(invoice)
    till.mine()
    till.check()
    paid = till.look(invoice)
    till.esplora.set(Fault("/address/", body=b"[]"))
    assert till.look_for(invoice).changed == {}
    assert till.look(invoice) == paid
    assert till.balance() == (invoice["amount_sats"],) * 2


def test_an_explorer_that_exaggerates_what_came_pays_no_invoice(till: NodeTill) -> None:
    invoice = till.shop.invoice()
    script = script_of(invoice["deposit_address"]).hex()

    def exaggerate(_path: str, history: Answer) -> Answer:
        for tx in history:
            for output in tx["vout"]:
                if output["scriptpubkey"] == script:
                    output["value"] = invoice["amount_sats"]
        return history

    till.pay(invoice, 1_000)
    till.mine()
    till.esplora.set(Fault("/address/", lie=exaggerate))
    till.look_for(invoice)
    assert till.look(invoice)["status"] == "open"
    assert till.payments(invoice) == []


def test_an_explorer_that_calls_waiting_money_confirmed_pays_no_invoice(till: NodeTill) -> None:
    invoice = till.shop.invoice()
    till.pay(invoice)
    height, block_hash = till.node.tip()

    def confirm(_path: str, history: Answer) -> Answer:
        block = {"block_height": height, "block_hash": block_hash, "block_time": till.now}
        return [tx | {"status": {"confirmed": True} | block} for tx in history]

    till.esplora.set(Fault("/address/", lie=confirm))
    till.look_for(invoice)
    assert till.look(invoice)["status"] == "open"
    assert till.payments(invoice) == []


@pytest.mark.parametrize("looks", [0, 1], ids=["nobody looks", "somebody looks"])
def test_a_block_costs_three_calls_and_who_looks_one(till: NodeTill, looks: int) -> None:
    invoice, *_others = [till.shop.invoice() for _ in range(5)]
    till.check()
    till.mine()
    till.clock.move(minutes=10)
    till.esplora.clear()
    if looks:
        till.open_page(invoice)
    run = till.check()
    assert run.calls == till.esplora.calls.total()
    assert +till.esplora.calls == Counter(
        {
            "/blocks/tip/hash": 1,
            "/block/:hash/header": 1,
            "/block/:hash/raw": 1,
            "/address/:address/txs/mempool": looks,
        }
    )
