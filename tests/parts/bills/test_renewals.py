"""Renewals by the check: each period once, after an outage too; mails; the end of a series."""

from datetime import UTC, date, datetime
from zoneinfo import ZoneInfo

import pytest

from btcpay.check.beginning import begin_chain
from btcpay.languages import formats
from btcpay.merchants.merchants import set_brand
from btcpay.notify.outbox import Outbox, new_send
from btcpay.parts.bills import actions
from btcpay.parts.bills.after_check import on_check
from btcpay.settings.settings import read
from btcpay.values.times import from_ms, to_ms
from storage.queries import meta
from tests.support.bills import (
    EMAIL,
    all_bills,
    bill_now,
    mails_of,
    new_bill,
    page_of,
    pay_now,
)
from tests.support.builders import at_once, pay
from tests.support.fake_esplora import Terminal, say
from tests.support.mail_server import MailServer
from tests.support.payer import Page

pytestmark = pytest.mark.both_databases
NOON = datetime(2026, 1, 31, 12, tzinfo=UTC)


@pytest.fixture
def shop(open_shops, clock):
    clock.at = NOON
    return open_shops()


def turn(shop):
    on_check(shop.service.db, shop.service.settings, shop.clock())


def numbers(shop):
    return [bill.number for bill in all_bills(shop)]


def test_a_series_makes_its_next_bill_when_the_period_begins(shop, clock):
    first = new_bill(shop, every="month", reference="A-17", customer_email=EMAIL)
    clock.at = datetime(2026, 2, 28, 11, 59, tzinfo=UTC)
    turn(shop)
    assert numbers(shop) == [0]
    clock.move(minutes=1)
    turn(shop), turn(shop)
    _, second = all_bills(shop)
    assert (second.number, second.series_id, second.every) == (1, first.id, "month")
    assert (second.reference, second.customer_email, second.amount) == (
        "A-17",
        EMAIL,
        "100",
    )
    assert (second.status, second.renews_ms) == ("open", None)
    for bill in (first, second):
        words = Page(shop.client.get(f"/bill/{bill.id}").text).texts["series"]
        assert words == "every month · next on Tue, Mar 31, 2026"


def test_after_an_outage_there_is_one_bill_for_each_period_that_began(shop, clock):
    first = new_bill(shop, every="week")
    clock.move(days=30)
    turn(shop)
    assert numbers(shop) == [0, 1, 2, 3, 4]
    fourth = all_bills(shop)[-1]
    assert from_ms(fourth.due_ms).date() == date(
        2026, 3, 16
    )  # two weeks after it was made
    clock.move(days=5)
    turn(shop)
    assert numbers(shop) == [0, 1, 2, 3, 4, 5]
    assert bill_now(shop, first).renews == 6


@pytest.mark.parametrize(
    "answers_late",
    [False, True],
    ids=["made while a source answers", "made while none does"],
)
def test_a_shop_that_never_had_an_invoice_renews_its_bills(
    lied_to, clock, answers_late
):
    clock.move(days=-15)
    till = lied_to(has_begun=False)
    till.liar.instead = lambda _: say("no", 503) if answers_late else None
    begin_chain(till.shop.service.db, till.settings, clock)
    new_bill(till.shop, every="week")
    till.liar.instead = lambda _: None
    clock.move(days=15)
    Terminal(till).run("check", "--once")
    assert numbers(till.shop) == [0, 1, 2]


def test_runs_beside_each_other_make_each_bill_once(shop, clock):
    for _ in range(5):
        new_bill(shop, every="week")
    clock.move(days=15)
    at_once(4, lambda _: turn(shop))
    made = [(bill.series_id, bill.number) for bill in all_bills(shop)]
    assert len(made) == len(set(made)) == 15


def test_the_last_day_is_included_and_nothing_comes_after_it(shop, clock):
    new_bill(shop, every="month", until=date(2026, 3, 31))
    clock.move(days=200)
    turn(shop)
    assert numbers(shop) == [0, 1, 2]


def test_a_changed_zone_counts_from_the_next_period(shop, clock):
    first = new_bill(shop, every="month")  # at noon in UTC
    shop.sql("UPDATE merchant SET timezone = 'America/New_York'")
    clock.move(days=28)
    turn(shop)
    assert numbers(shop) == [0, 1]
    noon = datetime(2026, 3, 31, 12, tzinfo=ZoneInfo("America/New_York"))
    assert bill_now(shop, first).renews_ms == to_ms(noon)


