"""Events reach those who want them: signed, each once by its id, and again when they did not."""

import time
from concurrent.futures import ThreadPoolExecutor
from contextlib import nullcontext, suppress
from datetime import timedelta

import pytest

from btcpay.notify import receivers
from btcpay.notify.delivery_queue import DeliveryCounts
from btcpay.notify.events import delete_old_events
from btcpay.notify.kinds import EventKind
from btcpay.notify.outbox import Outbox, new_send
from btcpay.notify.outcome import ATTEMPT_S, Answer
from btcpay.values.errors import CommandError
from btcpay.values.networks import NETWORKS
from storage.queries import deliveries as queries
from storage.queries.receivers import LIST, NO_MAIL, put_mail
from storage.statement import replace
from tests.support.builders import at_once, until
from tests.support.fake_esplora import dropped, say
from tests.support.findings import found
from tests.support.samples import figures
from tests.support.shop_events import deliver, events

pytestmark = pytest.mark.both_databases


def add(till, url, *kinds, merchant_id=0):
    shop = till.shop
    owner_id = merchant_id or shop.merchant_id
    return receivers.add(shop.service.db, owner_id, url, None, kinds, till.clock())


def deliveries(till, added):
    return till.shop.service.db.rows(queries.LIST, receiver_id=added.id, limit=100)


def endpoint(till, added):
    return receivers.find(till.shop.service.db, added.id)


def test_an_endpoint_is_told_of_its_merchant_and_its_kinds_alone_from_then_on(
    till, receiver
):
    other = till.shop.add_merchant("other")
    till.shop.link()
    add(till, receiver.url, EventKind.PAYMENT_LINK_CREATED)
    add(till, receiver.url, merchant_id=other)
    till.shop.invoice()
    till.shop.link()
    assert deliver(till) == (1, 0)
    assert receiver.kinds == ["payment_link.created"]


def test_a_2xx_takes_it_and_nothing_else_and_no_redirect_is_followed(till, receiver):
    for status in (200, 201, 202, 204, 299, 302, 304, 400, 401, 404, 429, 500, 503):
        added = add(till, receiver.url)
        receiver.messages.clear()
        receiver.instead = lambda _, code=status: say(
            b"no", code, Location=receiver.url
        )
        till.shop.link()
        is_taken = status < 300
        assert deliver(till) == (is_taken, not is_taken), status
        (row,) = deliveries(till, added)
        state = "delivered" if is_taken else "waiting"
        assert (row.state, row.attempts, row.status) == (state, 1, status)
        assert len(receiver.messages) == 1
        receivers.remove(till.shop.service.db, added.id)


def test_what_happens_is_told_signed_and_tried_again_with_its_id_and_a_new_time(
    till, receiver
):
    added = add(till, receiver.url)
    receiver.instead = lambda _: say(b"busy", 500)
    till.shop.invoice()
    deliver(till)
    till.clock.move(seconds=4)
    assert deliver(till) == (0, 0)
    till.clock.move(seconds=2)
    receiver.instead = lambda _: say(b"", 204)
    assert deliver(till) == (1, 0)
    assert deliver(till) == (0, 0)
    (first, second) = receiver.messages
    (event,) = events(till)
    assert (first.id, first.body) == (second.id, second.body) == (event.id, event.body)
    assert first.headers["content-type"] == "application/json"
    assert first.headers["webhook-timestamp"] != second.headers["webhook-timestamp"]
    assert all(
        message.is_signed_by(added.secret or "") for message in receiver.messages
    )
    (row,) = deliveries(till, added)
    assert (row.state, row.attempts, row.status) == ("delivered", 2, 204)


def test_gone_disables_at_once_and_a_resend_enables(till, receiver):
    added = add(till, receiver.url)
    receiver.instead = lambda _: say(b"", 410)
    till.shop.invoice()
    assert deliver(till) == (0, 1)
    assert endpoint(till, added).disabled_reason == "it answered 410 Gone"
    till.shop.link()
    till.clock.move(hours=1)
    assert deliver(till) == (0, 0)
    assert found(till)[f"webhook {added.id}"].colour == "yellow"
    receiver.instead = lambda _: say(b"", 204)
    assert receivers.resend_since(till.shop.service.db, added.id, 0, till.clock()) == 2
    assert deliver(till) == (2, 0)
    assert endpoint(till, added).disabled_ms is None
    assert found(till)["webhooks"].colour == "green"


