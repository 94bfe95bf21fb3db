"""The life of an invoice on a full node's chain: the rows that test_node_trips.py does not have.

One chain and one clock for all, which only ever goes forward; a new shop for each test.
"""

import contextlib
import json
import threading
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from bitcoin_node import NOBODY, Coin
from builders import TickerServer, dump
from databases import ON_POSTGRES
from fake_esplora import Json, Terminal
from node_esplora import Answer, Fault
from node_till import Chain, NodeTill, open_chain, open_node_till

from btcpay.bitcoin.tx import TxOut, parse_tx
from btcpay.check.report import Report
from btcpay.invoices.events import finish
from btcpay.proofs.document import check_document
from btcpay.sandbox.node.block import build_block, build_coinbase
from btcpay.sandbox.node.script import script_of
from btcpay.values.times import from_unix_s
from storage.database import open_database
from storage.queries import invoices, payments

NO_BUDGET = {"BTCPAY_EXPLORER_CALLS_PER_HOUR": "10000000"}
EMPTY = Fault("/address/", body=b"[]")
MEETING_S = 15  # below the 20 s that a check waits for an answer: a missed meeting is a failure


@pytest.fixture(scope="module")
def chain() -> Iterator[Chain]:
    with open_chain() as opened:
        yield opened


@pytest.fixture
def open_till(
    tmp_path: Path, ticker: TickerServer, chain: Chain
) -> Iterator[Callable[..., NodeTill]]:
    """Opens a shop on the chain, with settings of its own."""
    with contextlib.ExitStack() as stack:
        yield lambda **environ: stack.enter_context(
            open_node_till(tmp_path, ticker, chain, **environ)
        )


@pytest.fixture
def till(open_till: Callable[..., NodeTill]) -> NodeTill:
    return open_till()


def raw_payment(till: NodeTill, invoice: Json, sats: int | None = None) -> bytes:
    """A payment that no mempool has seen yet."""
    amount_sats = invoice["amount_sats"] if sats is None else sats
    return till.node.wallet.build([TxOut(amount_sats, script_of(invoice["deposit_address"]))])


def mine_at(till: NodeTill, at: float, *raws: bytes) -> str:
    """A block with these transactions whose time is `at`, unix seconds; moves the clock there."""
    till.clock.move(seconds=at - till.now)
    till.node.set_time(at)
    height, previous = till.node.tip()
    txs = [parse_tx(raw) for raw in raws]
    coinbase = build_coinbase(height + 1, 0, script_of(NOBODY), txs)
    block = build_block(previous, int(at), coinbase, txs)
    till.node.submit(block)
    return block.hash


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


def cancel(till: NodeTill, invoice: Json) -> None:
    """What `btcpay invoice cancel --force` does."""
    row = till.shop.service.db.only(invoices.WHOLE, id=invoice["id"])
    finish(till.shop.service.db, row, till.clock(), status="canceled", reason="test")


def changes(till: NodeTill) -> dict[str, str]:
    """What a check changes that could look at every address: one that could not changes nothing."""
    run = till.check()
    assert run.complete, run.failed
    return run.changed


def expire(till: NodeTill, invoice: Json) -> None:
    """Goes to the deadline of an invoice of one hour, and looks."""
    till.clock.move(hours=1)
    assert changes(till) == {invoice["id"]: "expired"}


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


# How much


def test_the_rest_in_satoshis_as_quoted_pays_whatever_the_price_did(
    till: NodeTill, ticker: TickerServer
) -> None:
    invoice = till.shop.invoice(25)  # at 60,000 USD
    rest_sats = invoice["amount_sats"] - 20_000
    part = till.pay(invoice, 20_000)
    till.mine()
    ticker.price("150000")  # what came is worth 30 USD now, and does not pay
    assert changes(till) == {}
    assert till.state(invoice) == ("open", 20_000, 0)
    ticker.price("30000")  # what is asked is worth 12.50 USD now, and is enough
    rest = till.pay(invoice, rest_sats)
    till.mine()
    assert changes(till) == {invoice["id"]: "paid"}
    assert receipts(till) == {(part, 20_000, invoice["id"]), (rest, rest_sats, invoice["id"])}
    worth = {p["tx_hash"]: p["amount_usd_at_receipt"] for p in till.payments()}
    assert worth == {part: 30.0, rest: 6.5}


