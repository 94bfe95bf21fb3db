"""Blocks that leave the best chain take their payments with them, and nothing else ever does."""

import json
import logging
import threading
from collections.abc import Callable
from typing import Any

import pytest
from builders import dump
from fake_esplora import Json, LiedTo, Terminal, say

from btcpay.bitcoin.wire import hash256
from btcpay.check.undo import undo
from btcpay.sandbox.payer.mischief import double_spends, replace
from storage.database import open_database
from storage.queries import payments


@pytest.fixture
def till(lied_to: Callable[..., LiedTo]) -> LiedTo:
    return lied_to()


def paid(till: LiedTo, **fields: Any) -> tuple[Json, str]:
    """An invoice that is paid in the best block, and by which transaction."""
    invoice = till.shop.invoice(**fields)
    txid = till.pay(invoice)
    till.mine()
    assert till.check().changed == {invoice["id"]: "paid"}
    return invoice, txid


def reorganise(till: LiedTo, depth: int = 1, double_spend: bool = False) -> list[str]:
    """Other blocks in place of the last ones; their payments wait again, or have become void."""
    instead = double_spends(till.sandbox.wallet, depth) if double_spend else []
    return till.sandbox.chain.reorganise(depth, till.now, instead)


def blocks_of(till: LiedTo, invoice: Json) -> list[tuple[int | None, str | None]]:
    rows = till.shop.service.db.rows(payments.OUTPUTS, invoice_id=invoice["id"])
    return [(row["block_height"], row["block_hash"]) for row in rows]


def height(till: LiedTo) -> int:
    return till.sandbox.chain.ledger.height


# What is undone


def test_a_payment_whose_block_is_lost_is_taken_back_and_waits_again(till, caplog):
    invoice, txid = paid(till)
    amount_sats = invoice["amount_sats"]
    lost = till.sandbox.chain.ledger.tip.hash
    reorganise(till)
    with caplog.at_level(logging.ERROR):
        run = till.check()
    assert (run.failed, run.changed) == ([], {})
    shown = till.look(invoice)
    assert (shown["status"], shown["tx_hash"], shown["paid_at"]) == ("open", None, None)
    assert till.payments() == [] and till.balance() == (0, amount_sats)
    assert blocks_of(till, invoice) == [(None, None)]
    (event,) = (e for e in events_of(till, invoice) if e["kind"] == "reorganised")
    assert event["detail"]["txid"] == txid
    assert event["detail"]["block"] == {"height": height(till) - 1, "hash": lost}
    errors = [r.getMessage() for r in caplog.records if r.levelno == logging.ERROR]
    assert any(invoice["id"] in error and "open again" in error for error in errors)


def events_of(till: LiedTo, invoice: Json) -> list[Json]:
    return Terminal(till).json("invoice", "show", invoice["id"])["events"]


def test_it_is_paid_again_by_the_next_block_with_one_payment_and_the_new_proof(till):
    invoice, txid = paid(till)
    reorganise(till)
    till.check()
    till.mine()
    assert till.check().changed == {invoice["id"]: "paid"}
    assert [p["tx_hash"] for p in till.payments()] == [txid]
    assert till.balance() == (invoice["amount_sats"],) * 2
    block = till.sandbox.chain.ledger.tip
    assert blocks_of(till, invoice) == [(height(till), block.hash)]
    (document,) = json.loads(Terminal(till).run("invoice", "show", invoice["id"], "--proof")[0])
    assert document["headers"] == [block.header.hex()]
    assert till.kinds(invoice).count("paid") == till.kinds(invoice).count("payment") == 2


def test_a_transaction_that_the_other_chain_has_in_another_block_pays_in_the_same_run(till):
    invoice, txid = paid(till)
    raw = till.sandbox.chain.ledger.confirmed[txid].tx.raw
    hashes = till.sandbox.chain.reorganise(1, till.now, [raw])
    assert till.check().changed == {invoice["id"]: "paid"}
    assert [p["tx_hash"] for p in till.payments(invoice)] == [txid]
    assert blocks_of(till, invoice) == [(height(till) - 1, hashes[0])]


