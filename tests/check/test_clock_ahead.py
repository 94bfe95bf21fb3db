"""A machine whose clock is ahead: what it must not end, and what it does all the same."""

import time
from datetime import UTC, datetime, timedelta
from email.utils import format_datetime, formatdate

import pytest

from btcpay.http.clock_skew import CLOCK_OFF, ClockSkew, time_sent
from storage.queries import meta
from tests.support.builders import Clock
from tests.support.fake_esplora import Terminal

EMAIL = "ada@customer.example"
NOON = datetime(2026, 3, 1, 12, 0, 0, tzinfo=UTC)
SENT = format_datetime(NOON, usegmt=True)


@pytest.fixture
def till(open_tills):
    return open_tills(BLOCKTILL_EMAIL_RETENTION_DAYS="7")


def ahead_of(clock, **delta):
    """Another machine's clock."""
    other = Clock()
    other.at = clock.at + timedelta(**delta)
    return other


def five_minutes_before_its_end(till):
    invoice = till.shop.invoice(expires_in_hours=1)
    till.clock.move(minutes=55)
    return invoice


def status(till, invoice):
    return till.look(invoice)["status"]


def date_of(clock, **headers):
    return lambda: {"Date": format_datetime(clock(), usegmt=True)} | headers


def test_a_clock_that_is_days_ahead_passes_over_no_block(till, clock):
    """With nothing open and nothing lately finished, old blocks are not read, nor ever after."""
    invoice = till.shop.invoice(expires_in_hours=1)
    clock.move(hours=2)
    assert till.check().new_statuses == {invoice["id"]: "expired"}
    till.pay(invoice)
    till.mine()
    till.check(clock=ahead_of(clock, days=9))
    till.check()
    assert [payment["amount_sats"] for payment in till.payments()] == [
        invoice["amount_sats"]
    ]


def test_before_its_end_an_invoice_is_not_expired_and_can_be_paid(till, clock, caplog):
    invoice = five_minutes_before_its_end(till)
    run = till.check(clock=ahead_of(clock, minutes=6))
    assert (run.looked_at, run.failed, run.new_statuses, run.complete) == (
        1,
        [],
        {},
        False,
    )
    # The explorers tell the present, which goes on meanwhile.
    assert 300 < run.clock_ahead_s <= 360 and status(till, invoice) == "open"
    assert meta.get(till.shop.service.db, meta.Key.CHECKED_MS) is None
    (message,) = (
        record.message for record in caplog.records if record.levelname == "ERROR"
    )
    assert f"{run.clock_ahead_s} s ahead" in message and "NTP" in message
    assert till.confirm(invoice).complete and status(till, invoice) == "paid"


@pytest.mark.parametrize("early_h", [0, 2, 9_000, -9_000])
def test_a_false_date_makes_no_late_payment_one_in_time(lied_to, clock, early_h):
    till = lied_to()
    invoice = till.shop.invoice(expires_in_hours=1)
    clock.move(minutes=61)
    till.liar.headers = date_of(ahead_of(clock, hours=-early_h))
    till.pay(invoice)
    assert till.check().new_statuses == (
        {} if early_h > 0 else {invoice["id"]: "expired"}
    )
    till.mine_and_check()
    assert [payment["invoice_id"] for payment in till.payments()] == [None]
    till.liar.headers = date_of(clock)
    till.check()
    assert status(till, invoice) == "expired"


def test_a_check_with_a_fast_clock_settles_and_ends_by_the_explorers_too(till, clock):
    paid = till.shop.invoice()
    invoice = five_minutes_before_its_end(till)
    till.pay(paid)
    till.mine()
    clock.move(minutes=5, seconds=5)
    run = till.check(clock=ahead_of(clock, minutes=6))
    assert (
        run.new_statuses == {paid["id"]: "paid", invoice["id"]: "expired"}
        and not run.complete
    )


@pytest.mark.parametrize(
    "seen_waiting", [True, False], ids=["seen waiting", "seen in its block"]
)
def test_what_is_seen_waiting_for_an_invoice_of_a_later_day_counts_when_it_is_mined(
    till, clock, seen_waiting
):
    till.shop.invoice(), till.check()
    clock.move(hours=3)
    invoice = till.shop.invoice()
    clock.move(hours=-3)
    till.pay(invoice)
    if seen_waiting:
        till.look_for(invoice)
    till.mine_and_check()
    assert status(till, invoice) == ("paid" if seen_waiting else "open")
    assert till.balance()[0] == invoice["amount_sats"]


@pytest.mark.parametrize("hours", [3, 30])
@pytest.mark.parametrize("is_right", [True, False], ids=["set right", "still ahead"])
def test_what_pays_the_first_invoice_of_a_clock_that_was_ahead_is_found(
    lied_to, clock, hours, is_right
):
    """Its block is older than the invoice, by the chain's clock."""
    till = lied_to(has_begun=False)
    till.mine(20)
    clock.move(hours=hours)
    invoice = till.shop.invoice()
    clock.move(hours=-hours)
    till.pay(invoice)
    till.mine()
    till.liar.headers = date_of(ahead_of(clock))
    till.check(clock=None if is_right else ahead_of(clock, hours=hours))
    assert (
        till.mine_and_check().complete and till.balance()[0] == invoice["amount_sats"]
    )


