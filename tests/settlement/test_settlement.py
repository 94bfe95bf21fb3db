"""`decide`: facts about an address in, what follows out. Every row is a sentence.

Times are minutes after the invoice's creation; it asks 100,000 satoshis, ends at minute 60 and is
judged at minute 30, or at 90 when everything up to 90 is known. `above`: the highest header that we
had when it was made.
"""

from dataclasses import replace
from decimal import Decimal
from typing import Any

import pytest
from test_settlement_life import ASKED, CREATED, TIP, at

from btcpay.settlement.decide import decide, required_sats
from btcpay.settlement.values import Block, Invoice, Output, Rules

DEADLINE = 60
NEVER = None


def coin(sats=ASKED, tx="aa", height=None, mined=10, seen=5, **facts):
    """An output; in a block when it has a height."""
    block = None if height is None else Block(height, f"block{height}", at(mined))
    vout = facts.pop("vout", 0)
    return Output(tx, vout, sats, first_seen_at=at(seen), block=block, **facts)


def payment(sats=ASKED, tx="aa", settles=True, **facts):
    """An output that is a payment already."""
    return coin(sats, tx, **({"height": TIP} | facts), credited=True, settles=settles)


def judge(
    outputs,
    status="open",
    now=30,
    ends=30,
    deadline=DEADLINE,
    confirmations=1,
    tolerance="0",
    tip=TIP,
    above=None,
):
    ends_after = None if deadline is None else at(deadline)
    invoice = Invoice("inv", status, ASKED, CREATED, ends_after, above_height=above)
    if status == "paid":
        invoice = replace(invoice, tx_hash="aa", paid_at=at(10))
    ends_at = None if ends is None else at(ends)
    rules = Rules(confirmations, Decimal(tolerance))
    return decide(invoice, outputs, tip, ends_at, rules, at(now))


def shown(verdict):
    """The verdict in the words of the table."""
    return {
        "status": verdict.status,
        "tx": verdict.tx_hash,
        "paid": verdict.paid_at and (verdict.paid_at - CREATED).total_seconds() / 60,
        "receipts": [(r.txid, r.amount_sats, r.settles) for r in verdict.receipts],
        "received": verdict.received_sats,
        "unconfirmed": verdict.unconfirmed_sats,
        "missing": verdict.missing_sats,
        "coming beside": verdict.coming_unapplied_sats,
        "depth": verdict.confirmations,
    }


AFTER: dict[str, Any] = {"now": 90, "ends": 90}
PAID = {"status": "paid", "tx": "aa", "missing": 0, "unconfirmed": 0}
OPEN = {"status": "open", "tx": None, "paid": None}
EXPIRED = {"status": "expired", "tx": None, "paid": None}


def row(outputs, expected, **given):
    return outputs, given, expected