def test_one_event_that_is_sent_again_brings_all_that_wait_after_an_outage(
    till, receiver
):
    """Its success is the first after the outage, as that of any other event."""
    added = add(till, receiver.url)
    receiver.instead = lambda _: say(b"", 503)
    till.shop.invoice()
    till.shop.invoice()
    for _ in range(6):
        deliver(till)
        till.clock.move(hours=2)
    receiver.instead = lambda _: say(b"", 204)
    receiver.messages.clear()
    first = events(till)[0]
    receivers.resend(till.shop.service.db, added.id, first.id, till.clock())
    deliver(till)
    deliver(till)
    assert {message.id for message in receiver.messages} == {
        event.id for event in events(till)
    }


def test_five_days_without_success_disable_and_the_doctor_says_so_before(till):
    added = add(till, "http://127.0.0.1:9/")
    for hours in (0, 1, 118):
        till.clock.move(hours=hours)
        till.shop.invoice()
        deliver(till)
    assert endpoint(till, added).disabled_ms is None
    assert "has accepted nothing since" in found(till)[f"webhook {added.id}"].sentence
    till.clock.move(hours=2)
    till.shop.invoice()
    deliver(till)
    assert "5 days" in endpoint(till, added).disabled_reason
    assert {row.state for row in deliveries(till, added)} == {"given up"}


def test_the_doctor_counts_what_waits_for_webhooks_that_work_or_have_just_failed(
    till, receiver
):
    def sentence():
        finding = found(till)["webhooks"]
        assert finding.colour == "green"
        return finding.sentence

    add(till, receiver.url)
    assert sentence() == "1 of them, none failing"
    till.shop.link()
    assert sentence() == "1 of them, none failing; deliveries that wait: 1"
    receiver.instead = lambda _: say(b"no", 400)
    deliver(till)
    till.clock.move(minutes=59)
    till.shop.link()
    assert sentence() == (
        "1 of them, 1 failing for less than an hour; deliveries that wait: 2"
    )
    till.clock.move(minutes=1)
    (id,) = [row.id for row in till.shop.service.db.rows(LIST)]
    assert found(till)[f"webhook {id}"].colour == "yellow"
    receiver.instead = lambda _: say(b"", 204)
    deliver(till)
    assert sentence() == "1 of them, none failing"


def test_for_a_day_after_a_rotation_both_secrets_sign(till, receiver):
    old = add(till, receiver.url)
    new = receivers.rotate(till.shop.service.db, old.id, till.clock())
    for hours, signed_by in ((23.9, [True, True]), (0.2, [True, False])):
        till.clock.move(hours=hours)
        till.shop.invoice()
        assert deliver(till) == (1, 0)
        message = receiver.messages[-1]
        assert [
            message.is_signed_by(one.secret or "") for one in (new, old)
        ] == signed_by
        assert len(message.signatures) == sum(signed_by)


@pytest.mark.parametrize(
    "hours", [1, 12, 100], ids=["an hour", "half a day", "four days"]
)
def test_a_receiver_that_is_back_gets_all_that_waits_in_that_run_oldest_first(
    till, receiver, hours
):
    """It is asked at least each half hour, with one event."""
    dead = add(till, "http://127.0.0.1:9/")
    add(till, receiver.url)
    failed_at = []
    for minute in range(0, hours * 60, 10):
        till.clock.move(minutes=10)
        if minute % (hours * 20) == 0:
            till.shop.invoice(), till.shop.link()
        delivered, failed = deliver(till)
        failed_at += [minute] * failed
    ids = [event.id for event in events(till)]
    assert len(ids) == 6 and sorted(receiver.ids) == sorted(ids)
    pauses = [
        later - before for before, later in zip(failed_at, failed_at[1:], strict=False)
    ]
    assert pauses and max(pauses) <= 30
    till.shop.sql(
        "UPDATE receiver SET url = (SELECT url FROM receiver WHERE failing_since IS NULL)"
    )
    receiver.messages.clear()
    till.clock.move(minutes=30)
    assert deliver(till) == (6, 0)
    assert sorted(receiver.ids) == sorted(ids)
    assert endpoint(till, dead).failing_since is None
    assert {row.state for row in deliveries(till, dead)} == {"delivered"}


