"""One GET: complete within its time and size, or an error that says why and betrays no secret."""

import gzip
import threading
import time
from decimal import Decimal

import pytest

from btcpay import __version__
from btcpay.http import http_client
from btcpay.values.errors import FetchError, Unreachable
from tests.support.builders import until
from tests.support.fake_esplora import FakeEsplora, dripping, dropped, say


def get(server, path="/x", timeout_s=60, max_bytes=100):
    wanted = http_client.Response(bytes, max_bytes)
    return http_client.Session().get(server.root + path, timeout_s, wanted)


def test_an_answer_of_exactly_the_limit_is_read_and_one_of_a_byte_more_refused(server):
    server.instead = lambda _: say(b"a" * 100)
    assert get(server) == b"a" * 100
    server.instead = lambda _: say(b"a" * 101)
    with pytest.raises(FetchError, match="more than 100 bytes"):
        get(server)


def test_a_request_names_the_product_and_its_version(server):
    agents = []

    def reply(handler):
        agents.append(handler.headers["User-Agent"])
        say(b"there")(handler)

    server.instead = lambda _: reply
    assert get(server) == b"there"
    assert agents == [f"blocktill/{__version__}"]


@pytest.mark.parametrize("status", [201, 204, 206, 304, 400, 401, 404, 429, 500, 503])
def test_only_200_is_an_answer_and_the_error_carries_the_status(server, status):
    server.instead = lambda _: say(b"", status)
    with pytest.raises(FetchError, match=str(status)) as caught:
        get(server)
    assert caught.value.status == status


def test_a_redirect_is_no_answer_and_is_not_followed(server):
    server.instead = lambda path: (
        say("", 302, Location="/y") if path == "/x" else say("there")
    )
    with pytest.raises(FetchError, match="HTTP 302"):
        get(server)
    assert len(server.asked) == 1


def test_an_answer_that_is_compressed_unasked_is_refused(server):
    server.instead = lambda _: say(
        gzip.compress(b"there"), **{"Content-Encoding": "gzip"}
    )
    with pytest.raises(FetchError, match="compressed"):
        get(server)


def test_the_message_never_holds_the_query(server):
    for reply in (say("", 500), dropped, say(b"a" * 101)):
        server.instead = lambda _, reply=reply: reply
        with pytest.raises(FetchError) as caught:
            get(server, "/x?token=hunter2")
        assert "hunter2" not in str(caught.value)


def test_the_message_says_why_nobody_answered():
    with pytest.raises(Unreachable, match="^could not be asked: Connection refused$"):
        http_client.Session().get(
            "http://127.0.0.1:9/", 20, http_client.Response(bytes, 100)
        )


SLOW = {
    "a body of known length": (
        b"HTTP/1.1 200 OK\r\nContent-Length: 50000\r\n\r\n",
        b" ",
    ),
    "a body of unknown length": (b"HTTP/1.1 200 OK\r\n\r\n", b" "),
    "chunks": (b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n", b"1\r\n \r\n"),
    "a chunk's extension": (
        b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5;a",
        b"a",
    ),
    "trailers": (
        b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n",
        b"A: b\r\n",
    ),
    "a redirect's body": (b"HTTP/1.1 302 Found\r\nLocation: /y\r\n\r\n", b" "),
    "one long header": (b"HTTP/1.1 200 OK\r\nX-A: ", b"b"),
    "headers": (b"HTTP/1.1 200 OK\r\n", b"X-A: b\r\n"),
}


@pytest.mark.parametrize(
    "slow", [pytest.param(s, id=f"{name} drip") for name, s in SLOW.items()]
)
def test_an_answer_that_drips_on_is_left_at_the_time_out(server, released, slow):
    server.instead = lambda _: dripping(*slow, released)
    began_s = time.monotonic()
    with pytest.raises(FetchError):
        get(server, timeout_s=0.3, max_bytes=1_000_000)
    assert time.monotonic() - began_s < 20


@pytest.mark.parametrize(
    "slow", [pytest.param(SLOW[n], id=n) for n in ("headers", "chunks")]
)
def test_a_call_that_was_left_behind_ends_though_the_server_drips_on(
    server, released, slow
):
    server.instead = lambda _: dripping(*slow, released)
    before = set(threading.enumerate())
    with pytest.raises(FetchError):
        get(server, timeout_s=0.3, max_bytes=1_000_000)
    until(
        lambda: not set(threading.enumerate()) - before,
        "both threads to end",
        timeout_s=20,
    )


def test_a_head_has_an_end(server):
    halves = iter(["a" * 30_000, "a" * 33_000])
    server.instead = lambda _: say(
        b"there", **dict.fromkeys(("X-A", "X-B"), next(halves))
    )
    assert get(server) == b"there"
    with pytest.raises(Unreachable):
        get(server)


@pytest.mark.parametrize("pieces", [1, 7, 128, 129, 1000, 65_536])
def test_what_is_longer_than_any_value_is_cut_as_it_comes(server, pieces):
    texts = [b"%d" % n * n for n in (1, 64, 127, 128, 129, 3_000)]
    body = b"[" + b",".join(b'"%s"' % text for text in texts) + b"]"

    def reply(handler):
        handler.send_response(200)
        handler.send_header("Content-Length", str(len(body)))
        handler.end_headers()
        for start in range(0, len(body), pieces):
            handler.wfile.write(body[start : start + pieces])
            handler.wfile.flush()

    server.instead = lambda _: reply
    wanted = http_client.Response(bytes, len(body), max_kept=2_000)
    found = http_client.Session().get(f"{server.root}/x", 60, wanted)
    assert found == b"[" + b",".join(b'"%s"' % text[:128] for text in texts) + b"]"


def test_what_is_left_of_an_answer_is_bounded_too(server):
    server.instead = lambda _: say(b"[" + b"[]," * 99 + b"[]]")
    wanted = http_client.Response(bytes, 1_000, max_kept=300)
    with pytest.raises(FetchError, match="more than 300 bytes of short values"):
        http_client.Session().get(f"{server.root}/x", 5, wanted)


def test_long_answers_are_held_one_at_a_time_and_short_ones_do_not_wait(server):
    server.instead = lambda path: say(b"a" * (1_000_000 if path == "/long" else 1_000))
    turn = threading.Lock()

    def make(body):
        short = http_client.Session().get(
            f"{server.root}/short", 5, text, long_answers=turn
        )
        with pytest.raises(Unreachable):
            http_client.Session().get(
                f"{server.root}/long", 0.3, text, long_answers=turn
            )
        return len(body) + len(short)

    text = http_client.Response(bytes, 2_000_000)
    url = f"{server.root}/long"
    longest = http_client.Response(make, 2_000_000)
    assert http_client.Session().get(url, 20, longest, long_answers=turn) == 1_001_000
    assert len(http_client.Session().get(url, 20, text, long_answers=turn)) == 1_000_000


def test_a_certificate_that_nobody_vouches_for_is_refused(certified):
    with FakeEsplora() as fake:
        fake.secure(certified)
        fake.instead = lambda _: say(b"there")
        with pytest.raises(Unreachable, match="certificate verify failed"):
            get(fake)


def test_numbers_stay_exact():
    assert http_client.parse_json(b"[0.1, 1e2, 3]") == [Decimal("0.1"), Decimal(100), 3]


@pytest.mark.parametrize(
    "body",
    [b"", b"{", b"\xff", b"[" * 100_000, b"9" * 5000, b"<html>", b"[1,]", b"'a'"],
)
def test_what_is_no_json_is_refused(body):
    with pytest.raises(FetchError, match="no JSON"):
        http_client.parse_json(body)