def test_a_payment_that_was_spent_twice_leaves_an_invoice_without_deadline_open(till):
    invoice, _ = paid(till)
    reorganise(till, double_spend=True)
    for _ in range(3):
        till.clock.move(days=10)
        assert till.check().changed == {}
    assert till.look(invoice)["status"] == "open"
    assert till.payments() == [] and till.balance() == (0, 0)
    again = till.pay(invoice)
    till.mine()
    assert till.check().changed == {invoice["id"]: "paid"}
    assert [p["tx_hash"] for p in till.payments()] == [again]


def checks(till: LiedTo, count: int = 3) -> dict[str, str]:
    """What several checks after one another change."""
    changed: dict[str, str] = {}
    for _ in range(count):
        till.clock.move(minutes=1)
        changed |= till.check().changed
    return changed


def test_after_the_deadline_a_payment_that_was_spent_twice_expires_the_invoice(till):
    invoice, _ = paid(till, expires_in_hours=1)
    till.clock.move(hours=2)
    reorganise(till, double_spend=True)
    assert checks(till) == {invoice["id"]: "expired"}
    assert till.payments() == [] and till.balance() == (0, 0)


def test_after_the_deadline_the_invoice_is_open_while_the_transaction_waits(till):
    invoice, txid = paid(till, expires_in_hours=1)
    till.clock.move(hours=2)
    reorganise(till)
    assert checks(till) == {}
    assert till.look(invoice)["status"] == "open"
    replace(till.sandbox.wallet, till.now, txid, away=True)
    assert checks(till) == {invoice["id"]: "expired"}


def test_after_the_deadline_the_transaction_that_waits_still_pays(till):
    invoice, txid = paid(till, expires_in_hours=1)
    till.clock.move(hours=2)
    reorganise(till)
    till.check()
    till.mine()
    assert till.check().changed == {invoice["id"]: "paid"}
    assert till.look(invoice)["tx_hash"] == txid


def test_the_other_payment_of_an_invoice_is_a_part_again(till):
    invoice = till.shop.invoice()
    part = till.pay(invoice, 10_000)
    till.mine()
    till.check()
    till.pay(invoice, invoice["amount_sats"] - 10_000)
    till.mine()
    assert till.check().changed == {invoice["id"]: "paid"}
    assert len(till.payments(invoice)) == 2
    reorganise(till, double_spend=True)
    till.check()
    assert till.look(invoice)["status"] == "open"
    assert [(p["tx_hash"], p["invoice_id"]) for p in till.payments()] == [(part, None)]
    assert till.balance() == (10_000, 10_000)
    rest = till.pay(invoice, invoice["amount_sats"] - 10_000)
    till.mine()
    assert till.check().changed == {invoice["id"]: "paid"}
    assert {p["tx_hash"] for p in till.payments(invoice)} == {part, rest}


@pytest.mark.parametrize("blocks", [1, 2], ids=["of one block", "of two blocks"])
def test_both_payments_of_an_invoice_are_undone_and_pay_again(till, blocks):
    invoice = till.shop.invoice()
    txids = {till.pay(invoice, 10_000)}
    if blocks == 2:
        till.mine()
    txids.add(till.pay(invoice, invoice["amount_sats"] - 10_000))
    till.mine()
    till.check()
    reorganise(till, depth=blocks)
    till.check()
    assert till.payments() == [] and till.balance() == (0, invoice["amount_sats"])
    till.mine()
    assert till.check().changed == {invoice["id"]: "paid"}
    assert {p["tx_hash"] for p in till.payments(invoice)} == txids


def test_what_came_beyond_the_amount_pays_when_the_payment_is_lost(till):
    invoice = till.shop.invoice()
    first, second = till.pay(invoice), till.pay(invoice)
    chain = till.sandbox.chain
    kept = chain.mempool.entries[second].tx.raw
    chain.mine(1, till.now, only=[first])
    till.mine()
    till.check()
    assert [(p["tx_hash"], p["invoice_id"]) for p in till.payments()] == [
        (second, None),
        (first, invoice["id"]),
    ]
    taken_back, _ = double_spends(till.sandbox.wallet, 2)
    chain.reorganise(2, till.now, [taken_back, kept])
    assert till.check().changed == {invoice["id"]: "paid"}
    assert [(p["tx_hash"], p["invoice_id"]) for p in till.payments()] == [(second, invoice["id"])]
    assert till.look(invoice)["tx_hash"] == second


