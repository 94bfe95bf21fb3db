"""What a check cannot take back: it waits while the clock is doubted, and then it is done."""

import json
from datetime import UTC, datetime, timedelta

import pytest

from btcpay.check.beginning import begin_chain
from storage.queries import meta
from tests.support.bills import EMAIL, all_bills, mails_of, new_bill
from tests.support.fake_esplora import Terminal

pytestmark = pytest.mark.both_databases
IN_2099 = datetime(2099, 1, 1, tzinfo=UTC)
HOUR_S = 3600


@pytest.fixture
def till(open_tills):
    return open_tills(BLOCKTILL_EMAIL_RETENTION_DAYS="7")


def numbers(till):
    return [bill.number for bill in all_bills(till.shop)]


def wait_by_the_other_clock(till, seconds):
    """As if the leap had been seen so much earlier, by the clock that nobody sets."""
    leap = json.loads(meta.get(till.shop.service.db, meta.Key.TIME_LEAP))
    began, _, start = leap["mark"].partition(" ")
    leap["mark"] = f"{int(began) - seconds} {start}"
    leap["clock_ms"] -= seconds * 1000
    meta.put(till.shop.service.db, meta.Key.TIME_LEAP, json.dumps(leap))


def test_a_check_in_2099_by_clock_and_chain_makes_erases_and_forgets_nothing(
    till, clock
):
    order = {"amount_usd": 25, "customer_email": EMAIL}
    invoice = till.shop.post(
        "/invoices", order, headers={"Idempotency-Key": "order-1"}
    ).json
    till.confirm(invoice)
    new_bill(till.shop, every="week", customer_email=EMAIL)
    now = clock.at
    mails = mails_of(till.shop)

    clock.at = IN_2099
    till.mine()
    for _ in range(3):
        run = till.check()
        assert "26" in run.doubt and "days" in run.doubt and not run.stuck_reason
    (keys,) = till.shop.sql("SELECT count(*) FROM idempotency_key").fetchone()
    assert (numbers(till), mails_of(till.shop), keys) == ([0], mails, 1)
    assert till.look(invoice)["customer_email"] == EMAIL

    clock.at = now + timedelta(days=7)
    till.sandbox.chain.reorganise(1, till.now)
    till.mine(2)
    assert till.check().doubt == ""
    assert numbers(till) == [0, 1]


def test_after_three_weeks_without_a_check_each_period_has_its_bill_at_once(
    till, clock
):
    till.check()
    new_bill(till.shop, every="week")
    clock.move(days=21)
    till.mine()
    assert till.check().doubt == "" and numbers(till) == [0, 1, 2, 3]


def test_after_half_a_year_the_bills_come_an_hour_after_the_first_check(till, clock):
    till.check()
    new_bill(till.shop, every="month")
    clock.move(days=180)
    till.mine()
    assert till.check().doubt and till.check().doubt and numbers(till) == [0]
    wait_by_the_other_clock(till, HOUR_S)
    assert till.check().doubt == "" and numbers(till) == [0, 1, 2, 3, 4, 5]
    assert till.check().doubt == ""


def test_while_the_chain_is_stuck_nothing_is_made_though_the_clock_is_near(
    lied_to, clock
):
    till = lied_to(honest_too=True)
    till.check()
    new_bill(till.shop, every="week")
    clock.move(days=8)
    till.mine(4)
    till.liar.lies = {"^/blocks/": lambda _: "nothing", "/header$": lambda _: "00"}
    run = till.check(till.liar.root)
    assert numbers(till) == [0] and (run.stuck_reason or run.chain_failed)


def test_the_real_command_makes_no_bill_after_a_leap_of_twenty_years(open_tills, clock):
    """Its clock is the machine's: so the shop's last check was twenty years ago."""
    present = clock.at = datetime.now(UTC).replace(microsecond=0)
    clock.at = present - timedelta(days=20 * 365)
    till = open_tills()
    new_bill(till.shop, every="week", customer_email=EMAIL)
    invoice = till.shop.invoice()
    till.check()
    till.confirm(invoice)

    clock.at = present
    till.mine()
    for _ in range(2):
        output, errors = Terminal(till).run("check", "--once")
        assert (
            "nothing is renewed or erased until the time is confirmed"
            in output + errors
        )
    assert numbers(till) == [0] and len(mails_of(till.shop)) == 3
    doubt = Terminal(till).json("check", "--once")["doubt"]
    assert "7300 days" in doubt
    lines = {line["name"]: line for line in Terminal(till).json("doctor", status=1)}
    assert (
        lines["time"]["colour"] == "red"
        and "--clock-is-right" in lines["time"]["remedy"]
    )

    Terminal(till).run("check", "--once", "--clock-is-right")
    assert numbers(till) == list(range(53))


@pytest.mark.parametrize(
    ("behind_h", "is_believed"), [(0, True), (3, True), (48, False)]
)
def test_the_blocks_since_the_merchant_was_made_witness_the_time_until_the_first_check(
    lied_to, clock, behind_h, is_believed
):
    """Unless the clock was behind the chain then: no block could witness what it makes up for."""
    till = lied_to(has_begun=False)
    clock.move(hours=-behind_h)
    assert begin_chain(till.shop.service.db, till.settings, clock)
    found = meta.get(till.shop.service.db, meta.Key.TIME_BELIEVED)
    assert bool(found) == is_believed
    if found:
        assert json.loads(found)["height"] == till.sandbox.chain.ledger.height
