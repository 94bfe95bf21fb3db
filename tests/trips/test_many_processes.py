"""Four servers of eight threads each and three checks, at once on one PostgreSQL database."""

import contextlib
import itertools
import json
import os
import signal
import threading
from collections import Counter
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor, as_completed
from pathlib import Path
from time import sleep

import postgres
import pytest
import requests
from btcpay.check.claims import scan_what_others_left, share
from builders import Clock, Live, TickerServer, until
from databases import raw, tables
from fake_esplora import Json, Liar, Reply, Terminal, Till, open_till, silent

from btcpay.api.idempotency import HOLD
from btcpay.check.report import Report
from btcpay.times import utc_now
from storage.queries import meta

PROCESSES, THREADS, ORDERS = 4, 8, 6  # orders of each thread, two of three without a key
CHECKS = 3
SHARED_BY = 4  # requests with the same Idempotency-Key


@pytest.fixture
def till(tmp_path: Path, ticker: TickerServer, clock: Clock) -> Iterator[Till]:
    url = postgres.server().create()
    with open_till(tmp_path, ticker, clock, BTCPAY_DATABASE_URL=url) as opened:
        yield opened
    postgres.server().drop(url)


def order(live: Live, key: str, number: int) -> tuple[str, Json]:
    """One invoice; every third order carries a key that others carry too.

    It asks until the invoice is made, as a merchant's program would: sooner at first, and less
    often than thirty times a minute.
    """
    text = f"order {number // 3 // SHARED_BY}" if number % 3 == 0 else ""
    headers = {"Idempotency-Key": text} if text else {}
    pauses_s = (min(0.02 * 2**n, 3) for n in itertools.count())

    def ask() -> requests.Response | None:
        answer = live.ask("POST", "/invoices", key, json={"amount_usd": 5}, headers=headers)
        if answer.status_code != 409:
            return answer
        sleep(next(pauses_s))
        return None

    answer = until(ask, "the key to be free", 2 * HOLD.total_seconds())
    assert answer.status_code == 201, answer.text
    return text, answer.json()


def pay_and_mine(till: Till, invoices: list[Json]) -> None:
    """One transaction for twenty; their block is of a moment after they were made."""
    outputs = [(invoice, invoice["amount_sats"]) for invoice in invoices]
    for start in range(0, len(outputs), 20):
        till.pay_outputs(*outputs[start : start + 20])
    till.clock.at = utc_now().replace(microsecond=0)
    till.clock.move(seconds=2)
    till.mine()


def test_nothing_is_made_paid_or_counted_twice(till: Till, tmp_path: Path) -> None:
    early = [till.shop.invoice(5) for _ in range(40)]
    keys = [till.shop.issue("write") for _ in range(PROCESSES * THREADS * ORDERS)]
    terminal = Terminal(till)
    with contextlib.ExitStack() as stack:
        lives = []
        for number in range(PROCESSES):
            folder = tmp_path / f"live{number}"
            folder.mkdir()
            lives.append(stack.enter_context(Live(till.shop, folder)))
        checks = [terminal.start("check", "--watch", "1", "--json") for _ in range(CHECKS)]
        for check in checks:
            stack.callback(check.kill)
        pay_and_mine(till, early)
        with ThreadPoolExecutor(PROCESSES * THREADS) as pool:
            asked = [
                pool.submit(order, lives[number % PROCESSES], key, number)
                for number, key in enumerate(keys)
            ]
            # As they end, so that what failed first is told, not who waited for it.
            made = [answered.result() for answered in as_completed(asked)]
        late = {invoice["id"]: invoice for _, invoice in made}
        pay_and_mine(till, list(late.values()))
        still_open = "SELECT 1 FROM invoice WHERE status = 'open'"
        until(lambda: not till.shop.sql(still_open).fetchall(), "all to be paid", 120)
        for check in checks:
            check.terminate()
        reports = [check.communicate(timeout=60)[1] for check in checks]
    assert [check.returncode for check in checks] == [0] * CHECKS, reports
    assert not any("Traceback" in report for report in reports), reports

    with raw(till.settings.database_url) as connection:
        rows = tables(connection)
    invoices, payments = rows["invoice"], rows["payment"]
    # One resource for each key, one for each request without.
    by_key: dict[str, set[str]] = {}
    for text, invoice in made:
        by_key.setdefault(text, set()).add(invoice["id"])
    plain = by_key.pop("")
    assert all(len(ids) == 1 for ids in by_key.values())
    assert len(invoices) == len(early) + len(by_key) + len(plain)
    assert len(plain) == sum(not text for text, _ in made)
    # No address and no index twice, and no gap.
    assert sorted(row["address_index"] for row in invoices) == list(range(len(invoices)))
    assert len({row["deposit_address"] for row in invoices}) == len(invoices)
    (merchant,) = rows["merchant"]
    assert merchant["next_index"] == len(invoices)
    # Each is paid, once, and by all that came; and it was recorded once.
    assert {row["status"] for row in invoices} == {"paid"}
    assert Counter(row["invoice_id"] for row in payments) == Counter(r["id"] for r in invoices)
    kinds = Counter((row["invoice_id"], row["kind"]) for row in rows["event"])
    assert {kinds[row["id"], "payment"] for row in invoices} == {1}
    assert {kinds[row["id"], "paid"] for row in invoices} == {1}
    # The totals are the sums, and no claim is left.
    total_sats = sum(row["amount_sats"] for row in invoices)
    assert sum(row["amount_sats"] for row in payments) == total_sats
    assert till.balance() == (total_sats, total_sats)
    assert {row["claimed_until"] for row in invoices} == {None}