def test_one_transaction_that_paid_two_invoices_is_taken_back_from_both(till):
    one, two = till.shop.invoice(25), till.shop.invoice(40)
    till.pay_outputs((one, one["amount_sats"]), (two, two["amount_sats"]))
    till.mine()
    till.check()
    reorganise(till, double_spend=True)
    till.check()
    assert till.payments() == [] and till.balance() == (0, 0)
    assert till.look(one)["status"] == till.look(two)["status"] == "open"


def test_a_late_payment_is_taken_back_and_the_invoice_stays_expired(till):
    invoice = till.shop.invoice(expires_in_hours=1)
    till.clock.move(hours=2)
    till.check()
    till.pay(invoice)
    till.mine()
    till.check()
    assert [p["invoice_id"] for p in till.payments()] == [None]
    reorganise(till, double_spend=True)
    till.check()
    assert till.look(invoice)["status"] == "expired"
    assert till.payments() == [] and till.balance() == (0, 0)
    assert "reorganised" in till.kinds(invoice)


def test_a_settlement_by_hand_does_not_survive_the_loss_of_its_payment(till):
    invoice = till.shop.invoice()
    btcpay = Terminal(till)
    till.pay(invoice, 1_000)
    till.mine()
    till.check()
    btcpay.run("invoice", "settle", invoice["id"], "--reason", "good enough")
    assert till.look(invoice)["status"] == "paid"
    assert till.check().changed == {}
    reorganise(till, double_spend=True)
    till.check()
    shown = btcpay.json("invoice", "show", invoice["id"])["invoice"]
    assert shown["status"] == "open" and not shown.get("settled_reason")
    assert till.payments() == [] and till.balance() == (0, 0)


def test_a_settlement_by_hand_survives_a_reorganisation_above_it(till):
    invoice = till.shop.invoice()
    till.pay(invoice, 1_000)
    till.mine(2)
    till.check()
    Terminal(till).run("invoice", "settle", invoice["id"], "--reason", "good enough")
    reorganise(till)
    assert till.check().changed == {}
    assert till.look(invoice)["status"] == "paid" and till.balance() == (1_000, 1_000)


def test_only_the_payments_of_the_lost_blocks_are_undone(till):
    kept, _ = paid(till)
    lost, _ = paid(till)
    reorganise(till, double_spend=True)
    till.check()
    assert (till.look(kept)["status"], till.look(lost)["status"]) == ("paid", "open")
    assert till.balance() == (kept["amount_sats"],) * 2


def test_a_payment_long_after_its_watch_is_undone_as_well(lied_to):
    till = lied_to(BTCPAY_WATCH_AFTER_EXPIRY_H="0")
    invoice, _ = paid(till)
    till.clock.move(hours=1)
    assert till.watched() == []
    reorganise(till, double_spend=True)
    till.check()
    assert till.look(invoice)["status"] == "open" and till.balance()[0] == 0
    assert till.check().scanned == 1
    assert till.balance() == (0, 0)


# What undoes nothing


def unworked(till: LiedTo, previous: str) -> tuple[str, str]:
    """Hash and header of a block that nobody has worked for."""
    block = till.sandbox.chain.ledger.tip
    for nonce in range(1000):
        rival = type(block)(
            block.version, previous, "ab" * 32, block.time, block.bits, nonce, block.txs
        )
        if not rival.meets_target:
            return rival.hash, rival.header.hex()
    raise AssertionError("every nonce had work")


