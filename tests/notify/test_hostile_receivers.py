"""A receiver that hangs, drips, floods or redirects changes nothing for the others."""

import threading
import time
import tracemalloc
from collections.abc import Callable

import pytest

from btcpay.notify import receivers
from btcpay.notify.events import sample_event
from btcpay.notify.in_flight import MOST_AT_ONCE, MOST_FAILING
from btcpay.notify.outbox import Outbox, new_send
from btcpay.notify.outcome import Answer
from btcpay.notify.transport import MAX_ANSWER_BYTES
from btcpay.notify.transports import new_secret
from btcpay.settings import settings
from btcpay.values.times import utc_now
from schemas.resources import Resources
from storage import models
from storage.queries import deliveries
from storage.queries.receivers import WEBHOOK
from storage.statement import blank
from tests.support.builders import until
from tests.support.fake_esplora import (
    Reply,
    dripping,
    dropped,
    endless_head,
    say,
    silent,
    truncated,
)
from tests.support.receiver import Receiver

TAKEN = Answer(True, 200, "")
# where a time-out is expected, and where none is
HASTY_S = 0.5
PATIENT_S = 60.0


def attempt(url, timeout_s=PATIENT_S):
    """One event to that URL."""
    to = blank(models.Receiver, transport=WEBHOOK, url=url, secret=new_secret())
    event = sample_event(Resources(""), 1, utc_now())
    return new_send(settings.read({}), timeout_s)(to, event, utc_now())


def endless(handler):
    """Promises 4 GB, and sends them for as long as somebody reads."""
    handler.close_connection = True
    handler.send_response(200)
    handler.send_header("Content-Length", str(4 << 30))
    handler.end_headers()
    for _ in range(4096):
        handler.wfile.write(b"a" * (1 << 20))


OK = b"HTTP/1.1 200 OK\r\nContent-Length: 50000\r\n\r\n"
TIMEOUTS_S = {"hangs": HASTY_S, "drips a head": HASTY_S}
# The receiver's behaviour, whether it takes the event, and the words that are kept of it.
REPLIES: dict[str, tuple[Callable[[threading.Event], Reply], bool, str]] = {
    "hangs": (silent, False, "took longer than 0.5 s"),
    "drips a head": (
        lambda e: dripping(b"HTTP/1.1 200 OK\r\n", b"X: y\r\n", e),
        False,
        "took",
    ),
    "drips a body": (lambda e: dripping(OK, b" ", e), True, ""),
    "sends headers without end": (lambda _: endless_head, False, "could not be asked"),
    "hangs up": (lambda _: dropped, False, "could not be asked"),
    "breaks off in its body": (lambda _: truncated(b"thanks"), True, "thanks"),
    "speaks no HTTP": (lambda e: dripping(b"220 smtp ready\r\n", b"", e), False, ""),
    "redirects": (lambda _: say(b"", 307, Location="/y"), False, ""),
    "redirects to a file": (
        lambda _: say(b"", 302, Location="file:///etc/passwd"),
        False,
        "",
    ),
    "answers no text": (lambda _: say(b"\xff\x00\x1b[31m"), True, "\ufffd\x1b[31m"),
}


@pytest.mark.parametrize("name", REPLIES)
def test_what_a_receiver_does_is_an_answer_in_time(receiver, released, name):
    make, is_taken, text = REPLIES[name]
    receiver.instead = lambda _: make(released)
    began_s = time.monotonic()
    answer = attempt(receiver.url, TIMEOUTS_S.get(name, PATIENT_S))
    assert time.monotonic() - began_s < 20
    assert answer.is_taken == is_taken
    assert text in answer.text.strip(" ") and len(answer.text) <= MAX_ANSWER_BYTES
    assert "hunter2" not in answer.text and len(receiver.messages) == 1


def test_nothing_is_kept_of_a_flood(receiver):
    receiver.instead = lambda _: endless
    tracemalloc.start()
    answer = attempt(receiver.url)
    assert answer.is_taken and answer.text == "a" * MAX_ANSWER_BYTES
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 8 << 20


@pytest.mark.parametrize(
    "host", ["127.0.0.1:9", "nobody.invalid"], ids=["closed", "unknown"]
)
def test_nobody_there_is_an_answer_too(host):
    answer = attempt(f"http://{host}/x?token=hunter2")
    assert (answer.is_taken, answer.status) == (False, None)
    assert "could not be asked" in answer.text and "hunter2" not in answer.text


def add(shop, url):
    return receivers.add(
        shop.service.db, shop.merchant_id, url, None, [], shop.clock()
    ).id


def outbox(shop, send=None):
    service = shop.service
    send = send or new_send(service.settings, PATIENT_S)
    return Outbox(service.db, service.settings, shop.clock, send)


def waiting(shop, endpoint_id):
    rows = shop.service.db.rows(deliveries.LIST, receiver_id=endpoint_id, limit=1000)
    return sum(row.state == "waiting" for row in rows)


def test_those_that_hang_delay_no_other(shop, receiver, released, caplog):
    """More of them than may be tried at once; each holds up one attempt of its own.

    They are at one host, and urllib3 warns of each connection that it cannot keep.
    """
    with Receiver() as hanging:
        hanging.instead = lambda _: silent(released)
        bad = [add(shop, hanging.url) for _ in range(MOST_FAILING + 4)]
        good = add(shop, receiver.url)
        for _ in range(30):
            shop.link()

        def run():
            outbox(shop, new_send(shop.service.settings, timeout_s=60)).run(run_s=120)
            shop.service.db.close()

        running = threading.Thread(target=run, daemon=True)
        running.start()
        until(lambda: len(receiver.messages) == 30, "all that is for the good one")
        assert running.is_alive()
        released.set()
        running.join(60)
        assert not running.is_alive()
        assert len(hanging.messages) == len(bad)
        assert waiting(shop, good) == 0 and all(waiting(shop, one) == 30 for one in bad)
        # Now they are known: of them all only a few are tried at once.
        shop.clock.move(minutes=1)
        result = outbox(shop).run()
        assert (result.delivered, result.failed) == (0, len(bad))
        assert MOST_FAILING < len(bad) < MOST_AT_ONCE
    assert "discarding connection" not in caplog.text


def test_a_run_has_an_end_whatever_a_receiver_does_and_no_answer_is_a_failure(
    shop, released, monkeypatch
):
    """Else who never answers would never be known for it: not failing, and never given up.

    So is a name server that does not answer, for which there is no time-out.
    """
    bad = add(shop, "http://127.0.0.1:9/")
    db = shop.service.db
    shop.link()
    monkeypatch.setattr("btcpay.notify.outbox.ATTEMPT_S", 0.5)
    began_s = time.monotonic()
    result = outbox(shop, lambda *_: released.wait(60) and TAKEN).run(run_s=1)
    assert time.monotonic() - began_s < 20
    assert (result.delivered, result.failed) == (0, 1) and waiting(shop, bad) == 1
    assert receivers.find(db, bad).failing_since is not None
    (row,) = db.rows(deliveries.LIST, receiver_id=bad, limit=2)
    assert (row.attempts, row.answer) == (1, "there was no answer when the run ended")


def test_a_cookie_is_not_sent_back(shop, receiver):
    receiver.instead = lambda _: say(b"", 204, **{"Set-Cookie": "a=b; Path=/"})
    add(shop, receiver.url)
    shop.link(), shop.link()
    assert outbox(shop).run().delivered == 2
    assert all("cookie" not in message.headers for message in receiver.messages)
