"""Scenes just before a check, and worlds in which that check is disturbed.

A scene is a chain that stands still, and a shop's database with something to find on it. A world
is a copy of that database, with a way of its own to the chain: what is done to one world leaves
the scene and the other worlds as they are.
"""

import contextlib
import json
import threading
from collections import Counter, defaultdict
from collections.abc import Callable, Iterator, Set
from dataclasses import dataclass, field, replace
from datetime import date, datetime
from pathlib import Path
from typing import Any
from zoneinfo import ZoneInfo

import requests

from btcpay.merchants.merchants import Gap, gap_of, gap_of_merchant
from btcpay.sandbox.payer import wallet as wallets
from storage.database import group_by, open_database
from storage.queries import merchants
from storage.queries.totals import balances
from tests.support.accounts import Sweeper
from tests.support.builders import Clock, TickerServer
from tests.support.databases import ON_POSTGRES, copy_of, raw, remove, tables
from tests.support.fake_esplora import (
    FakeEsplora,
    Reply,
    Terminal,
    Till,
    open_till,
    say,
)

Rows = dict[str, list[Any]]
# Answers a world's call in place of the truth: its number from 1, its path, the true body.
Fault = Callable[[int, str, bytes], Reply | None]

# Counts and notes of looks, calls and requests: another number of them is no other outcome.
NOISE = {
    *(
        "seq",
        "asked_ms",
        "asked_since",
        "checked_ms",
        "failures",
        "failed_ms",
        "changes",
    ),
    *("not_before", "last_used_ms", "explorer", "explorer_use", "peer", "tally"),
}
# When something was noticed, and in which order: differs where the clock of the wall decides.
NOTICED = {
    *(
        "first_seen_ms",
        "vanished_ms",
        "happened_ms",
        "finished_ms",
        "since_ms",
        "read_ms",
    ),
    *("tip_since", "run_since", "ran_ms", "tried_ms", "delivered_ms", "covered_ms"),
    *("time_believed", "time_leap", "receipt_number"),
}


class Relay(FakeEsplora):
    """Passes on what the explorer of a scene says, to each world below a path of its own.

    The chain stands still, so that each answer is fetched once and remembered.
    """

    def __init__(self, honest: str) -> None:
        super().__init__()
        self.faults: dict[str, Fault] = {}
        self._honest = honest
        self._truths: dict[str, requests.Response] = {}
        self._calls: dict[str, list[str]] = {}
        self._lock = threading.Lock()

    def calls(self, world: str) -> list[str]:
        return self._calls.get(world, [])

    def _answer(self, target: str) -> Reply:
        world, _, rest = target.removeprefix("/").partition("/")
        path = f"/{rest}"
        # Counted here and not at the client, which may ask in several threads at once.
        with self._lock:
            calls = self._calls.setdefault(world, [])
            calls.append(path)
            number = len(calls)
            if path not in self._truths:
                self._truths[path] = requests.get(self._honest + path, timeout=60)
        truth = self._truths[path]
        fault = self.faults.get(world)
        instead = fault(number, path, truth.content) if fault else None
        return instead or say(truth.content, truth.status_code)


@dataclass
class World:
    """One copy of the shop: `environ` is what its own process would be started with."""

    name: str
    url: str
    till: Till
    environ: dict[str, str]


@dataclass
class Scene:
    """The common base of its worlds; `before` is the database as the check finds it."""

    till: Till
    relay: Relay
    folder: Path
    before: str
    _names: Iterator[int] = field(default_factory=lambda: iter(range(1_000_000)))

    @contextlib.contextmanager
    def world(self, fault: Fault | None = None) -> Iterator[World]:
        """A new copy of the shop, whose calls meet this fault."""
        name = f"world{next(self._names)}"
        url = copy_of(self.before, self.folder / f"{name}.db")
        root = f"{self.relay.root}/{name}"
        if fault:
            self.relay.faults[name] = fault
        service = self.till.shop.service
        settings = replace(service.settings, database_url=url, explorers=(root,))
        db = open_database(url)
        shop = replace(
            self.till.shop, service=replace(service, db=db, settings=settings)
        )
        environ = shop.environ | {
            "BLOCKTILL_DATABASE_URL": url,
            "BLOCKTILL_EXPLORERS": root,
        }
        try:
            clock = Clock()
            clock.at = self.till.clock.at
            yield World(name, url, Till(shop, self.till.sandbox, clock), environ)
        finally:
            db.close()
            remove(url)

    def heal(self, world: World) -> None:
        self.relay.faults.pop(world.name, None)