def test_what_waits_for_a_receiver_that_is_back_comes_oldest_first(till, monkeypatch):
    """Due or not: it was asked with the oldest."""
    # else four are under way at once
    monkeypatch.setattr("btcpay.notify.outbox.MOST_OF_ONE", 1)
    add(till, "http://127.0.0.1:9/")
    for _ in range(5):
        till.shop.link()
        till.clock.move(minutes=1)
    for _ in range(60):
        deliver(till)
        till.clock.move(minutes=10)
    deliver(till)
    till.shop.link()
    came: list[int] = []

    def take(_receiver, event, _at):
        came.append(event.number)
        return Answer(True, 200, "")

    till.clock.move(minutes=1)
    back = Outbox(till.shop.service.db, till.settings, till.clock, take)
    assert back.run() == DeliveryCounts(6, 0)
    assert came == [1, 2, 3, 4, 5, 6]


def test_an_event_that_is_never_taken_stops_none_behind_it_and_is_given_up(
    till, receiver
):
    """Three days after its first attempt; it can be sent again."""
    added = add(till, receiver.url)
    first = till.shop.link()["id"]
    receiver.instead = lambda message: say(
        b"", 500 if first.encode() in message.body else 204
    )
    deliver(till)
    for hours in (1, 30, 44):
        till.clock.move(hours=hours)
        till.shop.link(), till.shop.link()
        assert deliver(till) == (2, 1)
    assert [row.state for row in deliveries(till, added)] == ["delivered"] * 6 + [
        "waiting"
    ]
    till.clock.move(hours=1)
    till.shop.link()
    deliver(till)
    assert deliveries(till, added)[-1].state == "given up"
    receiver.instead = lambda _: say(b"", 204)
    assert deliver(till) == (0, 0)
    assert receivers.resend_failed(till.shop.service.db, added.id, till.clock()) == 1
    assert deliver(till) == (1, 0)


def test_what_was_sent_and_not_noted_is_sent_again_with_the_same_id(till, receiver):
    """A run was killed between the two: the receiver knows it by its id."""
    add(till, receiver.url)
    till.shop.invoice()
    # the fifth look at the clock is to note the answer
    times = iter([till.clock()] * 4)
    sender = new_send(till.settings)
    with pytest.raises(StopIteration):
        Outbox(till.shop.service.db, till.settings, lambda: next(times), sender).run()
    till.clock.move(minutes=2)  # until then it may still be under way
    assert deliver(till) == (1, 0)
    assert len(receiver.ids) == 2 and len(set(receiver.ids)) == 1


def test_rows_that_cannot_be_read_do_not_hold_a_run_beyond_its_time(till):
    for number in range(20):
        add(till, f"http://127.0.0.1:9/{number}")
    till.shop.link()
    till.shop.sql("UPDATE public_event SET kind = 'of no meaning'")

    def slow_clock():
        time.sleep(0.01)
        return till.clock()

    Outbox(
        till.shop.service.db, till.settings, slow_clock, new_send(till.settings)
    ).run(ATTEMPT_S + 0.05)
    tried = till.shop.sql(
        "SELECT count(*) FROM delivery WHERE attempts > 0"
    ).fetchone()[0]
    assert tried < 20
    deliver(till)
    tried = till.shop.sql(
        "SELECT count(*) FROM delivery WHERE attempts > 0"
    ).fetchone()[0]
    assert tried == 20


def test_an_answer_that_comes_when_somebody_else_has_delivered_changes_nothing(till):
    added = add(till, "http://127.0.0.1:9/")
    till.shop.invoice()
    taken = Answer(True, 200, "")

    def slow(*_):
        other = Outbox(db, till.settings, till.clock, lambda *_: taken)
        with ThreadPoolExecutor(1) as pool:
            till.clock.move(minutes=2)  # until then it is held for the first
            pool.submit(lambda: (other.run(), db.close())).result()
        return Answer(False, 500, "late")

    db = till.shop.service.db
    assert Outbox(db, till.settings, till.clock, slow).run() == DeliveryCounts(0, 1)
    (row,) = deliveries(till, added)
    assert (row.state, row.attempts, row.answer) == ("delivered", 1, "")


