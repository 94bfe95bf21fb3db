"""The life of an invoice, pure: what each scan shows in, what has become of the invoice out.

Each row begins with its name in the list that the project was asked to cover; the same rows as
trips on a node's chain are in test_node_trips.py and test_node_life.py. Times are minutes after the
creation; 100,000 satoshis are asked and the invoice ends at minute 60. What follows from a scan is
the program's own `settle`; what the database keeps from one scan to the next, Life keeps.
"""

from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from typing import Any

import pytest
from btcpay.settlement.proofs import Unproven, to_prove

from btcpay.settlement.settle import Outcome, settle, stored_verdict
from btcpay.settlement.values import Block, Invoice, Output, Proof, Rules, Scan, SeenOutput
from btcpay.spv.verify import Proven

CREATED = datetime(2026, 1, 2, 3, 4, tzinfo=UTC)
TIP = 1000
ASKED = 100_000
WEEK = 7 * 24 * 60


def at(minute: float) -> datetime:
    return CREATED + timedelta(minutes=minute)


@dataclass
class Life:
    """An invoice and what is known of its address, from one step to the next."""

    rules: Rules
    amount_sats: int = ASKED
    invoice: Invoice = field(init=False)
    known: list[Output] = field(default_factory=list)
    scanned_at: datetime | None = None

    def __post_init__(self) -> None:
        self.invoice = Invoice("inv", "open", self.amount_sats, CREATED, at(60))

    def play(self, steps: list["Step"]) -> list[str]:
        """The status after each step."""
        return [step(self) for step in steps]

    def keep(self, outcome: Outcome) -> None:
        """What the database keeps of it."""
        changed = {change.after.outpoint: change.after for change in outcome.changes}
        kept = {o.outpoint: o for o in self.known} | changed
        new = {receipt.txid for receipt in outcome.payments}
        settling = {r.txid for r in outcome.payments if r.settles} | set(outcome.settling)
        self.known = [
            replace(
                o, credited=o.credited or o.txid in new, settles=o.settles or o.txid in settling
            )
            for o in kept.values()
        ]
        verdict = outcome.verdict
        self.invoice = replace(
            self.invoice, status=verdict.status, tx_hash=verdict.tx_hash, paid_at=verdict.paid_at
        )

    def payments(self) -> list[tuple[str, int, bool]]:
        """Transaction, satoshis, and whether the payment carries the invoice's id."""
        sums: Counter[tuple[str, bool]] = Counter()
        for output in self.known:
            if output.credited:
                sums[output.txid, output.settles] += output.amount_sats
        return sorted((txid, sats, settles) for (txid, settles), sats in sums.items())


Step = Callable[[Life], str]


def tx(
    txid: str = "aa",
    sats: int = ASKED,
    mined: float | None = None,
    height: int = TIP,
    vout: int = 0,
    spent_height: int | None = None,
) -> SeenOutput:
    """An output as the explorer shows it: waiting, or in a block of minute `mined`."""
    block = None if mined is None else Block(height, f"block{height} of {mined}", at(mined))
    return SeenOutput(txid, vout, sats, block, spent_height)


def scan(minute: float, *shown: SeenOutput, tip: int = TIP) -> Step:
    """A complete scan of the address, in which all that must be proven is."""

    def step(life: Life) -> str:
        wanted = to_prove(life.known, shown, tip, life.rules, at(minute))
        seen = Scan(at(minute), tip, shown, None, {one.txid: proof(one) for one in wanted})
        outcome = settle(life.invoice, life.known, seen, life.rules, at(minute))
        life.keep(outcome)
        life.scanned_at = at(minute)
        return life.invoice.status

    return step


def proof(of: Unproven) -> Proof:
    amounts, block = of.amounts_sats, of.block
    return Proof(Proven(of.txid, block.hash, block.mined_at, amounts, block.height, 1), "{}")


def unasked(minute: float) -> Step:
    """No explorer answers, or no check runs: what pages say from what is stored."""

    def step(life: Life) -> str:
        stored = (life.invoice, life.known, TIP, life.scanned_at, life.rules, at(minute))
        return stored_verdict(*stored).status

    return step


