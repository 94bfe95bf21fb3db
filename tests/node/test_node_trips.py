"""Payments on a full node's chain, through the explorer client and the check: what a node shows.

The rules of settlement are tried on the chain of the sandbox (tests/check). One chain and clock for
all, which only ever goes forward; a new shop for each test.
"""

import json
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from bitcoin_node import Coin
from builders import TickerServer
from fake_esplora import Json, Terminal
from node_esplora import Fault
from node_till import Chain, NodeTill, open_chain, open_node_till

from btcpay.proofs.document import check_document
from storage.queries import payments


@pytest.fixture(scope="module")
def chain() -> Iterator[Chain]:
    with open_chain() as opened:
        yield opened


@pytest.fixture
def till(tmp_path: Path, ticker: TickerServer, chain: Chain) -> Iterator[NodeTill]:
    with open_node_till(tmp_path, ticker, chain) as opened:
        yield opened


def bump(till: NodeTill, txid: str) -> str:
    """Replaces a waiting payment by one with a higher fee and the same first output (BIP125).

    bcoin replaces nothing, so that it has to forget the first before it takes the second.
    """
    old = till.node.transaction(txid)
    spent = [spending.outpoint for spending in old.inputs]
    funds = [till.node.transaction(each.txid).outputs[each.vout] for each in spent]
    coins = [Coin(*pair, 0) for pair in zip(spent, funds, strict=True)]
    raw = till.node.wallet.build(old.outputs[:1], coins, fee_sats=5_000)
    till.node.drop(txid)
    return till.node.send(raw)


def changes(till: NodeTill) -> dict[str, str]:
    """What a check changes that could look at every address: one that could not changes nothing."""
    run = till.check()
    assert run.complete, run.failed
    return run.changed


def receipts(till: NodeTill) -> set[tuple[str, int, str | None]]:
    """Every payment: transaction, satoshis, and the invoice whose id it carries."""
    return {(p["tx_hash"], p["amount_sats"], p["invoice_id"]) for p in till.payments()}


def paid(till: NodeTill, **fields: object) -> tuple[Json, str]:
    """An invoice that was seen waiting and is paid in the best block, and by which transaction."""
    invoice = till.shop.invoice(**fields)
    txid = till.pay(invoice)
    till.look_for(invoice)
    till.mine()
    assert changes(till) == {invoice["id"]: "paid"}
    return invoice, txid


def test_an_exact_payment_is_seen_waiting_and_pays_with_its_block(till: NodeTill):
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


def test_one_transaction_pays_two_invoices_each_with_its_own_amount(till: NodeTill):
    one, two = till.shop.invoice(25), till.shop.invoice(40)
    txid = till.pay_outputs((one, one["amount_sats"]), (two, two["amount_sats"]))
    till.mine()
    assert till.check().changed == {one["id"]: "paid", two["id"]: "paid"}
    for invoice in (one, two):
        assert till.look(invoice)["tx_hash"] == txid
        assert [p["amount_sats"] for p in till.payments(invoice)] == [invoice["amount_sats"]]


# Gone, replaced


def take_back(till: NodeTill, txid: str):
    till.node.set_time(till.now)
    till.node.mine_conflict(till.node.take_back(txid))


def drop(till: NodeTill, txid: str):
    till.node.drop(txid)


GONE = {"replaced in a block": take_back, "dropped from the mempool": drop}


@pytest.mark.parametrize("lose", GONE.values(), ids=GONE)
def test_a_waiting_payment_that_is_gone_is_history_and_no_money(
    till: NodeTill, lose: Callable[[NodeTill, str], None]
):
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


def test_a_dropped_payment_that_another_node_kept_still_pays(till: NodeTill):
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


@pytest.mark.parametrize("seen", [(), (1,), (2,), (1, 2)], ids=str)
def test_a_payment_replaced_by_fee_pays_once_whichever_of_the_two_was_seen_waiting(
    till: NodeTill, seen: tuple[int, ...]
):
    invoice = till.shop.invoice()
    amount_sats = invoice["amount_sats"]
    first = till.pay(invoice)
    if 1 in seen:
        till.look_for(invoice)
    second = bump(till, first)
    if 2 in seen:
        till.look_for(invoice)
        assert till.state(invoice) == ("open", amount_sats, amount_sats)
        assert till.balance() == (0, amount_sats)
    till.mine()
    assert changes(till) == {invoice["id"]: "paid"}
    assert till.look(invoice)["tx_hash"] == second
    assert receipts(till) == {(second, amount_sats, invoice["id"])}
    assert till.balance() == (amount_sats, amount_sats)


