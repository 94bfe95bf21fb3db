"""A mail server may be slow: it is waited for, and what nobody knows is tried once more."""

import threading
import time

import pytest

from btcpay.merchants.merchants import set_mail
from btcpay.notify.delivery_queue import DeliveryCounts
from btcpay.notify.mail.replies import USUAL, Times
from btcpay.notify.outbox import Outbox, new_send
from btcpay.settings.settings import read
from storage.queries import meta
from storage.queries.meta import Key
from tests.support.builders import pay, until
from tests.support.fake_esplora import Terminal
from tests.support.slow_mail import SlowMail

pytestmark = [pytest.mark.both_databases, pytest.mark.slow]
OLD_BOUND_S = 5.5  # what was too long before
MAIL_FROM = {"BLOCKTILL_MAIL_FROM": "pay@shop.example"}


@pytest.fixture
def server():
    with SlowMail() as slow:
        threading.Thread(target=slow.serve_forever, daemon=True).start()
        yield slow
        slow.shutdown()


class Office:
    """A shop whose customers have receipts, by that server."""

    def __init__(self, shop, server, clock):
        self.shop = shop
        self.server = server
        self.clock = clock
        set_mail(shop.service.db, 1, {"receipts": 1}, clock())

    def run(self, times=USUAL):
        db = self.shop.service.db
        settings = read(self.shop.environ)
        meta.put_time(db, Key.CHECKED_MS, self.clock())
        return Outbox(db, settings, self.clock, new_send(settings), times).run()

    def paid(self, email="ada@example.com"):
        pay(self.shop, self.shop.invoice(customer_email=email))

    def row(self):
        columns = "attempts, next_ms, delivered_ms IS NOT NULL, answer, doubted_ms IS NOT NULL"
        (row,) = self.shop.sql(f"SELECT {columns} FROM delivery").fetchall()  # noqa: S608
        return row


@pytest.fixture
def office(open_shops, server, clock):
    return Office(open_shops(BLOCKTILL_SMTP_URL=server.url, **MAIL_FROM), server, clock)


def test_a_slow_greeting_and_a_slow_answer_to_the_mail_are_waited_for(office):
    office.server.greet = lambda: time.sleep(OLD_BOUND_S)
    office.server.judge = lambda: time.sleep(OLD_BOUND_S) or True
    office.paid()
    assert office.run() == DeliveryCounts(1, 0)
    office.clock.move(days=1)
    assert office.run() == DeliveryCounts(0, 0) and len(office.server.taken) == 1


def test_the_address_of_a_customer_is_told_as_name_servers_know_it(office):
    office.paid("chef@straße.de")
    assert office.run() == DeliveryCounts(1, 0)
    assert office.server.recipients == ["<chef@xn--strae-oqa.de>"]


# How an attempt may end when the whole mail is there and no answer comes.
DOUBTS = {
    "it hangs up": (lambda released: False, USUAL),
    "it says nothing": (lambda released: released.wait(60), Times(answer_s=11)),
}


@pytest.mark.parametrize(("judge", "times"), DOUBTS.values(), ids=DOUBTS)
def test_a_mail_without_an_answer_is_tried_once_more_after_an_hour(
    judge, times, office, released
):
    office.server.judge = lambda: judge(released)
    office.paid()
    assert office.run(times) == DeliveryCounts(0, 1)
    attempts, next_ms, is_sent, answer, is_doubted = office.row()
    assert (attempts, is_sent, is_doubted) == (1, 0, 1) and "may be sent" in answer
    for minutes in (
        10,
        20,
        29,
    ):  # also where a failing receiver is tried every half hour
        office.clock.move(minutes=minutes)
        assert office.run(times) == DeliveryCounts(0, 0)
    office.server.judge = lambda: True
    office.clock.move(minutes=2)
    assert office.run(times) == DeliveryCounts(1, 0)
    assert len(office.server.taken) == 2
    ids = {
        mail.partition(b"Message-ID:")[2].split(b"\r\n")[0]
        for mail in office.server.taken
    }
    assert len(ids) == 1  # programs that know an id show one mail


def test_a_mail_that_nobody_ever_answers_to_goes_out_twice_and_no_more(office):
    office.server.judge = lambda: False
    office.paid()
    for _ in range(72):
        office.run()
        office.clock.move(hours=1)
    assert len(office.server.taken) == 2
    assert office.row()[:3] == (2, None, 0)


def test_between_two_doubts_a_refusal_makes_no_third_copy(office):
    office.server.judge = lambda: False
    office.paid()
    office.run()
    office.server.judge = lambda: True
    office.server.verdict = b"451 come again"
    office.clock.move(minutes=61)
    assert office.run() == DeliveryCounts(0, 1)
    office.server.judge = lambda: False
    for _ in range(72):
        office.clock.move(hours=1)
        office.run()
    assert len(office.server.taken) == 3  # one of which it has refused


def test_after_a_recovery_a_mail_in_doubt_waits_for_its_hour(office):
    office.server.judge = lambda: False
    office.paid()
    office.run()
    office.server.judge = lambda: True
    office.clock.move(minutes=5)
    office.paid("bob@example.com")
    assert office.run() == DeliveryCounts(1, 0)
    assert office.server.recipients == ["<ada@example.com>", "<bob@example.com>"]
    office.clock.move(minutes=56)
    assert office.run() == DeliveryCounts(1, 0)


def test_a_server_that_goes_before_the_mail_is_whole_is_tried_as_ever(office):
    office.server.greet = lambda: 1 / 0  # the connection ends without a greeting
    office.server.handle_error = lambda *_: None
    office.paid()
    assert office.run() == DeliveryCounts(0, 1)
    assert office.row()[4] == 0
    office.server.greet = lambda: True
    office.clock.move(minutes=1)
    assert office.run() == DeliveryCounts(1, 0)


def test_a_mail_server_that_keeps_silent_delays_no_webhook_and_no_check(
    till, server, receiver, released
):
    server.greet = lambda: released.wait(600)
    terminal = Terminal(till)
    terminal.environ |= {"BLOCKTILL_SMTP_URL": server.url, **MAIL_FROM}
    terminal.run("merchant", "mail", "shop", "--receipts")
    terminal.run("webhook", "add", "shop", receiver.url, "--kinds", "invoice.paid")
    with terminal.start("check", "--watch", "1") as watching:
        try:
            for count in (1, 2, 3):
                till.pay(till.shop.invoice(customer_email="ada@example.com"))
                till.mine()
                until(
                    lambda count=count: len(receiver.messages) == count, "the webhook"
                )
            assert server.taken == []
            released.set()
            until(lambda: len(server.taken) == 3, "the mails")
        finally:
            watching.terminate()
