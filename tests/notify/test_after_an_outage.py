"""After an outage the oldest comes first; in one order nothing overtakes; poison stops no other."""

import random
import time
from collections import defaultdict
from contextlib import ExitStack

import pytest

from btcpay.notify import receivers
from btcpay.notify.outbox import RUN_S, Outbox, new_send
from btcpay.notify.outcome import ATTEMPT_S, Answer
from tests.support.fake_esplora import Terminal, dropped, say
from tests.support.ports import free_port
from tests.support.receiver import Receiver

pytestmark = [pytest.mark.both_databases, pytest.mark.slow]


def add(till, url):
    shop = till.shop
    return receivers.add(shop.service.db, shop.merchant_id, url, None, (), till.clock())


def deliver(till, timeout_s=20, run_s=RUN_S):
    send = new_send(till.settings, timeout_s)
    result = Outbox(till.shop.service.db, till.settings, till.clock, send).run(run_s)
    return result.delivered, result.failed


def order_of_events(till):
    """By the id of each event, from the oldest on, what it is about."""
    columns = "SELECT id, COALESCE(invoice_id, payment_link_id, resource_id) "
    return dict(till.shop.sql(columns + "FROM public_event ORDER BY seq").fetchall())


def by_order(till, ids):
    """The events of each order in the order in which they were first heard."""
    orders = order_of_events(till)
    heard = defaultdict(list)
    for id in dict.fromkeys(ids):
        heard[orders[id]].append(id)
    return heard


def take(_message):
    return say(b"", 204)


def refuse(_message):
    return say(b"not now", 503)


def hang_up(_message):
    return dropped


AWAY = {"nothing listens": None, "it answers 503": refuse, "it hangs up": hang_up}


@pytest.mark.parametrize("hours", [1, 12], ids=["an hour", "twelve hours"])
@pytest.mark.parametrize("away", AWAY)
def test_forty_orders_while_a_receiver_is_away_come_from_the_oldest_on(
    till, away, hours
):
    port = free_port()
    added = add(till, f"http://127.0.0.1:{port}/hooks")
    with ExitStack() as stack:
        if how := AWAY[away]:
            receiver = stack.enter_context(Receiver(port))
            receiver.instead = how
        paid = till.shop.invoice(expires_in_hours=24)
        for number in range(39):
            if number == 20:
                till.confirm(paid)
            deliver(till)
            till.clock.move(minutes=hours * 60 / 39)
            till.shop.invoice(expires_in_hours=24)
        waiting = [*order_of_events(till)]
        assert len(waiting) > 40
        if how is None:
            receiver = stack.enter_context(Receiver(port))
        receiver.messages.clear()
        receiver.instead = take
        till.clock.move(minutes=30)
        assert deliver(till) == (len(waiting), 0)
    assert receiver.ids[0] == waiting[0]
    assert sorted(receiver.ids) == sorted(waiting)
    assert by_order(till, receiver.ids) == by_order(till, waiting)
    db = till.shop.service.db
    assert receivers.find(db, added.id).failing_since is None


def test_a_new_event_asks_a_failing_receiver_at_once_with_the_oldest(till, receiver):
    add(till, receiver.url)
    receiver.instead = refuse
    oldest = till.shop.link()["id"]
    deliver(till)
    till.clock.move(minutes=1)
    receiver.instead = take
    till.shop.link()
    assert deliver(till) == (2, 0)
    assert oldest in receiver.messages[1].body.decode()


POISON = {"it answers 500": lambda _message: say(b"", 500), "it hangs up": hang_up}


@pytest.mark.parametrize("poison", POISON)
def test_an_event_that_alone_is_refused_twice_stops_no_other_order(
    till, receiver, poison
):
    add(till, receiver.url)
    answer = POISON[poison]
    poisoned = till.shop.invoice()["id"]
    receiver.instead = lambda message: (
        answer(message) if poisoned.encode() in message.body else take(message)
    )
    others = {till.shop.invoice()["id"] for _ in range(5)}
    for _ in range(3):
        deliver(till)
        till.clock.move(minutes=30)
    taken = [
        message
        for message in receiver.messages
        if poisoned.encode() not in message.body
    ]
    assert {message.json["data"]["invoice"]["id"] for message in taken} == others
    assert len(taken) == 5


