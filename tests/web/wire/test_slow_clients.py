"""Clients that drip, fall silent or never read: a bare service serves the others meanwhile."""

import contextlib
import itertools
import socket
import threading
import time

import pytest

from tests.support.wire import answered, chunked

pytestmark = pytest.mark.slow

CLIENTS = 60  # the service has 64 threads
POST = (
    b"POST /api/v1/invoices HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\n"
)
SOON_S = 20  # they stay for as long as it takes
IDLE = 1_000


@contextlib.contextmanager
def clients(live, begin, drip=b"", buffer=0, count=CLIENTS):
    """So many connections that send `begin`, then the bytes of `drip` again and again, one a while.

    They read nothing; with `buffer`, their kernels keep no more than that for them.
    """
    with contextlib.ExitStack() as stack:
        opened = []
        for _ in range(count):
            client = stack.enter_context(socket.socket())
            if buffer:
                client.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, buffer)
            client.connect(("127.0.0.1", live.port))
            client.setblocking(False)
            with contextlib.suppress(OSError):
                client.sendall(begin)
            opened.append(client)
        ended = threading.Event()

        def go_on():
            for byte in itertools.cycle(drip):
                for client in opened:
                    with contextlib.suppress(OSError):
                        client.send(bytes([byte]))
                if ended.wait(0.2):
                    return

        thread = threading.Thread(target=go_on)
        thread.start()
        try:
            yield
        finally:
            ended.set()
            thread.join()


def assert_served(live, shop):
    """Visitors who come anew, one after the other, each without a wait."""
    key = shop.issue("read")
    for _ in range(5):
        started_s = time.monotonic()
        assert live.ask("GET", "/invoices", key).status_code == 200
        assert time.monotonic() - started_s < SOON_S


@pytest.mark.parametrize(
    ("begin", "drip"),
    [
        pytest.param(b"", b"", id="say nothing"),
        pytest.param(b"GET /healthz HT", b"", id="fall silent in the first line"),
        pytest.param(b"GET /healthz HTTP/1.1\r\n", b"A: b\r\n", id="drip headers"),
        pytest.param(POST + b"Content-Length: 9000\r\n\r\n{", b" ", id="drip a body"),
        pytest.param(
            POST + b"Transfer-Encoding: chunked\r\n\r\n",
            b"1\r\n \r\n",
            id="drip chunks",
        ),
        pytest.param(
            POST + b"Content-Length: 99999\r\n\r\n{", b" ", id="drip what is too large"
        ),
        pytest.param(
            b"GET /healthz HTTP/1.1\r\nHost: x\r\n\r\n", b"", id="stay for more"
        ),
        pytest.param(
            b"GET /healthz HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n",
            b"",
            id="stay at the end",
        ),
    ],
)
def test_the_others_are_served_while_clients(live, shop, begin, drip):
    with clients(live, begin, drip):
        assert_served(live, shop)


def test_the_others_are_served_while_clients_read_nothing_of_a_large_answer(live, shop):
    for _ in range(60):
        shop.link(title="🪙" * 200, description="🪙" * 500)
    key = shop.issue("read").encode()
    asked = b"GET /api/v1/payment-links?limit=60 HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer "
    with clients(live, asked + key + b"\r\n\r\n", buffer=2048):
        assert_served(live, shop)


def test_a_thousand_idle_connections_do_not_close_the_service(live, shop):
    with clients(live, b"", count=IDLE):
        assert_served(live, shop)
        asked = b"GET /healthz HTTP/1.1\r\nHost: x\r\n\r\n"
        with clients(live, asked, count=IDLE):  # these stay when they are answered
            assert live.ask("GET", "/openapi.json").status_code == 200
            assert_served(live, shop)