def test_a_miner_that_takes_the_replaced_one_pays_once_as_well(till: NodeTill):
    invoice = till.shop.invoice()
    amount_sats = invoice["amount_sats"]
    first = till.pay(invoice)
    raw = till.node.transaction(first).raw
    till.look_for(invoice)
    bump(till, first)
    till.look_for(invoice)
    till.node.set_time(till.now)
    till.node.mine_conflict(raw)
    assert changes(till) == {invoice["id"]: "paid"}
    assert receipts(till) == {(first, amount_sats, invoice["id"])}
    assert till.balance() == (amount_sats, amount_sats)
    assert till.node.mempool() == []


# What the chain takes back


def blocks_proven(till: NodeTill, invoice: Json) -> list[str]:
    """The blocks that the proofs of the invoice's payments are of."""
    rows = till.shop.service.db.rows(payments.PROOFS_OF_ADDRESS, invoice_id=invoice["id"])
    return [check_document(json.loads(row["document"])).block_hash for row in rows]


def test_a_payment_reorganised_away_opens_the_invoice_and_it_may_be_paid_again(
    till: NodeTill,
):
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


@pytest.mark.parametrize("depth", [1, 3])
def test_a_payment_that_the_other_chain_has_in_another_block_is_paid_by_that_one(
    till: NodeTill, depth: int
):
    invoice, txid = paid(till)
    (lost,) = blocks_proven(till, invoice)
    raw = till.node.transaction(txid).raw
    till.mine(depth - 1)
    block_hash = till.node.reorganise(depth, instead=[raw])[0]
    assert changes(till) == {invoice["id"]: "paid"}  # opened and paid again in one run
    assert till.kinds(invoice).count("reorganised") == 1
    assert blocks_proven(till, invoice) == [block_hash] != [lost]
    assert receipts(till) == {(txid, invoice["amount_sats"], invoice["id"])}
    assert till.balance() == (invoice["amount_sats"],) * 2


def test_what_is_lost_at_two_depths_is_undone_and_what_is_below_stays(till: NodeTill):
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
):
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
def test_an_explorer_that_cannot_be_asked_changes_nothing_and_delays(till: NodeTill, fault: Fault):
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
def test_what_fails_once_is_asked_again_and_delays_nothing(till: NodeTill, fault: Fault):
    unpaid, paid = till.shop.invoice(expires_in_hours=1), till.shop.invoice(expires_in_hours=1)
    till.pay(paid)
    till.mine()
    till.clock.move(hours=2)
    till.esplora.set(fault)
    run = till.check()
    assert run.complete and fault.met
    assert run.changed == {unpaid["id"]: "expired", paid["id"]: "paid"}


# At the same time


def test_two_processes_for_one_invoice_make_one_payment(tmp_path: Path, ticker: TickerServer):
    # A chain of its own: processes read the real clock, and the others' has gone ahead of it.
    with open_chain() as chain, open_node_till(tmp_path, ticker, chain) as till:
        till.clock.move(minutes=-1)
        invoice = till.shop.invoice()
        txid = till.pay(invoice)
        till.mine()
        words = ("check", "--invoice", invoice["id"], "--json")
        processes = [Terminal(till).start(*words) for _ in range(2)]
        answers = []
        for process in processes:
            output, errors = process.communicate(timeout=60)
            assert process.returncode == 0, errors
            answers.append(json.loads(output))
        assert sum(answer["blocks_read"] for answer in answers) == 1
        changes = [answer["changed"] for answer in answers]
        assert sorted(changes, key=len) == [{}, {invoice["id"]: "paid"}]
        assert receipts(till) == {(txid, invoice["amount_sats"], invoice["id"])}
        assert till.kinds(invoice) == ["seen", "payment", "paid"]