CASES = {
    "nothing came: open": row([], OPEN | {"received": 0, "missing": ASKED, "receipts": []}),
    "the exact amount, confirmed, pays": row(
        [coin(height=TIP)],
        PAID | {"paid": 10, "receipts": [("aa", ASKED, True)], "received": ASKED, "depth": 1}),
    "the exact amount, unconfirmed, does not pay yet": row(
        [coin()],
        OPEN | {"receipts": [], "received": ASKED, "unconfirmed": ASKED, "missing": 0, "depth": 0}),
    "a part stays open and is a payment without invoice": row(
        [coin(40_000, height=TIP)],
        OPEN | {"receipts": [("aa", 40_000, False)], "received": 40_000, "missing": 60_000}),
    "a part and then the rest pay together, by the transaction that completed the sum": row(
        [payment(40_000, settles=False, height=990), coin(60_000, "bb", TIP, mined=20)],
        PAID | {"tx": "bb", "paid": 20, "received": ASKED,
                "receipts": [("aa", 40_000, True), ("bb", 60_000, True)]}),
    "a confirmed part and a waiting rest: open, nothing missing": row(
        [coin(40_000, height=TIP), coin(60_000, "bb")],
        OPEN | {"unconfirmed": 60_000, "missing": 0, "depth": 0}),
    "more than asked pays, and the payment shows what came": row(
        [coin(100_001, height=TIP)],
        PAID | {"receipts": [("aa", 100_001, True)], "received": 100_001}),
    "paid twice: the second is a payment without invoice": row(
        [coin(height=999), coin(tx="bb", height=TIP)],
        PAID | {"receipts": [("aa", ASKED, True), ("bb", ASKED, False)]}),
    "one satoshi short does not pay": row(
        [coin(99_999, height=TIP)], OPEN | {"missing": 1, "receipts": [("aa", 99_999, False)]}),
    "short by exactly the tolerance pays": row([coin(99_000, height=TIP)], PAID, tolerance="1"),
    "one satoshi beyond the tolerance does not pay, and all that is short is missing": row(
        [coin(98_999, height=TIP)], OPEN | {"missing": 1_001}, tolerance="1"),
    "waiting money within the tolerance misses nothing": row(
        [coin(99_000)], OPEN | {"missing": 0, "unconfirmed": 99_000}, tolerance="1"),
    "two outputs of one transaction are one payment": row(
        [coin(30_000, height=TIP), coin(70_000, height=TIP, vout=1)],
        PAID | {"receipts": [("aa", ASKED, True)]}),
    "a transaction settles whole, also the output beyond the sum": row(
        [coin(height=TIP), coin(5, height=TIP, vout=1)],
        PAID | {"receipts": [("aa", 100_005, True)], "received": 100_005}),
    "two transactions in one block settle together, in one order whoever names them first": row(
        [coin(60_000, "bb", TIP), coin(40_000, "aa", TIP)],
        PAID | {"tx": "bb", "receipts": [("aa", 40_000, True), ("bb", 60_000, True)]}),
    "two transactions in one block: their places in it decide, whatever their ids": row(
        [coin(60_000, "aa", TIP, position=7), coin(40_000, "bb", TIP, position=3)],
        PAID | {"tx": "aa", "receipts": [("bb", 40_000, True), ("aa", 60_000, True)]}),
    "the chain's order decides, not the order of arrival": row(
        [coin(60_000, "aa", 1000, seen=1), coin(40_000, "bb", 998), coin(1_000, "cc", 999)],
        PAID | {"tx": "aa",
                "receipts": [("bb", 40_000, True), ("cc", 1_000, True), ("aa", 60_000, True)]}),
    "waiting across the deadline, seen before it: stays open": row(
        [coin(seen=59.9)], OPEN | {"unconfirmed": ASKED, "missing": 0}, **AFTER),
    "waiting across the deadline, but too little: expires": row(
        [coin(99_999, seen=59.9)], EXPIRED | {"missing": 1}, **AFTER),
    "seen in time and confirmed after the deadline: paid": row(
        [coin(seen=59.9, height=TIP, mined=80)], PAID | {"paid": 80}, **AFTER),
    "vanished after the deadline: expires": row(
        [coin(vanished_at=at(20))], EXPIRED | {"received": 0, "receipts": []}, **AFTER),
    "vanished before the deadline: open, nothing came": row([coin(vanished_at=at(20))], OPEN),
    "seen only after the deadline, in a block before it: paid": row(
        [coin(seen=90, height=TIP, mined=59)], PAID | {"paid": 59}, **AFTER),
    "late: a payment without invoice, and the invoice expires": row(
        [coin(seen=61, height=TIP, mined=62)],
        EXPIRED | {"receipts": [("aa", ASKED, False)], "received": 0}, **AFTER),
    "late and waiting: expires at once": row(
        [coin(seen=61)], EXPIRED | {"receipts": [], "received": 0, "coming beside": ASKED},
        **AFTER),
    "in time and waiting: counts, and is not beside": row(
        [coin()], OPEN | {"received": ASKED, "coming beside": 0}),
    "late and vanished: nothing is coming": row(
        [coin(seen=61, vanished_at=at(70))], EXPIRED | {"coming beside": 0}, **AFTER),
    "beyond what is paid and waiting: coming beside it": row(
        [payment(), coin(7, "bb")], PAID | {"received": ASKED, "coming beside": 7},
        status="paid"),
    "beyond what is paid, in a block and too shallow: still coming": row(
        [payment(height=995), coin(7, "bb", TIP)], PAID | {"received": ASKED, "coming beside": 7},
        status="paid", confirmations=2),
    "after a cancel and waiting: it came before its deadline": row(
        [coin(seen=20)], {"status": "canceled", "received": ASKED, "coming beside": 0},
        status="canceled"),
    "a part in time and the rest late: expires, both are payments without invoice": row(
        [coin(40_000, height=999), coin(60_000, "bb", TIP, mined=70, seen=70)],
        EXPIRED | {"receipts": [("aa", 40_000, False), ("bb", 60_000, False)], "received": 40_000},
        **AFTER),
    "first seen at the deadline exactly is late": row([coin(seen=60)], EXPIRED, **AFTER),
    "a block at the deadline exactly is late": row(
        [coin(seen=70, height=TIP, mined=60)], EXPIRED | {"receipts": [("aa", ASKED, False)]},
        **AFTER),
    "a block a moment before the deadline is in time": row(
        [coin(seen=70, height=TIP, mined=59.999)], PAID, **AFTER),
    "all is known up to the deadline exactly: expires": row([], EXPIRED, now=90, ends=60),
    "up to a moment before the deadline: open": row([], OPEN, now=90, ends=59.999),
    "no end may have come, long after the deadline: open": row([], OPEN, now=90, ends=NEVER),
    "without a deadline nothing expires": row([], OPEN, now=9e6, ends=9e6, deadline=None),
    "without a deadline nothing is late": row(
        [coin(seen=9e5, height=TIP, mined=9e5)], PAID | {"paid": 9e5}, now=9e6, ends=9e6,
        deadline=None),
    "after a cancel money is a payment without invoice": row(
        [coin(height=TIP)], {"status": "canceled", "tx": None, "receipts": [("aa", ASKED, False)]},
        status="canceled"),
    "after its expiry money is a payment without invoice, also when its block was in time": row(
        [coin(seen=95, height=TIP, mined=59)], EXPIRED | {"receipts": [("aa", ASKED, False)]},
        status="expired", now=95, ends=95),
    "beyond what is paid money is a payment without invoice": row(
        [payment(), coin(tx="bb", height=TIP)],
        PAID | {"paid": 10, "received": ASKED,
                "receipts": [("aa", ASKED, True), ("bb", ASKED, False)]},
        status="paid"),
    "five deep where six are asked: open": row([coin(height=996)], OPEN, confirmations=6),
    "six deep where six are asked: paid": row(
        [coin(height=995)], PAID | {"depth": 6}, confirmations=6),
    "one part deep and one too shallow: open, the deep one is a payment": row(
        [coin(60_000, height=995), coin(40_000, "bb", 996)],
        OPEN | {"receipts": [("aa", 60_000, False)], "unconfirmed": 40_000, "depth": 5},
        confirmations=6),
    "a tip one below the block is depth zero": row(
        [coin(height=TIP + 1)], OPEN | {"depth": 0, "receipts": []}),
    "a coinbase 99 deep is immature": row(
        [coin(height=902, position=0)], OPEN | {"depth": 99, "receipts": []}),
    "a coinbase 100 deep pays": row([coin(height=901, position=0)], PAID | {"depth": 100}),
    "a block before the creation pays at the creation": row(
        [coin(height=TIP, mined=-10)], PAID | {"paid": 0}),
    "a block two hours older than the invoice, and not seen before it, pays": row(
        [coin(seen=5, height=TIP, mined=-120)], PAID),
    "in an older block when it was seen first: from before the invoice, a payment without it": row(
        [coin(seen=5, height=TIP, mined=-121)],
        OPEN | {"receipts": [("aa", ASKED, False)], "received": 0, "missing": ASKED}),
    "seen waiting and then in such a block: the clock was ahead when the invoice was made": row(
        [coin(seen=5, height=TIP, mined=-180, seen_waiting=True)], PAID | {"paid": 0}),
    "in a block whose header we had when the invoice was made: older, whatever its time says": row(
        [coin(height=990, mined=-5)],
        OPEN | {"receipts": [("aa", ASKED, False)], "received": 0, "missing": ASKED}, above=990),
    "the same with a block's time after the invoice was made": row(
        [coin(height=990, mined=20)], OPEN | {"received": 0}, above=990),
    "the same, seen waiting by an explorer that is behind": row(
        [coin(height=990, mined=-5, seen_waiting=True)], OPEN | {"received": 0}, above=990),
    "in the next block, whose time is before the invoice: the miner's clock was behind": row(
        [coin(height=991, mined=-5)], PAID | {"paid": 0}, above=990),
    "in the next block, two hours before the invoice": row(
        [coin(height=991, mined=-120)], PAID | {"paid": 0}, above=990),
    "in the next block, more than two hours before the invoice: no header had come for long": row(
        [coin(height=991, mined=-121)], OPEN | {"received": 0}, above=990),
    "in the next block, hours before the invoice, seen waiting: our clock was ahead": row(
        [coin(height=991, mined=-180, seen_waiting=True)], PAID | {"paid": 0}, above=990),
    "after a reorganisation, in the block of the same height that replaces the one we had": row(
        [coin(height=990, mined=-5)], PAID | {"paid": 0}, above=989),
    "after a reorganisation, in a block below the fork, which we still have": row(
        [coin(height=989, mined=-5)], OPEN | {"received": 0}, above=989),
    "a check that comes a day late learns of the block then: it counts": row(
        [coin(seen=1500, height=999, mined=40)], PAID | {"paid": 40}, above=990, now=1500,
        ends=1500),
    "a check that comes a day late finds an older coin in a block that it had: it does not": row(
        [coin(seen=1500, height=990, mined=-30)], EXPIRED | {"received": 0}, above=990, now=1500,
        ends=1500),
    "an older coin and then the payment: the payment alone pays": row(
        [coin(height=990, mined=-5), coin(tx="bb", height=TIP, mined=20)],
        PAID | {"tx": "bb", "receipts": [("aa", ASKED, False), ("bb", ASKED, True)]}, above=990),
    "an older part and the payment of the rest: the rest is a part": row(
        [coin(40_000, height=990, mined=-5), coin(60_000, "bb", TIP, mined=20)],
        OPEN | {"received": 60_000, "missing": 40_000}, above=990),
    "a settlement by hand of an older coin survives every check": row(
        [payment(height=990, mined=-5)], PAID | {"receipts": [("aa", ASKED, True)]}, status="paid",
        above=990),
    "a block ahead of the clock pays now": row([coin(height=TIP, mined=45)], PAID | {"paid": 30}),
    "a coin that the merchant has swept still pays": row(
        [coin(height=990, spent_height=995)], PAID | {"receipts": [("aa", ASKED, True)]}),
    "in a block in time and not deep enough: neither pays nor expires": row(
        [coin(height=TIP)],
        OPEN | {"receipts": [], "received": ASKED, "unconfirmed": ASKED, "depth": 1},
        confirmations=2, **AFTER),
    "an immature coinbase in time: neither pays nor expires": row(
        [coin(height=902, position=0)], OPEN | {"depth": 99, "unconfirmed": ASKED}, **AFTER),
    "a coinbase needs what its invoice asks where that is more than 100": row(
        [coin(height=800, position=0)], OPEN | {"depth": 201}, confirmations=202),
    "settled by hand for less than asked: survives every check": row(
        [payment(10)], PAID | {"received": 10, "receipts": [("aa", 10, True)]}, status="paid",
        **AFTER),
    "settled by hand for money that came late: survives every check": row(
        [payment(seen=70, mined=71)], PAID | {"received": ASKED, "receipts": [("aa", ASKED, True)]},
        status="paid", **AFTER),
    "a block that has spent the inputs otherwise: no money, and the invoice expires": row(
        [coin(vanished_at=at(20), replaced_height=TIP)], EXPIRED | {"received": 0, "receipts": []},
        **AFTER),
    "a payment stays one when its block is above the tip that was told": row(
        [payment()], PAID | {"receipts": [("aa", ASKED, True)], "depth": 0}, status="paid",
        tip=TIP - 5),
}  # fmt: skip