def test_an_event_that_takes_the_whole_attempt_stops_no_other_order(till):
    """Nothing else begins in a run in which the oldest took all of the time."""
    add(till, "http://127.0.0.1:9/")
    poisoned = till.shop.invoice()["id"]
    for _ in range(3):
        till.shop.invoice()
    taken = []
    may_begin_s = 2  # a busy machine needs some of it before the first attempt

    def send(_receiver, event, _at):
        if event.data["invoice"]["id"] == poisoned:
            time.sleep(may_begin_s)
            return Answer(False, None, "took longer than 10 s", may_go_on=True)
        taken.append(event.id)
        return Answer(True, 204, "")

    for _ in range(4):
        outbox = Outbox(till.shop.service.db, till.settings, till.clock, send)
        outbox.run(ATTEMPT_S + may_begin_s)
        till.clock.move(minutes=30)
    assert len(taken) == 3


def test_within_an_order_nothing_comes_before_what_is_refused(till, receiver):
    add(till, receiver.url)
    receiver.instead = lambda message: (
        refuse(message) if b"invoice.created" in message.body else take(message)
    )
    invoice = till.shop.invoice(expires_in_hours=24)
    till.confirm(invoice)
    till.shop.link()
    for _ in range(4):
        deliver(till)
        till.clock.move(minutes=30)
    assert set(receiver.kinds) == {"invoice.created", "payment_link.created"}
    receiver.messages.clear()
    receiver.instead = take
    till.clock.move(hours=30)
    deliver(till)
    assert receiver.ids == [
        id for id, about in order_of_events(till).items() if about == invoice["id"]
    ]
    assert receiver.kinds[0] == "invoice.created" and "invoice.paid" in receiver.kinds


def test_a_command_hears_of_an_order_in_order(till, tmp_path):
    """It fails for as long as a file is there, which is its outage."""
    away = tmp_path / "away"
    heard = tmp_path / "heard"
    away.touch()
    script = f"test ! -e {away} && echo $EVENT_TYPE >> {heard}"
    command = f"sh -c '{script}'"
    shop = till.shop
    receivers.add(shop.service.db, shop.merchant_id, None, command, (), till.clock())
    till.confirm(till.shop.invoice(expires_in_hours=24))
    for _ in range(5):
        deliver(till)
        till.clock.move(minutes=30)
    away.unlink()
    deliver(till)
    kinds = [
        kind for (kind,) in till.shop.sql("SELECT kind FROM public_event ORDER BY seq")
    ]
    assert heard.read_text().split() == kinds


@pytest.mark.parametrize("seed", range(6))
def test_in_random_histories_no_order_is_told_out_of_order_and_all_is_told(till, seed):
    """Receivers go and come, refuse some events some times, and lose answers."""
    chance = random.Random(seed)
    add(till, "http://127.0.0.1:9/")
    state = {"is_away": False, "refuses": 0.0}
    taken = []
    open_orders = []

    def send(_receiver, event, _at):
        if state["is_away"] or chance.random() < state["refuses"]:
            return Answer(False, None if state["is_away"] else 500, "no")
        taken.append(event.id)
        is_lost = chance.random() < state["refuses"] / 4
        return Answer(not is_lost, None if is_lost else 204, "", may_go_on=is_lost)

    def run():
        came = len(taken)
        waiting = till.shop.sql(
            "SELECT about, held_until FROM delivery WHERE next_ms IS NOT NULL"
            " ORDER BY event_seq LIMIT 1"
        ).fetchone()
        failing = till.shop.sql("SELECT failing_since FROM receiver").fetchone()[0]
        Outbox(till.shop.service.db, till.settings, till.clock, send).run()
        may_have_heard = waiting and waiting[1] is not None
        if (
            failing
            and not may_have_heard
            and state["refuses"] == 0
            and len(taken) > came
        ):
            assert taken[came] == waiting[0]

    for _ in range(60):
        step = chance.choice(["order", "order", "cancel", "away", "refuses", "wait"])
        if step == "order":
            open_orders.append(till.shop.invoice(expires_in_hours=24)["id"])
        elif step == "cancel" and open_orders:
            id = open_orders.pop(chance.randrange(len(open_orders)))
            Terminal(till).run("invoice", "cancel", id)
        elif step == "away":
            state["is_away"] = not state["is_away"]
        elif step == "refuses":
            state["refuses"] = chance.choice([0, 0, 0.2, 0.6])
        till.clock.move(minutes=chance.choice([1, 3, 10, 40]))
        run()
    state.update(is_away=False, refuses=0.0)
    for _ in range(40):
        till.clock.move(minutes=30)
        run()
    every = [*order_of_events(till)]
    assert sorted(set(taken)) == sorted(every)
    assert by_order(till, taken) == by_order(till, every)