def lies_about(till: LiedTo, name: str) -> dict[str, Callable[[Any], Any]]:
    """What the only explorer says when the block with the payment is asked for."""
    ledger = till.sandbox.chain.ledger
    at = f"/block-height/{ledger.height}$"
    hash, header = unworked(till, ledger.hashes[-2])
    other = ledger.blocks[ledger.hashes[-2]]
    easy = other.header[:72] + (0x2100FFFF).to_bytes(4, "little") + other.header[76:]
    return {
        "an error": {at: lambda _: say("oops", 500)},
        "not found": {at: lambda _: say("Block not found", 404)},
        "an empty answer": {at: lambda _: ""},
        "an empty list": {at: lambda _: []},
        "a random hash": {at: lambda _: "ab" * 32},
        "a hash whose header is another block's": {
            at: lambda _: "ab" * 32,
            "/header": lambda _: other.header.hex(),
        },
        "a header without work": {at: lambda _: hash, "/header": lambda _: header},
        "a header of too little difficulty": {
            at: lambda _: header_hash(easy),
            "/header": lambda _: easy.hex(),
        },
        "a header that is none": {at: lambda _: hash, "/header": lambda _: "00" * 79},
        "a block of another height": {at: lambda _: other.hash},
        "no tip": {"/blocks/tip": lambda _: say("oops", 500)},
        "a tip of nothing": {"/blocks/tip": lambda _: ""},
        "an address that nobody has paid": {"/address/": lambda _: []},
    }[name]


def header_hash(raw: bytes) -> str:
    return hash256(raw)[::-1].hex()


NOTHING_UNDONE = [
    "an error",
    "not found",
    "an empty answer",
    "an empty list",
    "a random hash",
    "a hash whose header is another block's",
    "a header without work",
    "a header of too little difficulty",
    "a header that is none",
    "a block of another height",
    "no tip",
    "a tip of nothing",
    "an address that nobody has paid",
]


@pytest.mark.parametrize("name", NOTHING_UNDONE)
def test_an_explorer_with_no_evidence_undoes_nothing(till, name):
    invoice, _ = paid(till)
    before = dump(till.shop)
    till.liar.lies = lies_about(till, name)
    for _ in range(3):
        assert till.check().changed == {}
    assert dump(till.shop) == before
    till.liar.lies = {}
    assert till.check().failed == []
    assert till.look(invoice)["status"] == "paid"


@pytest.mark.parametrize("name", [n for n in NOTHING_UNDONE if "block of" not in n])
def test_the_second_explorer_is_asked_when_the_first_has_no_evidence(lied_to, name):
    till = lied_to(honest_too=True)
    invoice, _ = paid(till)
    till.liar.lies = lies_about(till, name)
    run = till.check()
    assert (run.failed, run.changed) == ([], {})
    assert till.look(invoice)["status"] == "paid"
    reorganise(till, double_spend=True)
    till.check()
    assert till.look(invoice)["status"] == "open" and till.payments() == []


def test_a_chain_that_is_lower_than_the_one_that_we_have_seen_undoes_nothing(till):
    invoice = till.shop.invoice()
    till.pay(invoice)
    till.mine(3)
    till.check()
    seen = height(till)
    reorganise(till, depth=3, double_spend=True)
    till.liar.lies = {"/blocks/tip/height": lambda _: str(seen - 1)}
    for _ in range(3):
        assert till.check().changed == {}
        assert till.look(invoice)["status"] == "paid" and len(till.payments(invoice)) == 1
    till.liar.lies = {"/blocks/tip/height": lambda _: str(seen)}
    till.check()
    assert till.look(invoice)["status"] == "open" and till.payments() == []


def test_a_tip_that_is_not_there_does_not_end_the_following(till):
    invoice, _ = paid(till)
    till.liar.lies = {"/blocks/tip/height": lambda _: "90000000"}
    till.check()
    till.liar.lies = {}
    till.check()
    reorganise(till, double_spend=True)
    for _ in range(3):
        till.check()
    assert till.look(invoice)["status"] == "open" and till.payments() == []


# What it costs, and when it ends