def lost(*txids: str) -> Step:
    """The block of these payments left the best chain: they wait again, and nothing is settled."""

    def step(life: Life) -> str:
        reopened = any(output.settles and output.txid in txids for output in life.known)
        life.known = [
            replace(o, block=None, proven=False, credited=False, settles=False)
            if o.txid in txids
            else replace(o, settles=o.settles and not reopened)
            for o in life.known
        ]
        if reopened:
            life.invoice = replace(life.invoice, status="open", tx_hash=None, paid_at=None)
        return life.invoice.status

    return step


def cancel(life: Life) -> str:
    life.invoice = replace(life.invoice, status="canceled")
    return life.invoice.status


def row(sentence: str, steps: list[Step], statuses: str, *payments: Any, **rules: Any) -> Any:
    asked = Rules(rules.get("confirmations", 1), Decimal(rules.get("tolerance", 0)))
    return pytest.param(steps, asked, statuses.split(), list(payments), id=sentence)


PAID = ("aa", ASKED, True)
ALONE = ("aa", ASKED, False)

ROWS = [
    row(
        "exact: waits for its block and is paid by it",
        [scan(5, tx()), scan(15, tx(mined=10))],
        "open paid",
        PAID,
    ),
    row(
        "partial: open, a payment without invoice, and expires with too little",
        [scan(15, tx(sats=40_000, mined=10)), scan(60, tx(sats=40_000, mined=10))],
        "open expired",
        ("aa", 40_000, False),
    ),
    row(
        "topped up: both parts carry the invoice, in satoshis as quoted",
        [
            scan(15, tx(sats=40_000, mined=10)),
            scan(25, tx("bb", 60_000, 20), tx(sats=40_000, mined=10, height=990)),
        ],
        "open paid",
        ("aa", 40_000, True),
        ("bb", 60_000, True),
    ),
    row(
        "topped up one satoshi short: both are payments without invoice",
        [
            scan(15, tx(sats=40_000, mined=10)),
            scan(25, tx("bb", 59_999, 20), tx(sats=40_000, mined=10, height=990)),
        ],
        "open open",
        ("aa", 40_000, False),
        ("bb", 59_999, False),
    ),
    row(
        "over: paid, the payment shows what came",
        [scan(15, tx(sats=ASKED + 1, mined=10))],
        "paid",
        ("aa", ASKED + 1, True),
    ),
    row(
        "paid twice, the second after the first: it carries no invoice",
        [
            scan(15, tx(mined=10, height=999)),
            scan(25, tx("bb", mined=20), tx(mined=10, height=999)),
        ],
        "paid paid",
        PAID,
        ("bb", ASKED, False),
    ),
    row(
        "paid twice in one block: one of the two carries the invoice",
        [scan(15, tx("bb", mined=10), tx(mined=10))],
        "paid",
        PAID,
        ("bb", ASKED, False),
    ),
    row(
        "one satoshi short, and then that satoshi: paid by it",
        [
            scan(15, tx(sats=ASKED - 1, mined=10, height=990)),
            scan(25, tx("bb", 1, 20), tx(sats=ASKED - 1, mined=10, height=990)),
        ],
        "open paid",
        ("aa", ASKED - 1, True),
        ("bb", 1, True),
    ),
    row(
        "tolerance: short by all of it pays",
        [scan(15, tx(sats=99_000)), scan(15, tx(sats=99_000, mined=10))],
        "open paid",
        ("aa", 99_000, True),
        tolerance=1,
    ),
    row(
        "tolerance: a satoshi beyond it expires",
        [scan(15, tx(sats=98_999, mined=10)), scan(60, tx(sats=98_999, mined=10))],
        "open expired",
        ("aa", 98_999, False),
        tolerance=1,
    ),
    row(
        "two outputs in one transaction: one payment",
        [scan(15, tx(sats=1, mined=10), tx(sats=ASKED - 1, mined=10, vout=1))],
        "paid",
        PAID,
    ),
    row(
        "unconfirmed across the deadline: open, and paid by a block after it",
        [scan(59.9, tx()), scan(60, tx()), scan(90, tx()), scan(120, tx(mined=110))],
        "open open open paid",
        PAID,
    ),
    row(
        "unconfirmed across the deadline, and a satoshi too little: expires",
        [scan(59.9, tx(sats=ASKED - 1)), scan(60, tx(sats=ASKED - 1))],
        "open expired",
    ),
    row(
        "seen only after the deadline but in a block before it: paid",
        [scan(30), scan(90, tx(mined=59.9))],
        "open paid",
        PAID,
    ),
    row(
        "seen only after the deadline and in a block at it: late",
        [scan(30), scan(90, tx(mined=60))],
        "open expired",
        ALONE,
    ),
    row(
        "seen only after the deadline and waiting: late, also when its block comes",
        [scan(30), scan(60, tx()), scan(120, tx(mined=110))],
        "open expired expired",
        ALONE,
    ),
    row(
        "late: expired already, a payment without invoice",
        [scan(60), scan(90, tx()), scan(120, tx(mined=110))],
        "expired expired expired",
        ALONE,
    ),
    row(
        "late: expired already, and an explorer that was behind shows a block before the deadline",
        [scan(60), scan(61, tx(mined=59.9))],
        "expired expired",
        ALONE,
    ),
    row(
        "later than the watch: whoever looks finds a payment without invoice",
        [scan(60), scan(60 + WEEK + 1, tx(mined=60 + WEEK))],
        "expired expired",
        ALONE,
    ),
    row(
        "after cancel: a payment without invoice, in whichever block",
        [scan(5), cancel, scan(20, tx(mined=10))],
        "open canceled canceled",
        ALONE,
    ),
    row(
        "after cancel, what had waited before it: a payment without invoice",
        [scan(5, tx()), cancel, scan(20, tx(mined=10))],
        "open canceled canceled",
        ALONE,
    ),
    row(
        "replaced by fee with the same output: paid once, by the replacement",
        [scan(5, tx()), scan(10, tx("bb")), scan(20, tx("bb", mined=15))],
        "open open paid",
        ("bb", ASKED, True),
    ),
    row(
        "replaced by fee, and a miner takes the first: paid once, by the first",
        [scan(5, tx()), scan(10, tx("bb")), scan(20, tx(mined=15))],
        "open open paid",
        PAID,
    ),
    row(
        "replaced by fee across the deadline: in time when the replacement was seen before it",
        [scan(5, tx()), scan(59.9, tx("bb")), scan(90, tx("bb")), scan(120, tx("bb", mined=110))],
        "open open open paid",
        ("bb", ASKED, True),
    ),
    row(
        "replaced by fee after the deadline: the replacement is late",
        [scan(5, tx()), scan(61, tx("bb")), scan(62, tx("bb")), scan(90, tx("bb", mined=80))],
        "open open expired expired",
        ("bb", ASKED, False),
    ),
    row(
        "replaced away: no money any more, and the next look after the deadline expires",
        [scan(5, tx()), scan(10), scan(59.9), scan(60)],
        "open open open expired",
    ),
    row(
        "replaced away after the deadline: not the look that misses it expires, but the next",
        [scan(5, tx()), scan(90), scan(91)],
        "open open expired",
    ),
    row(
        "dropped from the mempool and back in a block: paid, as it was seen in time",
        [scan(5, tx()), scan(50), scan(90, tx(mined=80))],
        "open open paid",
        PAID,
    ),
    row(
        "swept by the merchant before the check: paid",
        [scan(90, tx(mined=10, height=990, spent_height=995))],
        "paid",
        PAID,
    ),
    row(
        "reorganised and back in another block: open while it waits, then paid once more",
        [
            scan(15, tx(mined=10)),
            lost("aa"),
            scan(20, tx(), tip=TIP + 1),
            scan(30, tx(mined=25, height=TIP + 2), tip=TIP + 2),
        ],
        "paid open open paid",
        PAID,
    ),
    row(
        "reorganised and back in another block before anybody looked: paid again at once",
        [scan(15, tx(mined=10)), lost("aa"), scan(20, tx(mined=11), tip=TIP + 1)],
        "paid open paid",
        PAID,
    ),
    row(
        "reorganised across the deadline: open while it waits, paid by a block after it",
        [scan(5, tx()), scan(15, tx(mined=10)), lost("aa"), scan(90, tx()), scan(99, tx(mined=95))],
        "open paid open open paid",
        PAID,
    ),
    row(
        "reorganised and double spent: open, and expires after the deadline",
        [scan(15, tx(mined=10)), lost("aa"), scan(20), scan(59.9), scan(60)],
        "paid open open open expired",
    ),
    row(
        "reorganised and double spent after the deadline: the second look without it expires",
        [scan(15, tx(mined=10)), lost("aa"), scan(90), scan(91)],
        "paid open open expired",
    ),
    row(
        "reorganised and double spent: the part that stays is a payment without invoice",
        [
            scan(15, tx(sats=40_000, mined=10, height=990), tx("bb", 60_000, 12)),
            lost("bb"),
            scan(20, tx(sats=40_000, mined=10, height=990), tip=TIP + 1),
        ],
        "paid open open",
        ("aa", 40_000, False),
    ),
    row(
        "explorer down at the deadline: nothing expires blind, and the first look after does",
        [scan(59.9), unasked(60), unasked(WEEK), scan(WEEK + 1)],
        "open open open expired",
    ),
    row(
        "explorer down at the deadline: what was mined before it pays when it is up again",
        [scan(30), unasked(60), unasked(WEEK), scan(WEEK + 1, tx(mined=59.9))],
        "open open open paid",
        PAID,
    ),
    row(
        "explorer empty for a known payment: it stays paid",
        [scan(15, tx(mined=10)), scan(20), scan(90)],
        "paid paid paid",
        PAID,
    ),
    row(
        "explorer empty for a known part: it stays a payment, and the rest pays",
        [scan(15, tx(sats=40_000, mined=10)), scan(20), scan(30, tx("bb", 60_000, 25))],
        "open open paid",
        ("aa", 40_000, True),
        ("bb", 60_000, True),
    ),
    row(
        "explorer empty for what is proven and not deep: neither expires nor pays, until shown",
        [
            scan(15, tx(mined=10)),
            scan(90, tip=TIP + 1),
            scan(91, tip=TIP + 1),
            scan(92, tx(mined=10), tip=TIP + 1),
        ],
        "open open open paid",
        PAID,
        confirmations=2,
    ),
    row(
        "explorer empty for what waits: once does not expire, and shown again it is in time",
        [scan(5, tx()), scan(90), scan(91, tx()), scan(99, tx(mined=95))],
        "open open open paid",
        PAID,
    ),
    row(
        "service down from before the payment until after the deadline: paid",
        [unasked(90), scan(WEEK, tx(mined=10))],
        "open paid",
        PAID,
    ),
    row(
        "service down all the time, and nothing came: the first look expires",
        [unasked(90), scan(WEEK)],
        "open expired",
    ),
]


