"""The life of an invoice, pure: what each check finds in, what has become of the invoice out.

Trips of the same kind are in tests/check/test_check.py. Times are minutes after the creation;
100,000 satoshis are asked, the invoice ends at minute 60, and what has vanished holds it for an
hour. What follows from a scan is the program's own `settle`; what the
database keeps from one scan to the next, Life keeps.
"""

from collections import Counter
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta
from decimal import Decimal

import pytest

from btcpay.settlement.settle import settle
from btcpay.settlement.values import Block, Invoice, Output, Rules, Scan, SeenOutput

CREATED = datetime(2026, 1, 2, 3, 4, tzinfo=UTC)
TIP = 1000
ASKED = 100_000
WEEK = 7 * 24 * 60


def at(minute):
    return CREATED + timedelta(minutes=minute)


@dataclass
class Life:
    """An invoice and what is known of its address, from one step to the next."""

    rules: Rules
    invoice: Invoice = Invoice("inv", "open", ASKED, CREATED, at(60))
    known: list[Output] = field(default_factory=list)
    # payments: transaction, satoshis
    made: list[tuple[str, int]] = field(default_factory=list)

    def play(self, steps):
        """The status after each step."""
        return [step(self) for step in steps]

    def settle(self, scan, now=None):
        """Keeps the outcome as the database does: an output in no block is part of no payment."""
        outcome = settle(
            self.invoice, self.known, scan, self.rules, now or scan.asked_at
        )
        changed = {change.after.outpoint: change.after for change in outcome.changes}
        kept = {o.outpoint: o for o in self.known} | changed
        for forgotten in outcome.forgotten:
            del kept[forgotten.outpoint]
        new = {receipt.txid for receipt in outcome.payments}
        self.made += [
            (receipt.txid, receipt.amount_sats) for receipt in outcome.payments
        ]
        settling = {r.txid for r in outcome.payments if r.settles} | set(
            outcome.settling
        )
        self.known = [
            replace(
                o,
                credited=o.credited or o.txid in new,
                settles=o.settles or o.txid in settling,
            )
            if o.block
            else o
            for o in kept.values()
        ]
        verdict = outcome.verdict
        self.invoice = replace(
            self.invoice,
            status=verdict.status,
            tx_hash=verdict.tx_hash,
            paid_at=verdict.paid_at,
        )
        return self.invoice.status

    def payments(self):
        """Transaction, satoshis, and whether the payment carries the invoice's id."""
        sums: Counter[tuple[str, bool]] = Counter()
        for output in self.known:
            if output.credited:
                sums[output.txid, output.settles] += output.amount_sats
        return sorted((txid, sats, settles) for (txid, settles), sats in sums.items())


DAY = 24 * 60
COIN = ("ff:0",)
OTHER_COIN = ("ee:0",)


def tx(txid="aa", sats=ASKED, mined=None, height=TIP, vout=0, position=1, spends=()):
    """An output that waits, or is in a block of minute `mined`."""
    if mined is None:
        return SeenOutput(txid, vout, sats, inputs=spends)
    mined_in = Block(height, f"block{height} of {mined}", at(mined))
    return SeenOutput(txid, vout, sats, mined_in, position, spends)


def scan(minute, *there, tip=TIP):
    """A whole check: every block is read, those that were read before too, then the mempool."""
    mined = [one for one in there if one.block]
    waiting = [one for one in there if not one.block]

    def step(life):
        if mined:
            life.settle(Scan(at(minute), tip, confirmed=mined))
        return look(minute, *waiting, tip=tip)(life)

    return step


def look(
    minute,
    *waiting,
    tip=TIP,
    absent_is_gone=True,
    ends=None,
    is_read=True,
    is_cut=False,
):
    """The mempool alone. `ends`: by the explorers' clock; `is_read`: every block up to the tip."""
    ends_at = at(minute if ends is None else ends) if is_read else None

    def step(life):
        news = {
            "waiting": waiting,
            "absent_is_gone": absent_is_gone and is_read,
            "ends_at": ends_at,
        }
        return life.settle(Scan(at(minute), tip, is_cut=is_cut, **news))

    return step


def block(minute, *paid, **facts):
    """A block is read: what it pays, and in `spent` and `replaced` what it spends."""
    return lambda life: life.settle(Scan(at(minute), TIP, confirmed=paid, **facts))