def test_a_damaged_zone_keeps_no_other_merchant_from_its_bills(shop, clock):
    new_bill(shop, every="week")
    shop.merchant_id = shop.add_merchant("other")
    new_bill(shop, every="week")
    shop.sql("UPDATE merchant SET timezone = 'Nowhere' WHERE name = 'shop'")
    clock.move(days=8)
    turn(shop)
    assert [bill.merchant_id for bill in all_bills(shop) if bill.number] == [
        shop.merchant_id
    ]


def test_the_merchant_ends_a_series_with_its_open_bill(shop, clock):
    new_bill(shop, every="week")
    clock.move(days=8)
    turn(shop)
    first, second = all_bills(shop)
    actions.end(shop.service.db, shop.service.settings, second.id, clock())
    clock.move(days=30)
    turn(shop)
    assert [(bill.number, bill.status) for bill in all_bills(shop)] == [
        (0, "open"),
        (1, "ended"),
    ]
    assert bill_now(shop, first).renews_ms is None


def test_its_customer_ends_a_series_and_the_debt_stays(shop, clock):
    bill = new_bill(shop, every="week", customer_email=EMAIL)
    assert "stop" in page_of(shop.client, bill).attributes
    asked = shop.client.get(f"/bill/{bill.id}/stop")
    assert asked.status_code == 200 and bill_now(shop, bill).stopped_ms is None
    # A mail program's own press (RFC 8058): no cookie, no token, no redirect.
    answer = shop.client.post(
        f"/bill/{bill.id}/stop", data={"List-Unsubscribe": "One-Click"}
    )
    assert answer.status_code == 200 and "have ended" in answer.text
    own_form = shop.client.post(f"/bill/{bill.id}/stop?lang=de")
    assert (own_form.status_code, own_form.headers["Location"]) == (303, "stop?lang=de")
    clock.move(days=30)
    turn(shop)
    assert [(bill.number, bill.status) for bill in all_bills(shop)] == [(0, "open")]
    assert shop.client.get(f"/bill/{new_bill(shop).id}/stop").status_code == 404


# Mail


def test_mails_wait_for_nine_in_the_morning_and_only_where_there_is_an_address(shop):
    new_bill(shop)
    assert mails_of(shop) == {}
    shop.sql("UPDATE merchant SET timezone = 'Europe/Berlin'")
    new_bill(shop, customer_email=EMAIL)
    nine = {"new": NOON} | {
        name: datetime(2026, 2, day, 9, tzinfo=ZoneInfo("Europe/Berlin"))
        for name, day in (("soon", 11), ("overdue", 15))
    }
    assert mails_of(shop) == {name: to_ms(at) for name, at in nine.items()}


class Post:
    """A mail server, and the shop's outbox as it is at a time."""

    def __init__(self, shop, server):
        self.shop = shop
        self.server = server

    def sent(self, **delta):
        """The subjects of mails that are sent after so long a time."""
        self.shop.clock.move(**delta)
        before = len(self.server.subjects)
        self.run(self.server.url)
        return self.server.subjects[before:]

    def run(self, url):
        settings = read(
            self.shop.environ
            | {
                "BLOCKTILL_SMTP_URL": url,
                "BLOCKTILL_MAIL_FROM": "Shop <shop@example.com>",
            }
        )
        Outbox(
            self.shop.service.db, settings, self.shop.clock, new_send(settings)
        ).run()


@pytest.fixture
def post(shop, tmp_path):
    with MailServer(tmp_path) as server:
        yield Post(shop, server)