def test_a_success_still_in_flight_does_not_begin_anew_after_a_failure(till, receiver):
    """Of four at once the first is told 410, the others are taken after that was noted."""
    added = add(till, receiver.url)
    for _ in range(9):
        till.shop.link()

    def answer(message):
        place = receiver.messages.index(message)
        if place == 1:
            return say(b"", 410)
        if place > 1:
            until(
                lambda: endpoint(till, added).disabled_ms, "the endpoint to be disabled"
            )
        return say(b"", 204)

    receiver.instead = answer
    deliver(till)
    assert len(receiver.messages) == 5


def test_what_waits_is_not_forgotten_and_what_is_delivered_is(till, receiver):
    add(till, receiver.url)
    receiver.instead = lambda _: dropped
    till.shop.invoice()
    till.shop.link()
    deliver(till)
    db = till.shop.service.db
    later = till.clock() + timedelta(days=31)
    assert delete_old_events(db, later) == 0
    receiver.instead = lambda _: say(b"", 204)
    till.clock.move(minutes=1)
    assert deliver(till)[1] == 0
    deliver(till)
    assert delete_old_events(db, later) == 1  # the newest stays
    assert till.shop.sql("SELECT count(*) FROM delivery").fetchone()[0] == 1


def test_a_spoiled_event_keeps_no_other_back(till, receiver):
    added = add(till, receiver.url)
    till.shop.invoice()
    till.shop.link()
    till.shop.sql("UPDATE public_event SET state = '{' WHERE kind = 'invoice.created'")
    assert deliver(till) == (1, 0)
    assert receiver.kinds == ["payment_link.created"]
    assert [row.state for row in deliveries(till, added)] == ["delivered", "given up"]
    assert endpoint(till, added).failing_since is None


def test_metrics_count_attempts_and_tell_how_long_something_waits(till, receiver):
    add(till, receiver.url)
    receiver.instead = lambda _: say(b"", 500)
    till.shop.invoice()
    deliver(till)
    till.clock.move(minutes=2)
    shown = figures(till.shop)
    assert shown["blocktill_webhook_deliveries_total{result=failed}"] == 1
    assert shown["blocktill_webhook_waiting_seconds"] == 120
    receiver.instead = lambda _: say(b"", 204)
    deliver(till)
    shown = figures(till.shop)
    assert shown["blocktill_webhook_deliveries_total{result=delivered}"] == 1
    assert shown["blocktill_webhook_waiting_seconds"] == 0


def test_a_merchant_has_at_most_twenty_receivers_whoever_adds_at_once(till):
    shop = till.shop
    put_mail(shop.service.db, replace(NO_MAIL, merchant_id=1, address="a@b.example"), 0)
    for number in range(18):
        add(till, f"https://shop.example/{number}")

    def one_more(number):
        with suppress(CommandError):
            return add(till, f"https://shop.example/more/{number}")

    assert len(list(filter(None, at_once(8, one_more)))) == 2
    with pytest.raises(CommandError, match="20"):
        receivers.add(shop.service.db, shop.merchant_id, None, "true", [], till.clock())
    receivers.remove(shop.service.db, shop.service.db.rows(LIST)[0].id)
    assert add(till, "https://shop.example/again")


URLS = {
    "https": ("https://shop.example/hooks", "mainnet", True),
    "http to this machine": ("http://127.0.0.1:5000/", "mainnet", True),
    "http to localhost": ("http://localhost:5000/", "mainnet", True),
    "http to IPv6 of this machine": ("http://[::1]:5000/", "mainnet", True),
    "http elsewhere": ("http://shop.example/", "mainnet", False),
    "http to another machine near": ("http://192.168.1.4/", "mainnet", False),
    "http elsewhere, on a test network": ("http://shop.example/", "signet", True),
    "a file": ("file:///etc/passwd", "signet", False),
    "no host": ("https:///hooks", "signet", False),
}


@pytest.mark.parametrize("case", URLS)
def test_a_webhook_url_is_taken_or_refused_by_its_network(case):
    url, name, is_taken = URLS[case]
    with nullcontext() if is_taken else pytest.raises(CommandError):
        receivers.webhook_url(url, NETWORKS[name])


def test_a_url_is_called_at_the_name_that_browsers_read_in_it():
    url = receivers.webhook_url("https://straße.de/hooks", NETWORKS["mainnet"])
    assert url == "https://xn--strae-oqa.de/hooks"
    with pytest.raises(CommandError, match="host"):
        receivers.webhook_url("https://🍕.example/hooks", NETWORKS["mainnet"])
