"""When a request may be handled: tables of bytes, whole and cut at every place."""

import pytest

from btcpay.web.server.request_framing import (
    BEYOND_BYTES,
    MOST_HEAD_BYTES,
    MOST_LINE_BYTES,
    Arriving,
)

MOST = 100  # bytes of a body
HEAD = b"POST / HTTP/1.1\r\nHost: x\r\n"
CHUNKED = HEAD + b"Transfer-Encoding: chunked\r\n\r\n"

WHOLE = [
    pytest.param(b"GET / HTTP/1.1\r\n\r\n", id="no headers"),
    pytest.param(HEAD + b"\r\n", id="no body"),
    pytest.param(HEAD + b"Content-Length: 0\r\n\r\n", id="an empty body"),
    pytest.param(HEAD + b"content-length:5 \r\n\r\nabcde", id="a body of its length"),
    pytest.param(HEAD + b"Content-Length: 100\r\n\r\n" + b"a" * MOST, id="the longest body"),
    pytest.param(CHUNKED + b"0\r\n\r\n", id="no chunk but the last"),
    pytest.param(CHUNKED + b"3\r\nabc\r\nA;x=y\r\n0\r\n\r\n01234\r\n0\r\n\r\n", id="two chunks"),
    pytest.param(CHUNKED + b"1\r\na\r\n000\r\nA: b\r\nC: d\r\n\r\n", id="chunks and trailers"),
]
REFUSED = [
    pytest.param(b"a" * MOST_HEAD_BYTES, False, id="a head without an end"),
    pytest.param(HEAD + b"Content-Length: 101\r\n\r\n", True, id="a body beyond the limit"),
    pytest.param(
        HEAD + b"Content-Length: " + b"9" * 5000 + b"\r\n\r\n", True, id="a length beyond numbers"
    ),
    pytest.param(HEAD + b"Transfer-Encoding: gzip\r\n\r\n", True, id="another coding"),
    pytest.param(CHUNKED + b"zz\r\n", True, id="a size that is no number"),
    pytest.param(CHUNKED + b"1" * MOST_LINE_BYTES, True, id="a size without an end"),
    pytest.param(
        CHUNKED + b"fffff\r\n" + b"a" * (MOST + BEYOND_BYTES), True, id="a chunk beyond the limit"
    ),
    pytest.param(
        CHUNKED + b"32\r\n%s\r\n" % (b"a" * 50) * 42 + b"32\r\n" + b"a" * 48,
        True,
        id="chunks that are too much together",
    ),
    pytest.param(
        CHUNKED + b"0\r\n" + b"A: b\r\n" * (MOST_HEAD_BYTES // 6 + 1),
        True,
        id="trailers without an end",
    ),
]


@pytest.mark.parametrize("sent", WHOLE)
def test_a_request_is_ready_with_its_last_byte_and_not_before(sent: bytes) -> None:
    for cut in range(len(sent)):
        arriving = Arriving(MOST)
        for piece in (sent[:cut], sent[cut:-1]):
            arriving.take(piece)
            assert not arriving.is_ready
        arriving.take(sent[-1:])
        assert arriving.is_ready and arriving.is_whole and arriving.data == sent


@pytest.mark.parametrize("sent", WHOLE)
def test_what_follows_belongs_to_the_next_request(sent: bytes) -> None:
    arriving = Arriving(MOST)
    arriving.take(sent + b"GET /next")
    assert arriving.is_whole and arriving.data == sent + b"GET /next"


@pytest.mark.parametrize(("sent", "has_head"), REFUSED)
def test_what_will_be_refused_is_waited_for_no_longer(sent: bytes, has_head: bool) -> None:
    arriving = Arriving(MOST)
    arriving.take(sent[:-1])
    assert not arriving.is_ready
    arriving.take(sent[-1:])
    assert arriving.is_ready and not arriving.is_whole and arriving.has_head is has_head


def test_a_drip_of_bytes_costs_no_more_than_the_bytes() -> None:
    """Looked through anew at each byte, a megabyte of crumbs would take minutes."""
    arriving, chunk = Arriving(65_536), b"1\r\na\r\n"
    arriving.take(CHUNKED)
    for byte in chunk * 16_000:
        arriving.take(bytes([byte]))
    assert not arriving.is_ready


@pytest.mark.parametrize(
    ("header", "expects"), [(b"Expect: 100-continue", True), (b"X-Expect: 100-continue", False)]
)
def test_a_client_that_wants_to_be_told_to_go_on_is_noticed(header: bytes, expects: bool) -> None:
    arriving = Arriving(MOST)
    arriving.take(HEAD + header + b"\r\nContent-Length: 5\r\n\r\n")
    assert arriving.expects_continue is expects and not arriving.is_ready