def test_a_customer_gets_the_bill_two_reminders_and_thanks(shop, post):
    business = {"business_address": "Quay 1\nHamburg", "tax_number": "DE1"}
    set_brand(shop.service.db, shop.merchant_id, business)
    bill = new_bill(shop, reference="A-17", description="Rent", customer_email=EMAIL)
    assert "Quay 1" not in shop.client.get(f"/bill/{bill.id}").text
    assert post.sent() == ["Bill from shop \u00b7 A-17"]
    assert post.sent(days=12) == ["Reminder: bill from shop \u00b7 A-17"]
    assert post.sent(days=3) == ["Overdue: bill from shop \u00b7 A-17"]
    pay(shop, pay_now(shop, bill))
    assert post.sent() == ["Paid: bill from shop \u00b7 A-17"]
    assert post.sent(days=40) == []
    page = page_of(shop.client, bill)
    assert page.texts["business-address"] == "Quay 1\nHamburg"
    assert page.texts["tax-number"] == "DE1"
    assert page.texts["receipt-number"] == "1"
    last = post.server.taken[-1]
    lines = last.text.splitlines()
    assert lines[:3] == ["$100.00", "", "Thank you. This bill is paid."]
    assert lines[-4:] == ["shop", "Quay 1", "Hamburg", "Tax number: DE1"]
    assert not any("Quay 1" in mail.text for mail in post.server.taken[:-1])
    assert f"/bill/{bill.id}" in last.text and last.message["List-Unsubscribe"] is None


def test_a_reminder_of_a_bill_that_is_paid_in_part_asks_for_the_rest(shop, post):
    bill = new_bill(shop, customer_email=EMAIL)
    invoice = pay_now(shop, bill)
    pay(shop, invoice, invoice["amount_sats"] // 4)
    post.sent(days=12)
    lines = post.server.taken[-1].text.splitlines()
    assert lines[:2] == ["$75.01", "Still to pay"]
    assert lines[3].startswith("This bill is due on ") and lines[5] == "Amount: $100.00"


def test_a_mail_server_that_is_back_gets_no_reminder_before_its_time(shop, post):
    """Then the outbox sends all that waits; what was written for later does not wait yet."""
    new_bill(shop, customer_email=EMAIL)
    post.run("smtp://127.0.0.1:9")
    assert post.sent(minutes=30) == ["Bill from shop"]
    assert post.sent(minutes=30) == []
    assert post.sent(days=12) == ["Reminder: bill from shop"]


def test_no_reminder_is_sent_or_given_up_while_the_clock_is_doubted(shop, post):
    new_bill(shop, customer_email=EMAIL)
    assert post.sent() == ["Bill from shop"]
    now = shop.clock.at
    db = shop.service.db
    meta.put(db, meta.Key.TIME_LEAP, '{"why": "this clock has gone on by 26000 days"}')
    assert post.sent(days=26_000) == []
    meta.put(db, meta.Key.TIME_LEAP, "")
    shop.clock.at = now
    assert post.sent(days=12) == ["Reminder: bill from shop"]


def test_who_has_paid_is_not_reminded(shop, post):
    pay(shop, pay_now(shop, new_bill(shop, customer_email=EMAIL)))
    assert sorted(post.sent()) == ["Paid: bill from shop"]
    assert post.sent(days=30) == []


def test_a_mail_of_a_series_says_how_to_end_it_and_after_that_none_comes(shop, post):
    bill = new_bill(shop, every="month", customer_email=EMAIL)
    post.sent()
    message = post.server.taken[-1].message
    stop = f"/bill/{bill.id}/stop"
    assert message["List-Unsubscribe"].endswith(f"{stop}>")
    assert message["List-Unsubscribe-Post"] == "List-Unsubscribe=One-Click"
    assert stop in post.server.taken[-1].text and stop in post.server.taken[-1].html
    renews_ms = bill_now(shop, bill).renews_ms
    day = formats.date_of(renews_ms, "en", UTC)
    often = f"How often: every month · next on {day}"
    assert often in post.server.taken[-1].text
    shop.client.post(stop)
    assert post.sent(days=12) == post.sent(days=3) == []
    pay(shop, pay_now(shop, bill))
    assert post.sent() == []


def test_addresses_of_bills_that_are_over_are_erased_with_those_of_invoices(
    open_shops, clock
):
    shop = open_shops(BLOCKTILL_EMAIL_RETENTION_DAYS="30")
    paid, still_open = (new_bill(shop, customer_email=EMAIL) for _ in range(2))
    series = new_bill(shop, every="year", customer_email=EMAIL)
    for bill in (paid, series):
        pay(shop, pay_now(shop, bill))
    clock.move(days=31)
    turn(shop)
    kept = [bill_now(shop, bill).customer_email for bill in (paid, still_open, series)]
    assert kept == [None, EMAIL, EMAIL]