@pytest.mark.parametrize("more_sats", [1, 41_667], ids=["a satoshi", "twice"])
def test_more_than_asked_pays_and_the_payment_shows_what_came(
    till: NodeTill, more_sats: int
) -> None:
    invoice = till.shop.invoice()
    came_sats = invoice["amount_sats"] + more_sats
    txid = till.pay(invoice, came_sats)
    till.mine()
    assert changes(till) == {invoice["id"]: "paid"}
    assert receipts(till) == {(txid, came_sats, invoice["id"])}
    assert till.state(invoice) == ("paid", came_sats, 0)
    assert till.balance() == (came_sats, came_sats)


def test_what_comes_beyond_a_paid_invoice_is_a_payment_without_it(till: NodeTill) -> None:
    invoice, first = paid(till)
    amount_sats = invoice["amount_sats"]
    before = till.look(invoice)
    second = till.pay(invoice)
    assert changes(till) == {}
    till.mine()
    assert changes(till) == {}
    assert till.look(invoice) == before
    assert receipts(till) == {(first, amount_sats, invoice["id"]), (second, amount_sats, None)}
    assert till.balance() == (2 * amount_sats,) * 2


def test_of_two_full_payments_in_one_block_one_pays(till: NodeTill) -> None:
    invoice = till.shop.invoice()
    amount_sats = invoice["amount_sats"]
    txids = {till.pay(invoice), till.pay(invoice)}
    till.mine()
    assert changes(till) == {invoice["id"]: "paid"}
    one = till.look(invoice)["tx_hash"]
    (other,) = txids - {one}
    assert receipts(till) == {(one, amount_sats, invoice["id"]), (other, amount_sats, None)}
    assert till.balance() == (2 * amount_sats,) * 2


def test_one_satoshi_short_stays_open_and_that_satoshi_pays(till: NodeTill) -> None:
    invoice = till.shop.invoice()
    most_sats = invoice["amount_sats"] - 1
    most = till.pay(invoice, most_sats)
    till.mine()
    assert changes(till) == {}
    assert till.state(invoice) == ("open", most_sats, 0)
    raw = raw_payment(till, invoice, 1)  # nodes do not relay dust, but a miner may take it
    till.clock.move(minutes=1)
    mine_at(till, till.now, raw)
    assert changes(till) == {invoice["id"]: "paid"}
    last = parse_tx(raw).txid
    assert till.look(invoice)["tx_hash"] == last
    assert receipts(till) == {(most, most_sats, invoice["id"]), (last, 1, invoice["id"])}


def test_with_a_tolerance_of_one_percent_99_percent_pay_and_a_satoshi_less_does_not(
    open_till: Callable[..., NodeTill],
) -> None:
    till = open_till(BTCPAY_UNDERPAYMENT_TOLERANCE_PERCENT="1")
    enough, short = till.shop.invoice(60), till.shop.invoice(60)
    assert enough["amount_sats"] == 100_000
    till.pay(enough, 99_000), till.pay(short, 98_999)
    till.mine()
    assert changes(till) == {enough["id"]: "paid"}
    page = till.shop.client.get(f"/pay/{short['id']}/status").json
    assert (page["status"], page["missing_sats"]) == ("open", 1_001)
    assert sorted(p["amount_sats"] for p in till.payments()) == [98_999, 99_000]


# When