def test_requests_sent_at_once_are_answered_in_their_order(live, shop):
    key = shop.issue("read").encode()
    one = (
        b"GET /api/v1/balance HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer %s\r\n%s\r\n"
    )
    answers = answered(
        live, one % (key, b"") * 5 + one % (key, b"Connection: close\r\n")
    )
    remaining = [
        line for line in answers.split(b"\r\n") if b"X-RateLimit-Remaining" in line
    ]
    assert remaining == [
        b"X-RateLimit-Remaining: %d" % left for left in range(119, 113, -1)
    ]


def test_a_client_that_waits_to_be_told_to_go_on_is_told_so_once(live, shop):
    head = (
        POST
        + b"Authorization: Bearer %s\r\nExpect: 100-continue\r\nContent-Length: 17\r\n"
    )
    with socket.create_connection(("127.0.0.1", live.port), 60) as connection:
        connection.sendall(
            head % shop.issue("write").encode() + b"Connection: close\r\n\r\n"
        )
        assert connection.recv(65536) == b"HTTP/1.1 100 Continue\r\n\r\n"
        connection.sendall(b'{"amount_usd": 5}')
        assert connection.makefile("rb").read().startswith(b"HTTP/1.1 201")


# what is left of a request must not be taken for the next


NEXT = b"GET /healthz HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n"
BAD = b"Authorization: Bearer sk_test_no\r\n"
NO_KEY = b""


def body(size, in_chunks):
    if in_chunks:
        pieces = [b" " * min(10_000, size - at) for at in range(0, size, 10_000)]
        return b"Transfer-Encoding: chunked\r\n\r\n" + chunked(*pieces)
    return b"Content-Length: %d\r\n\r\n%s" % (size, b" " * size)


BODIES = list(itertools.product((10, 65_535, 65_536, 200_000), (False, True)))


@pytest.mark.parametrize(
    ("target", "lines", "status"),
    [
        pytest.param(b"POST /api/v1/invoices", b"write", 413, id="a body that is read"),
        pytest.param(b"POST /api/v1/invoices", b"read", 403, id="a key that may not"),
        pytest.param(b"POST /api/v1/invoices", BAD, 401, id="a wrong key"),
        pytest.param(b"GET /api/v1/balance", NO_KEY, 401, id="no key"),
        pytest.param(b"POST /api/v1/nothing", b"write", 404, id="an unknown path"),
        pytest.param(b"DELETE /api/v1/balance", b"write", 405, id="a wrong method"),
        pytest.param(
            b"GET /api/v1/openapi.json", NO_KEY, 200, id="an operation without body"
        ),
        pytest.param(b"POST /link/lnk_no", NO_KEY, 404, id="a page that is not there"),
        pytest.param(b"GET /healthz", NO_KEY, 200, id="the health check"),
    ],
)
def test_an_answer_keeps_the_connection_or_says_that_it_ends(
    live, shop, target, lines, status
):
    """Body read or not: an answer that says `keep-alive` is followed by the next one."""
    if lines in (b"read", b"write"):
        lines = b"Authorization: Bearer %s\r\n" % shop.issue(lines.decode()).encode()
    head = b"%s HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\n%s" % (
        target,
        lines,
    )
    for size, in_chunks in BODIES:
        sent = head + body(size, in_chunks) + NEXT
        first, *more = answered(live, sent).split(b"HTTP/1.1 ")[1:]
        expected = status if status != 413 or size > 65_536 else 400
        assert first[:3] in (b"%d" % expected, b"429"), (size, in_chunks, first)
        assert first[:3] != b"429" or status == 401
        ends = b"\r\nConnection: close\r\n" in first
        assert [answer[:3] for answer in more] == ([] if ends else [b"200"]), (
            size,
            in_chunks,
        )


def test_who_sends_too_much_without_a_key_is_throttled_and_told_the_end(live, shop):
    sent = b"POST /api/v1/invoices HTTP/1.1\r\nHost: x\r\n" + BAD + body(200_000, False)
    for _ in range(21):
        answer = answered(live, sent)
    assert answer.startswith(b"HTTP/1.1 429") and b"\r\nConnection: close\r\n" in answer