@contextlib.contextmanager
def open_scene(
    prepare: Callable[[Till], None], folder: Path, ticker: TickerServer, clock: Clock
) -> Iterator[Scene]:
    """Plays `prepare`, which takes two hours, so that it ends half an hour before the present."""
    present = clock.at
    clock.move(hours=-2.5)
    environ = {"BLOCKTILL_CONFIRMATIONS": "1 3@1000"}
    with open_till(folder, ticker, clock, has_begun=False, **environ) as till:
        prepare(till)
        clock.at = present
        till.shop.close()
        before = copy_of(till.settings.database_url, folder / "before.db")
        with Relay(till.settings.explorers[0]) as relay:
            yield Scene(till, relay, folder, before)


def over_the_deadline(till: Till) -> None:
    """Invoices whose time is up: with nothing, with what waits, with too late money."""
    _nothing, waiting, confirmed, replaced, late = (
        till.shop.invoice(25, expires_in_hours=1) for _ in range(5)
    )
    till.pay(waiting)
    in_time = till.pay(confirmed)
    taken_back = till.pay(replaced)
    till.look_for(waiting, confirmed, replaced)
    till.clock.move(hours=2)
    wallets.replace(till.sandbox.wallet, till.now, taken_back, away=True)
    till.mine_only(in_time, till.pay(late))


def deep_or_canceled(till: Till) -> None:
    """Large sums, one of them deep enough by now; and money that nobody asks for any more."""
    deep = till.shop.invoice(1500)
    shallow = till.shop.invoice(1500)
    canceled = till.shop.invoice()
    till.pay(deep)
    till.clock.move(hours=2)
    till.mine_and_check()
    Terminal(till).run("invoice", "cancel", canceled["id"])
    till.pay(shallow), till.pay(canceled)
    till.mine(2)


def swept(till: Till) -> None:
    """Coins that have moved on: of a payment that is known, and before anyone looked."""
    sweeper = Sweeper(till, keep_shop=True)
    known = sweeper.invoice()
    unknown = sweeper.invoice()
    first = till.pay(known)
    till.mine_and_check()
    till.clock.move(hours=2)
    second = till.pay(unknown)
    till.mine()
    sweeper.sweep(known, first)
    sweeper.sweep(unknown, second)
    till.mine()


def reorganised(till: Till) -> None:
    """Two blocks are lost. One payment is taken back, one waits again, one is in another block.

    And a coin that had been swept is there again.
    """
    sweeper = Sweeper(till, keep_shop=True)
    kept = sweeper.invoice()
    lost, waits, moved, parts = (till.shop.invoice(25) for _ in range(4))
    coin = till.pay(kept)
    till.mine()
    till.clock.move(hours=2)
    sweeper.sweep(kept, coin)
    raw = till.sandbox.chain.mempool.entries[till.pay(moved)].tx.raw
    till.pay(parts, 10_000)
    till.mine()
    till.pay(lost), till.pay(waits), till.pay(parts, parts["amount_sats"] - 10_000)
    till.mine()
    assert sorted(till.check().new_statuses.values()) == ["paid"] * 5
    taken_back = wallets.double_spends(till.sandbox.wallet, 1)[0]
    till.sandbox.chain.reorganise(2, till.now, [raw, taken_back])


_RICHEST = (over_the_deadline, reorganised)
# Servers may lock and commit otherwise; these two do all of it.
SCENES = _RICHEST if ON_POSTGRES else (*_RICHEST, deep_or_canceled, swept)