@pytest.mark.parametrize("looked", [True, False], ids=["watched before", "service down before"])
@pytest.mark.parametrize("seconds", [-1, 0], ids=["a second before it", "at it"])
def test_a_block_before_the_deadline_that_is_seen_after_it_pays_and_one_at_it_is_late(
    till: NodeTill, looked: bool, seconds: int
) -> None:
    invoice = till.shop.invoice(expires_in_hours=1)
    if looked:
        assert changes(till) == {}
    raw = raw_payment(till, invoice)
    mined_at = till.now + 3600 + seconds
    mine_at(till, mined_at, raw)
    till.clock.move(hours=12)
    till.mine(6)
    status = "paid" if seconds < 0 else "expired"
    assert changes(till) == {invoice["id"]: status}
    shown = till.look(invoice)
    assert (shown["tx_hash"] is None) == (status == "expired")
    (payment,) = till.payments()
    assert payment["invoice_id"] == (invoice["id"] if status == "paid" else None)
    assert payment["created_at"] == from_unix_s(mined_at).strftime("%Y-%m-%dT%H:%M:%S.000Z")
    assert payment["amount_usd_at_receipt"] is None  # the price of twelve hours later is not it
    assert till.balance() == (invoice["amount_sats"],) * 2


def test_the_first_check_after_a_night_settles_whatever_happened_meanwhile(till: NodeTill) -> None:
    in_time, unpaid, short, late = (till.shop.invoice(expires_in_hours=1) for _ in range(4))
    till.pay(in_time), till.pay(short, 10_000)
    till.clock.move(minutes=30)
    till.mine()
    till.clock.move(hours=1)
    till.pay(late), till.pay(in_time, 1_000)
    till.mine()
    till.clock.move(hours=12)
    till.mine(20)
    assert changes(till) == {in_time["id"]: "paid"} | {
        invoice["id"]: "expired" for invoice in (unpaid, short, late)
    }
    assert {(sats, to) for _, sats, to in receipts(till)} == {
        (in_time["amount_sats"], in_time["id"]),
        (1_000, None),
        (10_000, None),
        (late["amount_sats"], None),
    }


def test_what_first_shows_after_the_deadline_and_still_waits_is_late(till: NodeTill) -> None:
    invoice = till.shop.invoice(expires_in_hours=1)
    till.clock.move(hours=1)
    txid = till.pay(invoice)
    assert changes(till) == {invoice["id"]: "expired"}
    assert till.balance() == (0, invoice["amount_sats"])
    till.mine()
    assert changes(till) == {}
    assert receipts(till) == {(txid, invoice["amount_sats"], None)}


def test_money_for_an_expired_invoice_is_a_payment_without_it_and_in_the_balance(
    till: NodeTill,
) -> None:
    invoice = till.shop.invoice(expires_in_hours=1)
    expire(till, invoice)
    before = till.look(invoice)
    txid = till.pay(invoice)
    till.mine()
    assert changes(till) == {}
    assert till.look(invoice) == before
    assert receipts(till) == {(txid, invoice["amount_sats"], None)}
    assert till.balance() == (invoice["amount_sats"],) * 2


def test_money_is_found_however_late_while_anything_is_open(till: NodeTill) -> None:
    invoice, _another = till.shop.invoice(expires_in_hours=1), till.shop.invoice()
    expire(till, invoice)
    till.clock.move(days=400)
    txid = till.pay(invoice)
    till.mine()
    assert changes(till) == {}
    assert receipts(till) == {(txid, invoice["amount_sats"], None)}
    assert till.look(invoice)["status"] == "expired"
    assert till.balance() == (invoice["amount_sats"],) * 2


@pytest.mark.parametrize("waited", [True, False], ids=["waited already", "comes afterwards"])
def test_money_for_a_canceled_invoice_is_a_payment_without_it(till: NodeTill, waited: bool) -> None:
    invoice = till.shop.invoice()
    if waited:
        txid = till.pay(invoice)
        till.look_for(invoice)
        cancel(till, invoice)
    else:
        cancel(till, invoice)
        txid = till.pay(invoice)
    till.mine()
    assert changes(till) == {}
    assert till.look(invoice)["status"] == "canceled"
    assert receipts(till) == {(txid, invoice["amount_sats"], None)}


# Replaced