def test_one_call_is_made_for_each_block_and_none_for_a_payment(till):
    for _ in range(2):
        for _ in range(3):
            till.pay(till.shop.invoice())
        till.mine()
    assert len(till.check().changed) == 6
    till.mine(2)
    till.liar.asked.clear()
    till.check()
    tip = height(till)
    assert [till.liar.count(f"/block-height/{at}$") for at in (tip - 3, tip - 2, tip)] == [1, 1, 1]
    assert till.liar.count("/block-height/|/blocks/") == 3 + 1


def test_while_the_tip_is_the_same_no_block_is_compared_again(till):
    paid(till), till.mine(), till.check()
    till.liar.asked.clear()
    till.check()
    ours = [path for path in till.liar.asked if path.startswith("/block")]
    assert ours == ["/blocks/tip/height", f"/block-height/{height(till)}"]


def test_another_tip_of_the_same_height_is_compared(till):
    invoice, _ = paid(till)
    till.check()
    reorganise(till, double_spend=True)
    till.liar.lies = {"/blocks/tip/height": lambda text: str(int(text) - 1)}
    till.check()
    assert till.look(invoice)["status"] == "open"


def asked_for(till: LiedTo, block_height: int) -> int:
    """How often a check asks for this block."""
    till.liar.asked.clear()
    till.check()
    return till.liar.count(f"/block-height/{block_height}$")


def test_a_block_is_compared_until_it_was_compared_at_depth_six(till):
    paid(till)
    at = height(till)
    for _depth in (3, 5, 7):
        till.mine(2)
        assert [asked_for(till, at) for _ in range(2)] == [1, 0]
    till.mine(2)
    assert asked_for(till, at) == 0


def test_a_block_on_top_of_the_compared_one_costs_three_calls(till):
    paid(till), till.check()
    till.mine()
    till.liar.asked.clear()
    till.check()
    tip = height(till)
    ours = [path for path in till.liar.asked if not path.startswith("/address/")]
    assert ours == [
        "/blocks/tip/height",
        f"/block-height/{tip}",
        f"/block/{till.sandbox.chain.ledger.tip.hash}/header",
    ]


@pytest.mark.parametrize(("depth", "status"), [(5, "open"), (6, "paid")])
def test_a_block_that_was_compared_at_depth_five_may_still_be_lost(till, depth, status):
    invoice, _ = paid(till)
    till.mine(depth - 1)
    till.check()
    reorganise(till, depth=depth, double_spend=True)
    till.check()
    assert till.look(invoice)["status"] == status


def test_a_block_that_is_deep_already_when_it_is_seen_first_is_followed_no_more(till):
    invoice = till.shop.invoice()
    till.pay(invoice)
    till.mine(6)
    at = height(till) - 5
    assert till.check().changed == {invoice["id"]: "paid"}
    assert asked_for(till, at) <= 1 and asked_for(till, at) == 0


def test_a_lost_block_that_was_compared_late_is_found_however_deep_it_is(till):
    """The check did not run for a while: what it has not compared at depth six it compares."""
    invoice, _ = paid(till)
    reorganise(till, double_spend=True)
    till.mine(20)
    till.check()
    assert till.look(invoice)["status"] == "open" and till.payments() == []


# Once, and whole