def state(url: str, without: Set[str] = NOISE) -> Rows:
    """Every row of every table, less the columns and facts of these names.

    The random id of a payment is replaced by what it is: its transaction and its invoice. The
    order in which things happened is left out: an invoice whose late money could not be proven at
    first is over before that money is a payment, and else after it.
    """
    with raw(url) as connection:
        found = tables(connection)
    of_seq = {
        row["seq"]: f"{row['kind']} of {row['invoice_id']}"
        for row in found["public_event"]
    }
    for row in found["delivery"]:
        row["event_seq"] = row["about"] = of_seq[row["event_seq"]]
        del row["first_ms"], row["created_ms"]
    for row in found["public_event"]:
        del row["id"], row["number"]  # which receivers know it by
    kept = {
        table: [
            {name: value for name, value in row.items() if name not in without}
            for row in rows
            if table != "meta" or row["name"] not in without
        ]
        for table, rows in found.items()
        if table not in without
    }
    text = json.dumps(kept, default=repr)
    for event in found["event"]:  # also of payments that were undone
        if event["kind"] == "payment":
            payment = json.loads(event["detail"])
            text = text.replace(
                payment["id"], f"{payment['txid']} to {event['invoice_id']}"
            )
    rows = json.loads(text)
    for table, column in (("event", "detail"), ("public_event", "state")):
        for row in rows[table]:
            row[column] = json.loads(row[column] or "{}")
    return {table: sorted(found, key=repr) for table, found in rows.items()}


def differences(found: Rows, wanted: Rows) -> list[str]:
    """Each row that one of the two has more often than the other."""
    told = []
    for table in sorted(found.keys() | wanted.keys()):
        rows, others = (
            Counter(map(repr, each.get(table, []))) for each in (found, wanted)
        )
        told += [f"{table}, unwanted: {row}" for row in rows - others]
        told += [f"{table}, missing: {row}" for row in others - rows]
    return told


def _assert_receipt_numbers(rows: Rows) -> None:
    """1, 2, 3 and so on for each merchant, on what is paid and on what was."""
    given = group_by(rows["invoice"], lambda row: row["merchant_id"])
    for invoices in given.values():
        numbers = sorted(
            row["receipt_number"] for row in invoices if row["receipt_number"]
        )
        assert numbers == list(range(1, len(numbers) + 1)), numbers


def assert_sound(url: str) -> None:
    """Asserts the rules that must hold at every moment, whatever happened.

    A balance is the sum of its outputs, a payment is proven and is the sum of its outputs, an
    invoice is paid by the payments that carry its id and by nothing less. A merchant's receipt
    numbers have no gap.
    """
    db = open_database(url)
    for merchant in db.rows(merchants.ALL):
        where: dict[str, Any] = {
            "merchant_id": db.get(merchants.BY_NAME, name=merchant.name).id
        }
        stored, summed = (
            db.get(q, **where) for q in (balances.OF_MERCHANT, balances.RECOMPUTED)
        )
        assert stored == summed, f"the balance is {stored}, its outputs are {summed}"
    kept = {row.name: gap_of_merchant(db, row) for row in db.rows(merchants.ALL)}
    db.close()
    rows = state(url)
    _assert_gaps(rows, kept)
    _assert_receipt_numbers(rows)
    proven = {(row["invoice_id"], row["txid"]) for row in rows["proof"]}
    mined = {
        (row["invoice_id"], row["txid"]) for row in rows["output"] if row["block_hash"]
    }
    assert proven == mined, f"proven are {proven}"
    assert_days(rows)
    for payment in rows["payment"]:
        outputs = [row for row in rows["output"] if row["payment_id"] == payment["id"]]
        paid_sats = sum(row["amount_sats"] for row in outputs)
        assert payment["amount_sats"] == paid_sats, f"{payment} of {outputs}"
        known = all(
            row["block_hash"] and row["txid"] == payment["tx_hash"] for row in outputs
        )
        assert known, f"{payment} of {outputs}"
    for invoice in rows["invoice"]:
        settling = [
            row for row in rows["payment"] if row["invoice_id"] == invoice["id"]
        ]
        if invoice["status"] != "paid":
            assert settling == [], f"{invoice} is not paid, and yet by {settling}"
        elif invoice["settled_reason"] is None:
            paid_sats = sum(row["amount_sats"] for row in settling)
            assert paid_sats >= invoice["amount_sats"], (
                f"{invoice} is paid by {settling}"
            )
            completed = invoice["tx_hash"] in {row["tx_hash"] for row in settling}
            assert completed, f"{invoice} is paid by {settling}"
    _assert_told_once(rows)