@pytest.mark.parametrize("seen", [(), (1,), (2,), (1, 2)], ids=str)
def test_a_payment_replaced_by_fee_pays_once_whichever_of_the_two_was_seen_waiting(
    till: NodeTill, seen: tuple[int, ...]
) -> None:
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


def test_a_miner_that_takes_the_replaced_one_pays_once_as_well(till: NodeTill) -> None:
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


# Reorganised


def blocks_proven(till: NodeTill, invoice: Json) -> list[str]:
    """The blocks that the proofs of the invoice's payments are of."""
    rows = till.shop.service.db.rows(payments.PROOFS_OF_ADDRESS, invoice_id=invoice["id"])
    return [check_document(json.loads(row["document"])).block_hash for row in rows]


@pytest.mark.parametrize("depth", [1, 3])
def test_a_payment_that_the_other_chain_has_in_another_block_is_paid_by_that_one(
    till: NodeTill, depth: int
) -> None:
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


def test_after_the_deadline_what_a_reorganisation_put_back_waits_and_pays_once_more(
    till: NodeTill,
) -> None:
    invoice, txid = paid(till, expires_in_hours=1)
    till.clock.move(hours=2)
    till.node.reorganise(1)
    for _ in range(3):
        assert changes(till) == {}
        till.clock.move(hours=1)
    assert till.state(invoice) == ("open", invoice["amount_sats"], invoice["amount_sats"])
    assert till.payments() == []
    till.mine()
    assert changes(till) == {invoice["id"]: "paid"}
    assert receipts(till) == {(txid, invoice["amount_sats"], invoice["id"])}


def test_after_the_deadline_what_was_spent_twice_expires_the_invoice(till: NodeTill) -> None:
    invoice, txid = paid(till, expires_in_hours=1)
    till.clock.move(hours=2)
    till.node.reorganise(1, instead=[till.node.take_back(txid)])
    assert changes(till) == {}  # the look that misses the money does not end it as well
    assert till.state(invoice) == ("open", 0, 0)
    till.clock.move(minutes=1)
    assert changes(till) == {invoice["id"]: "expired"}
    assert till.payments() == [] and till.balance() == (0, 0)


def test_a_part_stays_a_payment_when_the_rest_is_spent_twice_and_another_rest_pays(
    till: NodeTill,
) -> None:
    invoice = till.shop.invoice()
    rest_sats = invoice["amount_sats"] - 10_000
    part = till.pay(invoice, 10_000)
    till.mine()
    rest = till.pay(invoice, rest_sats)
    till.mine()
    assert changes(till) == {invoice["id"]: "paid"}
    till.node.reorganise(1, instead=[till.node.take_back(rest)])
    assert changes(till) == {}
    assert till.state(invoice) == ("open", 10_000, 0)
    assert receipts(till) == {(part, 10_000, None)}
    assert till.balance() == (10_000, 10_000)
    again = till.pay(invoice, rest_sats)
    till.mine()
    assert changes(till) == {invoice["id"]: "paid"}
    assert receipts(till) == {(part, 10_000, invoice["id"]), (again, rest_sats, invoice["id"])}


# The explorer fails

OUTAGES = {
    "nobody answers": Fault(drop=True),
    "every answer is an error": Fault(status=503),
    "only the tip is answered": Fault("/address/|/raw", status=500),
    "only blocks are answered": Fault("/address/", status=500),
}


