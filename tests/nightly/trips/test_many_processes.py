"""Four servers of eight threads each and three checks, at once on one PostgreSQL database."""

import contextlib
import itertools
from collections import Counter
from concurrent.futures import ThreadPoolExecutor, as_completed
from time import sleep

import pytest

from btcpay.api.idempotency import HOLD
from btcpay.merchants.account import stored_account
from btcpay.values.times import utc_now
from tests.support import postgres
from tests.support.builders import Live, until
from tests.support.databases import raw, tables
from tests.support.fake_esplora import Terminal, open_till

PROCESSES, THREADS, ORDERS = (
    4,
    8,
    6,
)  # orders of each thread, two of three without a key
CHECKS = 3
SHARED_BY = 4  # requests with the same Idempotency-Key


@pytest.fixture
def till(tmp_path, ticker, clock):
    url = postgres.server().create()
    with open_till(tmp_path, ticker, clock, BLOCKTILL_DATABASE_URL=url) as opened:
        yield opened
    postgres.server().drop(url)


def order(live, key, number):
    """One invoice; every third order carries a key that others carry too.

    It asks until the invoice is made, as a merchant's program would: sooner at first, and less
    often than thirty times a minute.
    """
    text = f"order {number // 3 // SHARED_BY}" if number % 3 == 0 else ""
    headers = {"Idempotency-Key": text} if text else {}
    pauses_s = (min(0.02 * 2**n, 3) for n in itertools.count())

    def ask():
        answer = live.ask(
            "POST", "/invoices", key, json={"amount_usd": 5}, headers=headers
        )
        if answer.status_code != 409:
            return answer
        sleep(next(pauses_s))
        return None

    answer = until(ask, "the key to be free", 2 * HOLD.total_seconds())
    assert answer.status_code == 201, answer.text
    return text, answer.json()


def pay_and_mine(till, invoices):
    """One transaction for twenty; their block is of a moment after they were made."""
    outputs = [(invoice, invoice["amount_sats"]) for invoice in invoices]
    for start in range(0, len(outputs), 20):
        till.pay_outputs(*outputs[start : start + 20])
    till.clock.at = utc_now().replace(microsecond=0)
    till.clock.move(seconds=2)
    till.mine()


def test_nothing_is_made_paid_or_counted_twice(till, tmp_path):
    early = [till.shop.invoice(5) for _ in range(40)]
    keys = [till.shop.issue("write") for _ in range(PROCESSES * THREADS * ORDERS)]
    terminal = Terminal(till)
    with contextlib.ExitStack() as stack:
        lives = []
        for number in range(PROCESSES):
            folder = tmp_path / f"live{number}"
            folder.mkdir()
            lives.append(stack.enter_context(Live(till.shop, folder)))
        checks = [
            terminal.start("check", "--watch", "1", "--json") for _ in range(CHECKS)
        ]
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
    invoices = rows["invoice"]
    payments = rows["payment"]
    # One resource for each key, one for each request without.
    by_key: dict[str, set[str]] = {}
    for text, invoice in made:
        by_key.setdefault(text, set()).add(invoice["id"])
    plain = by_key.pop("")
    assert all(len(ids) == 1 for ids in by_key.values())
    assert len(invoices) == len(early) + len(by_key) + len(plain)
    assert len(plain) == sum(not text for text, _ in made)
    # No address and no index twice, and no gap.
    assert sorted(row["address_index"] for row in invoices) == list(
        range(len(invoices))
    )
    assert len({row["deposit_address"] for row in invoices}) == len(invoices)
    (merchant,) = rows["merchant"]
    assert merchant["next_index"] == len(invoices)
    account = stored_account(merchant["descriptor"])
    for row in invoices:
        assert row["script"] == account.script(row["address_index"]).hex()
    # Each is paid, once, and by all that came; and it was recorded once.
    assert {row["status"] for row in invoices} == {"paid"}
    assert Counter(row["invoice_id"] for row in payments) == Counter(
        r["id"] for r in invoices
    )
    kinds = Counter((row["invoice_id"], row["kind"]) for row in rows["event"])
    assert {kinds[row["id"], "payment"] for row in invoices} == {1}
    assert {kinds[row["id"], "paid"] for row in invoices} == {1}
    # The totals are the sums.
    total_sats = sum(row["amount_sats"] for row in invoices)
    assert sum(row["amount_sats"] for row in payments) == total_sats
    assert till.balance() == (total_sats, total_sats)