def test_runners_share_a_large_check(till: Till) -> None:
    """Hardly any address is looked at twice, and none is left out."""
    invoices = [till.shop.invoice(5) for _ in range(200)]
    terminal = Terminal(till)
    checks = [terminal.start("check", "--json") for _ in range(CHECKS)]
    told = [check.communicate(timeout=120) for check in checks]
    assert [check.returncode for check in checks] == [0] * CHECKS, told
    with raw(till.settings.database_url) as connection:
        looks = [row["looks"] for row in tables(connection)["invoice"]]
    assert len(looks) == len(invoices) and min(looks) == 1
    assert sum(looks) < len(invoices) * 1.5


def test_what_one_runner_has_claimed_others_pass_by_until_it_is_done_or_dead(till: Till) -> None:
    ids = [till.shop.invoice(5)["id"] for _ in range(5)]
    looks = dict.fromkeys(ids, 0)
    db, clock = till.shop.service.db, till.clock

    def others() -> list[str]:
        with share(db, ids, looks, clock, 2) as theirs:
            return list(theirs)

    with share(db, ids, looks, clock, 2) as mine:
        assert [next(mine), next(mine)] == ids[:2]
        assert others() == ids[2:]
        clock.move(minutes=1)  # it is dead, or has forgotten them
        assert others() == ids
    with share(db, ids, looks, clock, 2) as mine:
        next(mine)
        clock.move(minutes=-5)  # the clock was ahead when that was written
        assert others() == ids
        clock.move(minutes=5)
    assert others() == ids


def test_what_was_looked_at_since_it_was_planned_is_left_out(till: Till) -> None:
    one, two = till.shop.invoice(5), till.shop.invoice(5)
    looks = {one["id"]: 0, two["id"]: 0}
    till.checker().run([one["id"]])
    with share(till.shop.service.db, looks, looks, till.clock, 2) as mine:
        assert list(mine) == [two["id"]]


def looks_of(till: Till) -> dict[str, int]:
    return dict(till.shop.sql("SELECT id, looks FROM invoice").fetchall())


def checked_at(till: Till) -> str | None:
    return meta.get(till.shop.service.db, meta.Key.CHECKED_AT)


def hanging(released: threading.Event) -> Callable[[str], Reply | None]:
    """Answers about the chain, and keeps back what it says of addresses."""
    return lambda path: silent(released) if "/address/" in path else None


def test_what_a_killed_check_had_claimed_counts_as_not_looked_at(till: Till) -> None:
    ids = {till.shop.invoice(5)["id"] for _ in range(5)}
    terminal, released = Terminal(till), threading.Event()
    with Liar(till.settings.explorers[0]) as liar:
        liar.instead = hanging(released)
        killed = terminal.start("check", BTCPAY_EXPLORERS=liar.root)
        claimed = "SELECT 1 FROM invoice WHERE claimed_until IS NOT NULL"
        until(lambda: len(till.shop.sql(claimed).fetchall()) == len(ids), "its claims")
        until(lambda: liar.count("/address/"), "its questions")
        os.killpg(killed.pid, signal.SIGKILL)
        assert killed.wait(20) == -signal.SIGKILL
        released.set()
    told = terminal.json("check", status=1)
    assert (set(told["held"]), told["looked_at"], told["failed"]) == (ids, 0, [])
    assert checked_at(till) is None and set(looks_of(till).values()) == {0}
    till.shop.sql("UPDATE invoice SET claimed_until = claimed_until - 60000")  # a minute later
    told = terminal.json("check")
    assert (told["held"], told["looked_at"]) == ([], len(ids))
    assert checked_at(till) is not None and set(looks_of(till).values()) == {1}


def test_a_check_waits_for_what_a_living_one_looks_at_and_both_are_complete(till: Till) -> None:
    ids = {till.shop.invoice(5)["id"] for _ in range(5)}
    terminal, released = Terminal(till), threading.Event()
    root = till.settings.explorers[0]
    with Liar(root) as liar, Liar(root) as other:
        liar.instead = hanging(released)
        slow = terminal.start("check", "--json", BTCPAY_EXPLORERS=liar.root)
        until(lambda: liar.count("/address/"), "its questions")
        second = terminal.start("check", "--json", BTCPAY_EXPLORERS=other.root)
        until(lambda: other.count("/tip/height"), "the second to plan")
        liar.instead = lambda path: None
        released.set()
        told = [json.loads(check.communicate(timeout=60)[0]) for check in (slow, second)]
    assert [check.returncode for check in (slow, second)] == [0, 0], told
    assert [report["held"] for report in told] == [[], []]
    assert sum(report["looked_at"] for report in told) == len(ids)
    assert set(looks_of(till).values()) == {1}


def test_what_a_living_check_failed_to_see_the_other_looks_at(till: Till) -> None:
    """The first gives its claims back; the second has waited for them."""
    ids = {till.shop.invoice(5)["id"] for _ in range(3)}
    db = till.shop.service.db
    looks = dict.fromkeys(ids, 0)
    with contextlib.ExitStack() as first:
        theirs = first.enter_context(share(db, sorted(ids), looks, till.clock, 4))
        assert len(list(theirs)) == 3
        pauses = []

        def pause(seconds: float) -> None:
            pauses.append(seconds)
            first.close()

        run, looked = Report(), []

        def look_at(left: list[str]) -> None:
            with share(db, left, looks, till.clock, 4) as mine:
                for invoice_id in mine:
                    looked.append(invoice_id)
                    till.checker().run([invoice_id])
                    run.scanned += 1

        scan_what_others_left(db, looks, run, look_at, pause)
    assert (set(looked), len(pauses), run.held) == (ids, 1, [])