@pytest.mark.parametrize(("outputs", "given", "expected"), CASES.values(), ids=CASES)
def test_outputs_lead_to_the_decision_of_the_table(outputs, given, expected):
    found = shown(judge(outputs, **given))
    assert {name: found[name] for name in expected} == expected


MAYBE = {
    "no header was known, and its block's time is before the invoice": (
        coin(height=TIP, mined=-1), None, True),
    "no header was known, and its block's time is the invoice's": (
        coin(height=TIP, mined=0), None, False),
    "no header was known, but we saw it waiting after the invoice was made": (
        coin(height=TIP, mined=-1, seen_waiting=True), None, False),
    "the header came later than the invoice": (coin(height=TIP, mined=-1), 990, False),
}  # fmt: skip


@pytest.mark.parametrize(("output", "above", "maybe"), MAYBE.values(), ids=MAYBE)
def test_a_payment_that_may_be_older_than_its_invoice_is_said_to_be(
    output, above, maybe
):
    verdict = judge([output], above=above)
    assert verdict.status == "paid"
    assert [receipt.may_be_older for receipt in verdict.receipts] == [maybe]


def test_money_in_a_block_that_was_known_did_not_come_for_the_invoice_unless_it_is_accepted():
    older = coin(height=990, mined=-5)
    (receipt, own) = judge(
        [older, coin(tx="bb", height=991, mined=20)], above=990
    ).receipts
    assert (receipt.is_older, receipt.came_for_it) == (True, False)
    assert (own.is_older, own.came_for_it) == (False, True)
    (accepted,) = judge(
        [payment(height=990, mined=-5)], status="paid", above=990
    ).receipts
    assert (accepted.is_older, accepted.came_for_it) == (True, True)


