"""Events reach those who want them: signed, each once by its id, and again when they did not."""

import threading
from collections.abc import Callable, Iterator
from datetime import timedelta

import pytest
from builders import until
from fake_esplora import Json, Reply, Till, dropped, say
from findings import found
from receiver import Message, Receiver
from samples import figures
from told import events

from btcpay.notify.events import retention
from btcpay.notify.events.kinds import EventKind
from btcpay.notify.webhooks import endpoints
from btcpay.notify.webhooks.deliver import Delivered, Deliverer
from btcpay.notify.webhooks.send import Answer, new_session, send
from btcpay.values.errors import CommandError
from btcpay.values.networks import NETWORKS
from schemas.resources import Resources
from storage.queries import webhooks

pytestmark = pytest.mark.both_databases


@pytest.fixture
def receiver() -> Iterator[Receiver]:
    with Receiver() as listening:
        yield listening


def add(till: Till, url: str, *kinds: EventKind, merchant_id: int = 0) -> endpoints.Added:
    shop = till.shop
    owner_id = merchant_id or shop.merchant_id
    return endpoints.add(shop.service.db, owner_id, url, None, kinds, till.clock())


def deliverer(till: Till, timeout_s: float = 5) -> Deliverer:
    session = new_session(4, "")
    return Deliverer(
        till.shop.service.db,
        Resources(till.settings.base_url),
        till.clock,
        lambda endpoint, event, at: send(session, endpoint, event, at, timeout_s),
    )


def deliver(till: Till) -> tuple[int, int]:
    told = deliverer(till).run()
    return told.delivered, told.failed


def deliveries(till: Till, added: endpoints.Added) -> list[Json]:
    return till.shop.service.db.rows(webhooks.DELIVERIES, endpoint_id=added.id, limit=100)


def endpoint(till: Till, added: endpoints.Added) -> Json:
    return endpoints.find(till.shop.service.db, added.id)


def test_what_happens_is_told_signed_with_the_events_id(till, receiver):
    added = add(till, receiver.url)
    till.shop.invoice()
    assert deliver(till) == (1, 0)
    (message,), (event,) = receiver.messages, events(till)
    assert message.verify(added.secret or "") == message.json
    assert (message.id, message.body) == (event.id, event.body)
    assert message.headers["content-type"] == "application/json"
    assert deliver(till) == (0, 0) and len(receiver.messages) == 1


def test_only_what_happens_afterwards_is_told(till, receiver):
    till.shop.invoice()
    add(till, receiver.url)
    till.shop.link()
    assert deliver(till) == (1, 0)
    assert receiver.kinds == ["payment_link.created"]


def test_an_endpoint_is_told_of_its_merchant_and_its_kinds_alone(till, receiver):
    other = till.shop.add_merchant("other")
    add(till, receiver.url, EventKind.PAYMENT_LINK_CREATED)
    add(till, receiver.url, merchant_id=other)
    till.shop.invoice()
    till.shop.link()
    assert deliver(till) == (1, 0)
    assert receiver.kinds == ["payment_link.created"]


def test_two_endpoints_are_told_each_with_its_own_secret(till, receiver):
    secrets = [add(till, receiver.url).secret or "" for _ in range(2)]
    till.shop.invoice()
    assert deliver(till) == (2, 0)
    assert len(set(receiver.ids)) == 1
    signed = [[m.is_signed_by(secret) for secret in secrets] for m in receiver.messages]
    assert sorted(signed) == [[False, True], [True, False]]


REFUSED = [302, 304, 400, 401, 404, 429, 500, 503]


@pytest.mark.parametrize("status", [200, 201, 202, 204, 299])
def test_a_2xx_takes_it(till, receiver, status):
    add(till, receiver.url)
    receiver.instead = lambda _: say(b"", status)
    till.shop.invoice()
    assert deliver(till) == (1, 0)


@pytest.mark.parametrize("status", REFUSED)
def test_any_other_status_does_not_and_no_redirect_is_followed(till, receiver, status):
    added = add(till, receiver.url)
    receiver.instead = lambda _: say(b"no", status, Location=receiver.url)
    till.shop.invoice()
    assert deliver(till) == (0, 1)
    (row,) = deliveries(till, added)
    assert (row["state"], row["attempts"], row["status"]) == ("waiting", 1, status)
    assert len(receiver.messages) == 1