@pytest.mark.parametrize("outage", OUTAGES.values(), ids=OUTAGES)
def test_while_the_explorer_is_down_at_the_deadline_nothing_expires_and_then_all_is_settled(
    till: NodeTill, outage: Fault
) -> None:
    unpaid, in_time, waiting, late = (till.shop.invoice(expires_in_hours=1) for _ in range(4))
    txid = till.pay(waiting)
    raw = raw_payment(till, in_time)
    till.clock.move(minutes=58)
    till.look_for(unpaid, in_time, waiting, late)
    till.esplora.set(outage)
    mine_at(till, till.now + 60, raw)
    found = {in_time["id"]: "paid"}
    early = found if outage.path == "/address/" else {}
    for run_early in (early, {}):
        till.clock.move(hours=1)
        run = till.check()
        assert (run.looked, run.changed, run.complete) == (0, run_early, False)
    assert {till.look(i)["status"] for i in (unpaid, waiting, late)} == {"open"}
    assert len(till.payments()) == len(early)
    till.esplora.clear()
    mine_at(till, till.now, raw_payment(till, late))
    assert early | changes(till) == found | {unpaid["id"]: "expired", late["id"]: "expired"}
    assert till.state(waiting)[0] == "open"
    till.mine()
    assert changes(till) == {waiting["id"]: "paid"}
    assert till.look(waiting)["tx_hash"] == txid
    assert [p["amount_sats"] for p in till.payments() if p["invoice_id"] is None] == [
        late["amount_sats"]
    ]


def test_an_explorer_that_is_empty_for_every_known_payment_undoes_nothing(till: NodeTill) -> None:
    whole, part, late, canceled = (
        till.shop.invoice(**fields) for fields in ({}, {}, {"expires_in_hours": 1}, {})
    )
    cancel(till, canceled)
    expire(till, late)
    till.pay(part, 10_000)
    for invoice in (whole, whole, late, canceled):
        till.pay(invoice)
    till.mine()
    till.check()
    before, balance = dump(till.shop), till.balance()
    assert len(before["payment"]) == 5
    till.esplora.set(EMPTY)
    for _ in range(3):
        till.clock.move(hours=1)
        run = till.look_for(whole, part, late, canceled)
        assert (run.looked, run.failed, run.changed) == (4, [], {})
    assert EMPTY.met >= 12
    assert dump(till.shop) == before and till.balance() == balance
    till.esplora.clear()
    rest = till.pay(part, part["amount_sats"] - 10_000)
    till.mine()
    assert changes(till) == {part["id"]: "paid"}
    assert till.look(part)["tx_hash"] == rest


def test_an_explorer_that_is_empty_for_what_is_not_deep_yet_neither_forgets_nor_delays_it(
    open_till: Callable[..., NodeTill],
) -> None:
    till = open_till(BTCPAY_CONFIRMATIONS="2")
    invoice = till.shop.invoice(expires_in_hours=1)
    txid = till.pay(invoice)
    till.mine()
    assert changes(till) == {}
    before = dump(till.shop)["output"]
    till.clock.move(hours=2)
    till.esplora.set(EMPTY)
    for _ in range(3):
        assert changes(till) == {}
        till.clock.move(minutes=10)
    assert dump(till.shop)["output"] == before and till.payments() == []
    assert till.look(invoice)["status"] == "open"
    till.mine()
    assert changes(till) == {invoice["id"]: "paid"}
    assert receipts(till) == {(txid, invoice["amount_sats"], invoice["id"])}


def test_an_explorer_that_is_empty_once_for_what_waits_does_not_expire_it(till: NodeTill) -> None:
    invoice = till.shop.invoice(expires_in_hours=1)
    txid = till.pay(invoice)
    till.look_for(invoice)
    till.clock.move(hours=2)
    till.esplora.set(EMPTY)
    assert changes(till) == {}
    till.esplora.clear()
    till.clock.move(minutes=1)
    assert changes(till) == {}
    assert till.state(invoice) == ("open", invoice["amount_sats"], invoice["amount_sats"])
    till.mine()
    assert changes(till) == {invoice["id"]: "paid"}
    assert till.look(invoice)["tx_hash"] == txid


# Again, and at the same time


def meeting(checks: int) -> Callable[[str, Answer], Answer]:
    """Holds back what is said of a block or an address until so many checks have asked for it."""
    barriers: dict[str, threading.Barrier] = {}

    def hold(path: str, answer: Answer) -> Answer:
        barriers.setdefault(path, threading.Barrier(checks)).wait(MEETING_S)
        return answer

    return hold