@pytest.mark.parametrize(("steps", "rules", "statuses", "payments"), ROWS)
def test_life(steps: list[Step], rules: Rules, statuses: list[str], payments: list[Any]) -> None:
    life = Life(rules)
    assert life.play(steps) == statuses
    assert life.payments() == payments
    assert (life.invoice.tx_hash is None) == (statuses[-1] != "paid")


@pytest.mark.parametrize(("steps", "rules", "statuses", "payments"), ROWS)
def test_the_last_scan_a_hundred_times_more_changes_nothing(
    steps: list[Step], rules: Rules, statuses: list[str], payments: list[Any]
) -> None:
    life = Life(rules)
    life.play(steps)
    before = (life.invoice, life.known)
    assert set(life.play(steps[-1:] * 100)) == {statuses[-1]}
    assert (life.invoice, life.known) == before
    assert life.payments() == payments


@pytest.mark.parametrize(
    ("one_sats", "two_sats", "statuses"),
    [
        pytest.param(30_000, 70_000, ["paid", "paid"], id="both in full: both are paid"),
        pytest.param(29_999, 70_001, ["open", "paid"], id="a satoshi misplaced: one is"),
        pytest.param(29_999, 69_999, ["open", "open"], id="both short: neither is"),
    ],
)
def test_one_transaction_paying_two_invoices(
    one_sats: int, two_sats: int, statuses: list[str]
) -> None:
    rules = Rules(1, Decimal(0))
    one, two = Life(rules, 30_000), Life(rules, 70_000)
    found = one.play([scan(15, tx(sats=one_sats, mined=10))])
    found += two.play([scan(15, tx(sats=two_sats, mined=10, vout=1))])
    assert found == statuses
    assert one.payments() == [("aa", one_sats, statuses[0] == "paid")]
    assert two.payments() == [("aa", two_sats, statuses[1] == "paid")]