def test_it_is_tried_again_with_the_same_id_and_a_new_time(till, receiver):
    added = add(till, receiver.url)
    receiver.instead = lambda _: say(b"busy", 500)
    till.shop.invoice()
    deliver(till)
    till.clock.move(seconds=4)
    assert deliver(till) == (0, 0)
    till.clock.move(seconds=2)
    receiver.instead = lambda _: say(b"", 204)
    assert deliver(till) == (1, 0)
    first, second = receiver.messages
    assert (first.id, first.body) == (second.id, second.body)
    assert first.headers["webhook-timestamp"] != second.headers["webhook-timestamp"]
    assert all(message.is_signed_by(added.secret or "") for message in receiver.messages)
    (row,) = deliveries(till, added)
    assert (row["state"], row["attempts"], row["status"]) == ("delivered", 2, 204)


def test_after_ten_attempts_it_is_given_up_and_can_be_sent_again(till, receiver):
    added = add(till, receiver.url)
    receiver.instead = lambda _: say(b"", 500)
    till.shop.invoice()
    for _ in range(12):
        deliver(till)
        till.clock.move(hours=9)  # less than five days in all
    (row,) = deliveries(till, added)
    while row["state"] == "waiting":
        till.clock.move(hours=2)
        deliver(till)
        (row,) = deliveries(till, added)
    assert (row["state"], row["attempts"]) == ("given up", 10)
    receiver.instead = lambda _: say(b"", 204)
    assert deliver(till) == (0, 0)
    assert endpoints.resend_failed(till.shop.service.db, added.id, till.clock()) == 1
    assert deliver(till) == (1, 0)
    assert len(set(receiver.ids)) == 1 and len(receiver.ids) == 11


def test_gone_disables_at_once_and_a_resend_enables(till, receiver):
    added = add(till, receiver.url)
    receiver.instead = lambda _: say(b"", 410)
    till.shop.invoice()
    assert deliver(till) == (0, 1)
    assert endpoint(till, added)["disabled_reason"] == "it answered 410 Gone"
    till.shop.link()
    till.clock.move(hours=1)
    assert deliver(till) == (0, 0)
    assert found(till)[f"webhook {added.id}"].colour == "yellow"
    receiver.instead = lambda _: say(b"", 204)
    since = endpoint(till, added)["since_number"]
    assert endpoints.resend_since(till.shop.service.db, added.id, since, till.clock()) == 2
    assert deliver(till) == (2, 0)
    assert endpoint(till, added)["disabled_at"] is None
    assert found(till)["webhooks"].colour == "green"


def test_five_days_without_success_disable_and_the_doctor_says_so_before(till):
    added = add(till, "http://127.0.0.1:9/")
    for hours in (0, 1, 118):
        till.clock.move(hours=hours)
        till.shop.invoice()
        deliver(till)
    assert endpoint(till, added)["disabled_at"] is None
    assert "has taken nothing since" in found(till)[f"webhook {added.id}"].sentence
    till.clock.move(hours=2)
    till.shop.invoice()
    deliver(till)
    assert "5 days" in endpoint(till, added)["disabled_reason"]
    assert {row["state"] for row in deliveries(till, added)} == {"given up"}


def test_for_a_day_after_a_rotation_both_secrets_sign(till, receiver):
    old = add(till, receiver.url)
    new = endpoints.rotate(till.shop.service.db, old.id, till.clock())
    for hours, signed_by in ((23.9, [True, True]), (0.2, [True, False])):
        till.clock.move(hours=hours)
        till.shop.invoice()
        assert deliver(till) == (1, 0)
        message = receiver.messages[-1]
        assert [message.is_signed_by(one.secret or "") for one in (new, old)] == signed_by
        assert len(message.signatures) == sum(signed_by)


def test_a_dead_endpoint_gets_everything_afterwards_once_each(till, receiver):
    """An hour of checks; what comes meanwhile waits, and the check is complete each time."""
    with Receiver() as gone:
        dead = add(till, gone.url)
        port = gone.port
    add(till, receiver.url)
    for minute in range(60):
        till.clock.move(minutes=1)
        if minute % 10 == 0:
            till.pay(till.shop.invoice())
            till.mine()
        assert till.check().complete
        deliver(till)
    told = [event.id for event in events(till)]
    assert len(told) == 18 and sorted(receiver.ids) == sorted(told)
    assert endpoint(till, dead)["failing_since"] is not None
    with Receiver(port) as alive:
        till.clock.move(hours=3)
        while deliver(till) != (0, 0):
            till.clock.move(minutes=1)
        assert sorted(alive.ids) == sorted(told)
        assert all(message.is_signed_by(dead.secret or "") for message in alive.messages)
    assert endpoint(till, dead)["failing_since"] is None
    assert len(receiver.ids) == 18
    assert {row["state"] for row in deliveries(till, dead)} == {"delivered"}