def test_an_older_coin_that_is_not_deep_enough_yet_is_not_coming_on_top():
    verdict = judge([coin(height=TIP, mined=-5)], above=TIP, confirmations=6)
    assert (verdict.coming_unapplied_sats, verdict.receipts) == (0, ())


def test_nothing_makes_an_open_invoice_paid_by_no_output():
    """No setting forgives the whole amount; if one did, the check must fail, and pay nothing."""
    with pytest.raises(IndexError):
        judge([], tolerance="100")


LEAST_SUMS = {
    "without tolerance all of it": (100, "0", 100),
    "5 % of 100": (100, "5", 95),
    "0.99 satoshi forgiven is none: the merchant is never shorted": (99, "1", 99),
    "1.01 satoshi forgiven is one": (101, "1", 100),
    "a single satoshi is never forgiven": (1, "5", 1),
    "all there can be": (2_100_000_000_000_000, "0.5", 2_089_500_000_000_000),
}


@pytest.mark.parametrize(
    ("amount", "percent", "needed"), LEAST_SUMS.values(), ids=LEAST_SUMS
)
def test_the_least_sum_is_rounded_up_to_a_whole_satoshi(amount, percent, needed):
    assert required_sats(amount, Decimal(percent)) == needed


REASONS = {
    "nothing came": ([], {}, "open: nothing has been seen"),
    "a part came": ([coin(1)], {}, "99999 satoshis are missing, 1 came"),
    "all came, too shallow": ([coin()], {"confirmations": 3}, "3 confirmation"),
    "paid": ([coin(height=TIP)], {}, "100000 satoshis confirmed"),
    "expired": ([coin(7)], AFTER, "expired: 7 of 100000 satoshis"),
    "expired, and what was seen in time is in a block after all": (
        [coin(height=TIP)], AFTER | {"status": "expired"},
        "expired: too little was seen when it ended; 100000 satoshis came after all"),
    "canceled": ([], {"status": "canceled"}, "without invoice"),
    "what came has vanished": ([coin(vanished_at=at(9))], {}, "has vanished"),
    "what came was late": (
        [coin(seen=61, height=TIP, mined=62)], {"now": 90},
        "before the invoice was made, or after its end"),
}  # fmt: skip