def test_an_end_after_the_tip_was_asked_waits_for_the_next_run(lied_to, clock):
    """A payment mined in between has left the mempool, and is in no block that we know."""
    till = lied_to()
    invoice = till.shop.invoice(expires_in_hours=1)
    till.check()
    clock.move(minutes=59, seconds=55)
    till.pay(invoice)

    def mine_behind(text):
        till.liar.lies = {}
        till.mine()
        clock.move(seconds=10)
        return text

    till.liar.lies = {"/blocks/tip/": mine_behind}
    assert till.check().new_statuses == {}
    assert till.check().new_statuses == {invoice["id"]: "paid"}


def test_a_step_in_the_middle_of_a_run_is_noticed(lied_to, clock):
    till = lied_to()
    invoice = five_minutes_before_its_end(till)
    till.check()
    till.liar.headers = date_of(ahead_of(clock))
    machine = ahead_of(clock)

    def step(path):
        if "/tip/" in path:
            machine.move(minutes=6)
        else:
            till.liar.headers = dict  # what was told before the step is held against it

    till.liar.instead = step
    run = till.check(clock=machine)
    assert (run.looked_at, run.new_statuses, run.complete) == (0, {}, False)
    assert run.clock_ahead_s and status(till, invoice) == "open"


def test_nothing_is_forgotten_by_a_clock_that_is_ahead_or_that_nobody_has_confirmed(
    till, clock
):
    headers = {"Idempotency-Key": "order-1"}
    order = {"amount_usd": 25, "customer_email": EMAIL}
    invoice = till.shop.post("/invoices", order, headers=headers).json
    till.confirm(invoice)

    def kept():
        (keys,) = till.shop.sql("SELECT count(*) FROM idempotency_key").fetchone()
        return till.look(invoice)["customer_email"], keys

    till.check(clock=ahead_of(clock, days=8))
    assert kept() == (EMAIL, 1)
    till.sandbox.switches.explorer = "down"
    till.check(clock=ahead_of(clock, days=8))
    assert kept() == (EMAIL, 1)
    till.sandbox.switches.explorer = "up"
    clock.move(days=8)
    till.check()
    assert kept() == (None, 0)


@pytest.mark.parametrize("which", [[], ["--invoice"]])
def test_the_command_fails_and_says_by_how_much(lied_to, clock, which):
    till = lied_to()
    till.liar.headers = lambda: {"Date": formatdate(time.time() - 360, usegmt=True)}
    clock.move(minutes=-57)
    invoice = till.shop.invoice(expires_in_hours=1)  # ends in three minutes
    # of the world; the machine's shows three minutes after the end
    clock.move(minutes=57 - 6)
    words = ["check", *which, *([invoice["id"]] if which else [])]
    summary = Terminal(till).json(*words, status=1)
    assert 300 < summary["clock_ahead_s"] <= 365 and summary["changed"] == {}
    output, errors = Terminal(till).run(*words, status=1)
    assert "timedatectl" in output and "s ahead" in errors
    assert status(till, invoice) == "open"


DATES = {
    "sent at noon": ({"Date": SENT}, NOON),
    "straight from the explorer": ({"Date": SENT, "Age": "0"}, NOON),
    "cached": ({"Date": SENT, "Age": "90"}, NOON + timedelta(seconds=90)),
    "just young": ({"Date": SENT, "Age": "120"}, NOON + timedelta(minutes=2)),
    "cached for too long": ({"Date": SENT, "Age": "121"}, None),
    "an age that is none": ({"Date": SENT, "Age": "-1"}, None),
    "an age beyond all": ({"Date": SENT, "Age": "9" * 30}, None),
    "no date": ({}, None),
    "an empty date": ({"Date": ""}, None),
    "a date that is none": ({"Date": "yesterday"}, None),
    "of no zone": ({"Date": "Sun, 01 Mar 2026 12:00:00 -0000"}, None),
    "of no day": ({"Date": "Sun, 99 Mar 2026 12:00:00 GMT"}, None),
    "the end of time": ({"Date": "Fri, 31 Dec 9999 23:59:59 GMT", "Age": "1"}, None),
}


@pytest.mark.parametrize(("headers", "sent_at"), DATES.values(), ids=DATES)
def test_when_an_answer_was_sent(headers, sent_at):
    assert time_sent(headers) == sent_at


def test_two_minutes_are_forgiven_and_no_more():
    skew = ClockSkew()
    began_s = time.monotonic()
    assert skew.time_ahead(NOON, began_s) == timedelta()
    skew.on_headers({"Date": SENT})
    heard_s = time.monotonic()
    assert skew.time_ahead(NOON + CLOCK_OFF, heard_s) == timedelta()
    assert (
        skew.time_ahead(
            NOON + CLOCK_OFF + timedelta(seconds=heard_s - began_s), began_s
        )
        > CLOCK_OFF
    )
    late = NOON + CLOCK_OFF + timedelta(seconds=1)
    assert skew.time_ahead(late, began_s) > CLOCK_OFF
    assert (
        skew.time_ahead(late, heard_s + 5) == timedelta()
    )  # five seconds later it is later there too


def test_the_latest_that_was_told_counts():
    skew = ClockSkew()
    for minutes in (-30, 0, -60):
        skew.on_headers(
            {"Date": format_datetime(NOON + timedelta(minutes=minutes), usegmt=True)}
        )
    assert skew.time_ahead(NOON, time.monotonic()) == timedelta()