@pytest.mark.parametrize("count", [2, 4])
def test_checks_at_the_same_time_undo_once(till, count):
    invoices = [paid(till)[0] for _ in range(3)]
    reorganise(till, depth=3, double_spend=True)
    barrier = threading.Barrier(count)
    till.liar.lies = {"/blocks/tip/height": lambda text: barrier.wait(10) and text or text}
    failed = []

    def check() -> None:
        db = open_database(till.settings.database_url)
        checker = till.checker(db)
        failed.extend(checker.run([invoice["id"] for invoice in invoices]).failed)
        db.close()

    threads = [threading.Thread(target=check) for _ in range(count)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert failed == []
    assert [till.kinds(invoice).count("reorganised") for invoice in invoices] == [1, 1, 1]
    assert till.payments() == [] and till.balance() == (0, 0)
    assert {till.look(invoice)["status"] for invoice in invoices} == {"open"}


class Killed(Exception):
    """The process ended here."""


def test_an_undoing_that_is_killed_between_two_statements_has_done_nothing(till):
    one, two = till.shop.invoice(25), till.shop.invoice(40)
    till.pay(one, 10_000)
    till.mine()
    till.check()
    till.pay(one), till.pay_outputs((two, two["amount_sats"]))
    till.mine()
    till.check()
    lost = till.sandbox.chain.ledger.tip.hash
    before, db = dump(till.shop), open_database(till.settings.database_url)
    execute, kills = db.connection.execute_sql, 0

    def kill_at(number: int) -> Callable[..., Any]:
        statements = iter(range(1, 1_000))

        def execute_or_die(*args: Any, **kwargs: Any) -> Any:
            if next(statements) == number:
                raise Killed
            return execute(*args, **kwargs)

        return execute_or_die

    for number in range(1, 200):
        db.connection.execute_sql = kill_at(number)
        try:
            undo(db, height(till), lost, "explorer", till.clock())
            break
        except Killed:
            kills += 1
            assert dump(till.shop) == before
    db.close()
    assert kills > 10
    assert [p["amount_sats"] for p in till.payments()] == [10_000]
    assert till.look(one)["status"] == till.look(two)["status"] == "open"
    assert till.balance()[0] == 10_000


def test_undoing_again_does_nothing(till):
    paid(till)
    lost, at = till.sandbox.chain.ledger.tip.hash, height(till)
    db = till.shop.service.db
    undo(db, at, lost, "explorer", till.clock())
    before = dump(till.shop)
    undo(db, at, lost, "explorer", till.clock())
    assert dump(till.shop) == before


def test_another_block_of_the_same_height_is_not_touched(till):
    paid(till)
    before = dump(till.shop)
    undo(till.shop.service.db, height(till), "ab" * 32, "explorer", till.clock())
    assert dump(till.shop) == before


@pytest.mark.parametrize("seen_waiting", [True, False], ids=["seen waiting", "seen in its block"])
@pytest.mark.parametrize("confirmations", ["1", "2"], ids=["paid by then", "not deep enough yet"])
def test_what_was_in_time_by_its_block_stays_in_time_when_the_block_is_lost(
    lied_to, seen_waiting, confirmations
):
    till = lied_to(BTCPAY_CONFIRMATIONS=confirmations)
    invoice = till.shop.invoice(expires_in_hours=1)
    till.clock.move(minutes=59)
    till.pay(invoice)
    if seen_waiting:
        till.check()
    till.mine()
    till.clock.move(minutes=30)
    is_paid = confirmations == "1"
    assert till.check().changed == ({invoice["id"]: "paid"} if is_paid else {})
    reorganise(till)
    assert till.check().changed == {}
    assert till.look(invoice)["status"] == "open"
    till.mine(2)
    assert till.check().changed == {invoice["id"]: "paid"}


def test_proven_money_that_is_not_deep_enough_and_is_spent_twice_goes_away(lied_to):
    till = lied_to(BTCPAY_CONFIRMATIONS="3")
    invoice = till.shop.invoice(expires_in_hours=1)
    till.pay(invoice)
    till.mine()
    till.check()
    assert till.balance() == (0, invoice["amount_sats"])
    reorganise(till, double_spend=True)
    till.check()
    assert till.kinds(invoice)[-2:] == ["reorganised", "vanished"]
    assert till.balance() == (0, 0)
    till.clock.move(hours=2)
    assert till.check().changed == {invoice["id"]: "expired"}


def test_proven_money_that_is_not_deep_enough_is_not_undone_without_evidence(lied_to):
    till = lied_to(BTCPAY_CONFIRMATIONS="3")
    invoice = till.shop.invoice()
    till.pay(invoice)
    till.mine(2)
    till.check()
    till.liar.lies = {"/address/": lambda _: []}
    till.check()
    till.liar.lies = {"/block-height/": lambda _: "ab" * 32}
    till.check()
    till.liar.lies = {}
    assert till.balance() == (0, invoice["amount_sats"])
    till.mine()
    assert till.check().changed == {invoice["id"]: "paid"}