def test_what_was_sent_and_not_noted_is_sent_again_with_the_same_id(till, receiver):
    """A run was killed between the two: the receiver knows it by its id."""
    add(till, receiver.url)
    till.shop.invoice()
    one = deliverer(till)

    def die(*_: object) -> None:
        raise KeyboardInterrupt

    one._note = die  # type: ignore[method-assign,assignment]
    with pytest.raises(KeyboardInterrupt):
        one.run()
    assert deliver(till) == (1, 0)
    assert len(receiver.ids) == 2 and len(set(receiver.ids)) == 1


def test_an_answer_that_comes_when_somebody_else_has_delivered_changes_nothing(till):
    added = add(till, "http://127.0.0.1:9/")
    till.shop.invoice()
    taken = Answer(True, 200, "")

    def slow(*_: object) -> Answer:
        other = Deliverer(db, Resources(""), till.clock, lambda *_: taken)
        thread = threading.Thread(target=lambda: (other.run(), db.close()))
        thread.start()
        thread.join()
        return Answer(False, 500, "late")

    db = till.shop.service.db
    assert Deliverer(db, Resources(""), till.clock, slow).run() == Delivered(0, 1)
    (row,) = deliveries(till, added)
    assert (row["state"], row["attempts"], row["answer"]) == ("delivered", 1, "")


def test_a_success_still_in_flight_does_not_begin_anew_after_a_failure(till, receiver):
    """Of four at once the first is told 410, the others are taken after that was noted."""
    added = add(till, receiver.url)
    for _ in range(9):
        till.shop.link()

    def answer(message: Message) -> Reply:
        place = receiver.messages.index(message)
        if place == 1:
            return say(b"", 410)
        if place > 1:
            until(lambda: endpoint(till, added)["disabled_at"], "the endpoint to be disabled")
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
    db, later = till.shop.service.db, till.clock() + timedelta(days=31)
    assert retention.forget_old(db, later) == 0
    receiver.instead = lambda _: say(b"", 204)
    till.clock.move(minutes=1)
    assert deliver(till)[1] == 0
    deliver(till)
    assert retention.forget_old(db, later) == 1  # the newest stays
    assert till.shop.sql("SELECT count(*) FROM webhook_delivery").fetchone()[0] == 1


def test_a_spoiled_event_keeps_no_other_back(till, receiver):
    added = add(till, receiver.url)
    till.shop.invoice()
    till.shop.link()
    till.shop.sql("UPDATE public_event SET state = '{' WHERE kind = 'invoice.created'")
    assert deliver(till) == (1, 0)
    assert receiver.kinds == ["payment_link.created"]
    assert [row["state"] for row in deliveries(till, added)] == ["delivered", "given up"]
    assert endpoint(till, added)["failing_since"] is None


def test_metrics_count_attempts_and_tell_how_long_something_waits(till, receiver):
    add(till, receiver.url)
    receiver.instead = lambda _: say(b"", 500)
    till.shop.invoice()
    deliver(till)
    till.clock.move(minutes=2)
    shown = figures(till.shop)
    assert shown["btcpay_webhook_deliveries_total{result=failed}"] == 1
    assert shown["btcpay_webhook_waiting_seconds"] == 120
    receiver.instead = lambda _: say(b"", 204)
    deliver(till)
    shown = figures(till.shop)
    assert shown["btcpay_webhook_deliveries_total{result=delivered}"] == 1
    assert shown["btcpay_webhook_waiting_seconds"] == 0


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
    "a header in it": ("https://shop.example/\r\nX-A: b", "signet", False),
    "a space in it": ("https://shop.example/a b", "signet", False),
    "another host before a backslash": (r"http://shop.example\@127.0.0.1/", "mainnet", False),
    "half an IPv6 address": ("https://[::1", "signet", False),
    "a port that there is not": ("https://shop.example:99999/", "signet", False),
    "a port that is no number": ("https://shop.example:http/", "signet", False),
}


@pytest.mark.parametrize("case", URLS.values(), ids=URLS)
def test_urls_that_are_told(case):
    url, name, is_taken = case
    network = NETWORKS[name]
    refuse: Callable[[], None] = lambda: endpoints.refuse_url(url, network)  # noqa: E731
    if is_taken:
        refuse()
    else:
        with pytest.raises(CommandError):
            refuse()