@pytest.mark.parametrize(("outputs", "given", "words"), REASONS.values(), ids=REASONS)
def test_the_reason_is_a_sentence_with_the_numbers(outputs, given, words):
    assert words in judge(outputs, **given).reason


STORED = {
    "nothing came": ([], 0, 0, 0),
    "what waits is on its way": ([coin()], ASKED, ASKED, 0),
    "what is deep, and no payment was made of it yet": (
        [coin(height=1)],
        ASKED,
        ASKED,
        0,
    ),
    "of what a payment was made counts": (
        [payment(40_000, settles=False)],
        40_000,
        0,
        1,
    ),
    "what has vanished is no money": ([coin(vanished_at=at(9), seen=5)], 0, 0, 0),
}


@pytest.mark.parametrize(
    ("outputs", "received", "unconfirmed", "receipts"), STORED.values(), ids=STORED
)
def test_what_is_stored_ends_nothing_and_pays_nothing(
    outputs, received, unconfirmed, receipts
):
    invoice = Invoice("inv", "open", ASKED, CREATED, at(DEADLINE))
    rules = Rules(1, Decimal(0))
    verdict = decide(invoice, outputs, TIP, None, rules, at(9e6), credited_only=True)
    assert verdict.status == "open"
    assert (verdict.received_sats, verdict.unconfirmed_sats) == (received, unconfirmed)
    assert len(verdict.receipts) == receipts