def lost(*txids):
    """The block of these payments left the best chain: they wait again, and nothing is settled."""

    def step(life):
        reopened = any(output.settles and output.txid in txids for output in life.known)
        life.known = [
            _waiting_again(o)
            if o.txid in txids
            else replace(o, settles=o.settles and not reopened)
            for o in life.known
        ]
        if reopened:
            life.invoice = replace(
                life.invoice, status="open", tx_hash=None, paid_at=None
            )
        return life.invoice.status

    return step


def _waiting_again(output):
    assert output.block
    first_seen_at = min(output.first_seen_at, output.block.mined_at)
    gone = replace(output, block=None, position=None, spent_height=None, credited=False)
    return replace(gone, first_seen_at=first_seen_at, settles=False)


def undone(life):
    """The block that had spent its inputs otherwise left the best chain."""
    life.known = [replace(output, replaced_height=None) for output in life.known]
    return life.invoice.status


def row(steps, statuses, *payments, **rules):
    gone_after = timedelta(minutes=rules.get("gone_after", 60))
    asked = Rules(
        rules.get("confirmations", 1), Decimal(rules.get("tolerance", 0)), gone_after
    )
    return steps, asked, statuses.split(), list(payments)


PAID = ("aa", ASKED, True)
ALONE = ("aa", ASKED, False)