def at_once(check: Callable[[], None], count: int) -> None:
    threads = [threading.Thread(target=check) for _ in range(count)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()


@pytest.mark.parametrize("count", [2, 4])
def test_checks_that_get_the_same_answers_at_the_same_moment_write_each_thing_once(
    till: NodeTill, count: int
) -> None:
    late, gone = (till.shop.invoice(expires_in_hours=1) for _ in range(2))
    expire_at = till.now + 3600
    exact, part, twice, waiting = (till.shop.invoice() for _ in range(4))
    till.pay(part, 10_000)
    till.mine()
    till.check()
    mine_at(till, expire_at, raw_payment(till, late))
    till.pay_outputs((exact, exact["amount_sats"]), (part, part["amount_sats"] - 10_000))
    till.pay(twice), till.pay(twice)
    till.mine()
    till.pay(waiting)
    ids = [invoice["id"] for invoice in (late, gone, exact, part, twice, waiting)]
    till.esplora.set(Fault("/raw$|/txs/mempool$", lie=meeting(count)))
    runs: list[Report] = []

    def check() -> None:
        db = open_database(till.settings.database_url)
        runs.append(till.checker(db, in_flight=1).run(ids))
        db.close()

    at_once(check, count)
    assert [(run.looked, run.failed) for run in runs] == [(6, [])] * count
    changed = [(invoice_id, status) for run in runs for invoice_id, status in run.changed.items()]
    assert sorted(changed) == sorted(
        [(late["id"], "expired"), (gone["id"], "expired")]
        + [(invoice["id"], "paid") for invoice in (exact, part, twice)]
    )
    assert till.kinds(exact) == ["seen", "payment", "paid"]
    assert till.kinds(part) == ["seen", "payment", "seen", "payment", "paid"]
    assert till.kinds(twice) == ["seen", "seen", "payment", "payment", "paid"]
    assert till.kinds(late) == ["seen", "payment", "expired"]
    assert (till.kinds(gone), till.kinds(waiting)) == (["expired"], ["seen"])
    sums = [exact, part, twice, twice, late]
    assert sum(p["amount_sats"] for p in till.payments()) == till.balance()[0]
    assert till.balance()[0] == sum(invoice["amount_sats"] for invoice in sums)
    till.esplora.clear()
    assert changes(till) == {}  # which gives what happened its numbers
    before = dump(till.shop)
    assert changes(till) == {}
    assert dump(till.shop) == before


def test_two_processes_for_one_invoice_make_one_payment(
    tmp_path: Path, ticker: TickerServer
) -> None:
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


def test_the_same_check_many_times_changes_nothing(open_till: Callable[..., NodeTill]) -> None:
    till = open_till(**NO_BUDGET)
    late, waiting = (till.shop.invoice(expires_in_hours=hours) for hours in (1, 2))
    part, swept, moved = (till.shop.invoice() for _ in range(3))
    till.pay(part, 10_000)
    swept_txid = till.pay(swept)
    till.mine()
    till.sweep(swept, swept_txid)
    replaced = till.pay(moved)
    till.look_for(moved)
    moved_txid = bump(till, replaced)
    till.mine()
    till.check()
    till.node.reorganise(1, instead=[till.node.transaction(moved_txid).raw])
    till.mine()
    till.clock.move(hours=1)
    till.check()
    till.pay(late)
    till.mine()
    till.pay(waiting)
    till.look_for(waiting)
    till.clock.move(hours=1)
    till.check()
    statuses = [till.look(invoice)["status"] for invoice in (late, waiting, part, swept, moved)]
    assert statuses == ["expired", "open", "open", "paid", "paid"]
    assert "spent" in till.kinds(swept) and "reorganised" in till.kinds(moved)
    before, balance = dump(till.shop), till.balance()
    assert (len(before["payment"]), len(before["output"])) == (4, 6)
    for _ in range(20 if ON_POSTGRES else 100):
        till.clock.move(seconds=30)
        run = till.look_for(late, waiting, part, swept, moved)
        assert (run.looked, run.failed, run.changed) == (5, [], {})
    assert dump(till.shop) == before and till.balance() == balance