def assert_days(rows: Rows) -> None:
    """The kept days are those of the payments that stand."""
    days: dict[tuple[int, int, str], Counter[str]] = defaultdict(Counter)
    zones = {row["id"]: row["timezone"] for row in rows["merchant"]}
    for row in rows["payment"]:
        value = row["value_at_receipt"]
        at = datetime.fromtimestamp(
            row["created_ms"] / 1000, ZoneInfo(zones[row["merchant_id"]])
        )
        day = days[
            row["merchant_id"], (at.date() - date(1970, 1, 1)).days, row["currency"]
        ]
        day.update(payments=1, received_sats=row["amount_sats"], unpriced=value is None)
        day.update(value_minor=int((value or "0").replace(".", "")))
    key = ("merchant_id", "day", "currency")
    kept = {tuple(row[name] for name in key): row for row in rows["merchant_day"]}
    assert kept == {
        of: dict(zip(key, of, strict=True)) | sums for of, sums in days.items()
    }


def _assert_gaps(rows: Rows, kept: dict[str, Gap]) -> None:
    """Each merchant's gap is the one between the addresses to which anything has come."""
    came = {row["invoice_id"] for row in rows["output"] if row["vanished_ms"] is None}
    for merchant in rows["merchant"]:
        paid = [
            row["address_index"]
            for row in rows["invoice"]
            if row["merchant_id"] == merchant["id"] and row["id"] in came
        ]
        assert kept[merchant["name"]] == gap_of(
            None, None, merchant["next_index"], sorted(paid)
        )


def _assert_told_once(rows: Rows) -> None:
    """Others were told of each invoice and payment, of each end and each payment taken back.

    Once each, however often it was tried: an invoice is paid once more than it was opened again.
    """
    told = Counter((row["kind"], row["invoice_id"]) for row in rows["public_event"])
    for invoice in rows["invoice"]:
        id = invoice["id"]
        status = invoice["status"]
        paid = told["invoice.paid", id] - told["invoice.reopened", id]
        over = told["invoice.expired", id] + told["invoice.canceled", id]
        by_hand = invoice["settled_reason"] is not None  # after its end
        wanted = (status == "paid", by_hand or status in ("expired", "canceled"))
        assert (paid, over) == wanted, f"{invoice} was told {paid} and {over} times"
        assert told["invoice.created", id] == 1
    received = Counter(dict.fromkeys((row["id"] for row in rows["payment"]), 1))
    for row in rows["public_event"]:
        if row["kind"] == "payment.undone":
            received[row["state"]["payment"]["id"]] += 1
    events = [row for row in rows["public_event"] if row["kind"] == "payment.received"]
    assert Counter(row["state"]["payment"]["id"] for row in events) == received


def assert_nothing_else(found: Rows, before: Rows, end: Rows) -> None:
    """Nothing came about that an undisturbed check would not have brought about.

    An invoice stands where it stood or will stand, or is open once its payment was undone.
    """
    statuses = [
        {row["id"]: row["status"] for row in rows["invoice"]} for rows in (before, end)
    ]
    reopened = {
        row["invoice_id"] for row in end["event"] if row["kind"] == "reorganised"
    }
    for invoice in found["invoice"]:
        allowed = {was[invoice["id"]] for was in statuses}
        allowed |= {"open"} if invoice["id"] in reopened else set()
        assert invoice["status"] in allowed, f"{invoice} of {allowed}"
    payments = [{row["id"] for row in rows["payment"]} for rows in (found, before, end)]
    assert payments[0] <= payments[1] | payments[2], f"payments {payments}"