ROWS = {
    "exact: waits for its block and is paid by it": row(
        [scan(5, tx()), scan(15, tx(mined=10))], "open paid", PAID),
    "replaced by fee with the same output: paid once, by the replacement": row(
        [scan(5, tx()), scan(10, tx("bb")), scan(20, tx("bb", mined=15))], "open open paid",
        ("bb", ASKED, True)),
    "replaced by fee, and a miner takes the first: paid once, by the first": row(
        [scan(5, tx()), scan(10, tx("bb")), scan(20, tx(mined=15))], "open open paid", PAID),
    "replaced by fee after the deadline: the replacement is late, and its block is the end": row(
        [scan(5, tx()), scan(61, tx("bb")), scan(62, tx("bb")),
         block(90, tx("bb", mined=80), replaced={"aa": TIP}), look(91)],
        "open open open open expired", ("bb", ASKED, False)),
    "vanished in time: no money any more, and held until an hour after that": row(
        [scan(5, tx()), scan(30), scan(60), scan(89.9), scan(90)], "open open open open expired"),
    "vanished long before the deadline: the first look after it expires": row(
        [scan(-30, tx()), scan(-20), scan(60)], "open open expired"),
    "vanished after the deadline: not the look that misses it expires, but one an hour later": row(
        [scan(5, tx()), scan(90), scan(91), scan(149.9), scan(150)], "open open open open expired"),
    "vanished, where nothing is waited for: not the look that misses it expires, but the next": row(
        [scan(5, tx()), scan(90), scan(90.1)], "open open expired", gone_after=0),
    "vanished, and seen late again: in time as before, and paid by its block": row(
        [scan(5, tx()), scan(90), scan(149), scan(151, tx()), scan(200, tx(mined=190))],
        "open open open open paid", PAID),
    "vanished, seen again and vanished: the hour begins again": row(
        [scan(5, tx()), scan(90), scan(149, tx()), scan(150), scan(209), scan(210)],
        "open open open open open expired"),
    "vanished, but too little to be enough: it holds nothing": row(
        [scan(5, tx(sats=ASKED - 1)), scan(59), scan(60)], "open open expired"),
    "vanished, and enough with what is confirmed: held": row(
        [scan(15, tx(sats=40_000, mined=10), tx("bb", 60_000)), scan(50), scan(109), scan(110)],
        "open open open expired", ("aa", 40_000, False)),
    "vanished, but seen after the deadline: it holds nothing": row(
        [look(61, tx(), ends=59), scan(62)], "open expired"),
    "not shown while a block is not read: it may be there, and is": row(
        [scan(5, tx()), look(90, is_read=False), block(91, tx(mined=80))], "open open paid", PAID),
    "a block spends its inputs otherwise: no hour is waited": row(
        [scan(5, tx()), block(30, replaced={"aa": TIP}), scan(60)], "open open expired"),
    "a block spends the inputs of what has vanished otherwise: the next look expires": row(
        [scan(5, tx()), scan(90), block(95, replaced={"aa": TIP}), scan(96)],
        "open open open expired"),
    "replaced by a block that is undone: it waits again when it is shown, and is paid": row(
        [scan(5, tx()), block(30, replaced={"aa": TIP}), undone, scan(90, tx()),
         scan(120, tx(mined=110))], "open open open open paid", PAID),
    "dropped from the mempool and back in a block: paid, as it was seen in time": row(
        [scan(5, tx()), scan(50), scan(90, tx(mined=80))], "open open paid", PAID),
    "moved on in a later block, and then the rest: paid by both": row(
        [block(15, tx(sats=40_000, mined=10, height=990)), block(20, spent={("aa", 0): 991}),
         block(25, tx("bb", 60_000, 22))], "open open paid", ("aa", 40_000, True),
        ("bb", 60_000, True)),
    "reorganised and back in another block: open while it waits, then paid once more": row(
        [scan(15, tx(mined=10)), lost("aa"), scan(20, tx(), tip=TIP + 1),
         scan(30, tx(mined=25, height=TIP + 2), tip=TIP + 2)], "paid open open paid", PAID),
    "reorganised and back in another block before anybody looked: paid again at once": row(
        [scan(15, tx(mined=10)), lost("aa"), scan(20, tx(mined=11), tip=TIP + 1)], "paid open paid",
        PAID),
    "reorganised and double spent: open, and expires after the deadline": row(
        [scan(15, tx(mined=10)), lost("aa"), scan(20), scan(60), scan(80)],
        "paid open open open expired"),
    "reorganised, seen waiting, and double spent by a block: expires at once": row(
        [scan(15, tx(mined=10)), lost("aa"), scan(90, tx()), block(95, replaced={"aa": TIP}),
         scan(96)], "paid open open open expired"),
    "reorganised, first seen in a block before the deadline: in time for the block after it": row(
        [scan(90, tx(mined=59)), lost("aa"), scan(95, tx()), scan(200, tx(mined=190))],
        "paid open open paid", PAID),
    "reorganised and double spent: the part that stays is a payment without invoice": row(
        [scan(15, tx(sats=40_000, mined=10, height=990), tx("bb", 60_000, 12)), lost("bb"),
         scan(20, tx(sats=40_000, mined=10, height=990), tip=TIP + 1)], "paid open open",
        ("aa", 40_000, False)),
    "a block is not read after the deadline: nothing expires": row(
        [look(60, is_read=False), look(WEEK, is_read=False), scan(WEEK + 1)], "open open expired"),
    "a block is read after the deadline, and the mempool was not asked: nothing expires": row(
        [block(90, tx("bb", 1, 80)), block(WEEK, tx("cc", 1, 100)), scan(WEEK + 1)],
        "open open expired", ("bb", 1, False), ("cc", 1, False)),
    "the mempool does not show a part in a block: it stays a payment, and the rest pays": row(
        [scan(15, tx(sats=40_000, mined=10)), look(20), block(30, tx("bb", 60_000, 25))],
        "open open paid", ("aa", 40_000, True), ("bb", 60_000, True)),
    "the mempool shows what is in a block as waiting: neither expires nor waits": row(
        [scan(15, tx(mined=10)), look(90, tx()), look(91, tip=TIP + 1)], "open open paid", PAID,
        confirmations=2),
    # A fee that is raised: another transaction, of the same coin.
    "its fee is raised after the deadline: in time, and its block pays": row(
        [scan(59, tx(spends=COIN)), scan(61, tx("bb", spends=COIN)),
         scan(62, tx("bb", spends=COIN)),
         block(90, tx("bb", mined=89, spends=COIN), replaced={"aa": TIP}), scan(91)],
        "open open open paid paid", ("bb", ASKED, True)),
    "raised twice after the deadline: in time": row(
        [scan(59, tx(spends=COIN)), scan(61, tx("bb", spends=COIN)),
         scan(70, tx("cc", spends=COIN)), block(90, tx("cc", mined=89, spends=COIN)), scan(91)],
        "open open open paid paid", ("cc", ASKED, True)),
    "raised after the deadline, and first seen in its block: in time, and it pays": row(
        [scan(59, tx(spends=COIN)),
         block(90, tx("bb", mined=89, spends=COIN), replaced={"aa": TIP}), scan(91)],
        "open paid paid", ("bb", ASKED, True)),
    "dropped, and raised half an hour later, after the deadline: in time, and it pays": row(
        [scan(59, tx(spends=COIN)), scan(61), scan(90, tx("bb", spends=COIN)),
         block(95, tx("bb", mined=94, spends=COIN)), scan(96)], "open open open paid paid",
        ("bb", ASKED, True)),
    "with its fee from the amount: pays the invoice less, and is late": row(
        [scan(59, tx(spends=COIN)), scan(61, tx("bb", ASKED - 1, spends=COIN)), scan(121)],
        "open open expired"),
    "one of another coin after the deadline is late": row(
        [scan(59, tx(spends=COIN)), scan(61, tx("bb", spends=OTHER_COIN)), scan(121)],
        "open open expired"),
    "of two coins, one of them: in time": row(
        [scan(59, tx(spends=COIN)), scan(61, tx("bb", spends=OTHER_COIN + COIN)),
         block(90, tx("bb", mined=89, spends=OTHER_COIN + COIN)), scan(91)],
        "open open paid paid", ("bb", ASKED, True)),
    "what it replaces was late: so is it": row(
        [scan(60.5, tx(spends=COIN), tx("dd", ASKED - 1, spends=OTHER_COIN)),
         block(90, tx("bb", mined=89, spends=COIN)), scan(91)], "expired expired expired",
        ("bb", ASKED, False)),
    "a part replaced after the deadline by the whole, and the invoice is not ended: in time": row(
        [scan(59, tx(sats=1_000, spends=COIN)), look(61, tx("bb", spends=COIN), is_read=False),
         scan(62, tx("bb", spends=COIN))], "open open open"),
    # A list that may be cut.
    "a list that may be cut holds the end for a day": row(
        [scan(59), look(90, is_cut=True), look(DAY + 59.9, is_cut=True),
         look(DAY + 60, is_cut=True)], "open open open expired"),
    "what a list that may be cut does not show holds the end for a day and an hour": row(
        [scan(59, tx()), look(90, is_cut=True), look(DAY + 59.9, is_cut=True),
         look(DAY + 60, is_cut=True), look(DAY + 119.9, is_cut=True),
         look(DAY + 120, is_cut=True)], "open open open open open expired"),
    "what it does show is waited for": row(
        [scan(59, tx()), look(3 * DAY, tx(), is_cut=True), look(WEEK, tx(), is_cut=True)],
        "open open open"),
    "a full payment in time beside dust that fills the list: its block pays": row(
        [look(30, *(tx(f"{n:02}", 330) for n in range(25)), is_cut=True),
         block(80, tx("ee", mined=50, height=990),
               *(tx(f"{n:02}", 330, mined=70) for n in range(25)))],
        "open paid", *((f"{n:02}", 330, False) for n in range(25)), ("ee", ASKED, True)),
    "a full payment after the deadline beside dust: late, and the invoice ends": row(
        [look(30, *(tx(f"{n:02}", 330) for n in range(25)), is_cut=True),
         block(80, tx("ee", mined=79)), look(90, is_cut=True), look(DAY + 60, is_cut=True)],
        "open open open expired", ("ee", ASKED, False)),
    "our clock was ahead when it was seen: set right, it was seen in time": row(
        [look(90, tx(), ends=29), scan(30, tx()), scan(61, tx()), scan(80, tx(mined=70))],
        "open open open paid", PAID),
    "our clock was ahead when it vanished: set right, the hour begins then": row(
        [scan(5, tx()), look(WEEK, ends=10), scan(20), scan(79.9), scan(80)],
        "open open open open expired"),
}  # fmt: skip


@pytest.mark.parametrize(
    ("steps", "rules", "statuses", "payments"), ROWS.values(), ids=ROWS
)
def test_life_and_its_last_scan_a_hundred_times_more_changes_nothing(
    steps, rules, statuses, payments
):
    life = Life(rules)
    assert life.play(steps) == statuses
    assert life.payments() == payments
    assert (life.invoice.tx_hash is None) == (statuses[-1] != "paid")
    before = (life.invoice, life.known)
    assert set(life.play(steps[-1:] * 100)) == {statuses[-1]}
    assert (life.invoice, life.known) == before
    assert life.payments() == payments
