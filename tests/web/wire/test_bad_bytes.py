"""Nothing that a client sends is the service's fault: bytes on a socket, to the shipped server."""

import json
import time

import pytest

from tests.support.builders import Live
from tests.support.wire import answered, chunked

pytestmark = pytest.mark.slow

MAXIMUM_BODY = 65_536
ORDER = b'{"amount_usd": 5}'
NOBODY = "sk_test_" + "0" * 43
BAD_KEY = b"Authorization: Bearer " + NOBODY.encode()


def exchange(live, sent, hang_up=False):
    """Status, headers (names in lower case) and body of the answer to raw bytes."""
    head, _, body = answered(live, sent, hang_up).partition(b"\r\n\r\n")
    first, *lines = head.decode("latin-1").split("\r\n")
    headers = dict(line.split(": ", 1) for line in lines)
    return int(first.split()[1]), {name.lower(): v for name, v in headers.items()}, body


def post(shop, headers, body, path=b"/api/v1/invoices", key=""):
    """A POST with a valid key and `headers`, that asks to close the connection."""
    return (
        b"POST %s HTTP/1.1\r\nHost: x\r\nConnection: close\r\nContent-Type: application/json\r\n"
        b"Authorization: Bearer %s\r\n%s\r\n%s"
        % (path, (key or shop.issue("write")).encode(), headers, body)
    )


def get(target, *lines, method=b"GET", host=b"x"):
    head = b"\r\n".join(
        [b"%s %s HTTP/1.1" % (method, target), b"Host: " + host, *lines]
    )
    return head + b"\r\nConnection: close\r\n\r\n"


def bearer(shop):
    return b"Authorization: Bearer " + shop.issue("read").encode()


def assert_envelope(answer, status, code):
    got, headers, body = answer
    assert got == status, body
    assert headers["content-type"] == "application/json"
    assert {"x-ratelimit-limit", "x-ratelimit-remaining", "x-ratelimit-reset"} <= set(
        headers
    )
    envelope = json.loads(body)
    assert set(envelope) == {"error"} and set(envelope["error"]) == {"code", "message"}
    assert envelope["error"]["code"] == code


CHUNKED = b"Transfer-Encoding: chunked\r\n"


def test_a_chunked_body_of_the_maximum_size_is_read_and_one_byte_more_is_too_large(
    shop, live
):
    body = ORDER.ljust(MAXIMUM_BODY)
    assert exchange(live, post(shop, CHUNKED, chunked(body[:5], body[5:])))[0] == 201
    too_large = exchange(live, post(shop, CHUNKED, chunked(body, b" ")))
    assert_envelope(too_large, 413, "payload_too_large")


@pytest.mark.parametrize("size", [MAXIMUM_BODY + 1, 1_000_000, 20_000_000])
def test_a_body_beyond_the_limit_is_too_large(shop, live, size):
    for headers, body in {
        b"Content-Length: %d\r\n" % size: b" " * size,
        CHUNKED: chunked(*[b" " * 100_000] * (size // 100_000 + 1)),
    }.items():
        started_s = time.monotonic()
        answer = exchange(live, post(shop, headers, body))
        assert_envelope(answer, 413, "payload_too_large")
        assert time.monotonic() - started_s < 20


def test_a_declared_length_beyond_the_limit_is_refused_before_it_arrives(shop, live):
    answer = exchange(
        live, post(shop, b"Content-Length: 99999999999999999999\r\n", ORDER)
    )
    assert_envelope(answer, 413, "payload_too_large")


LAST = b"\r\n0\r\n\r\n"
BROKEN_CHUNKS = {
    "a size that is no number": b"zz\r\n" + ORDER + LAST,
    "a negative size": b"-1\r\n" + ORDER + LAST,
    "no size": b"\r\n" + ORDER + LAST,
    "a size too small": b"5\r\n" + ORDER + LAST,
    "no line break behind the chunk": b"11\r\n" + ORDER + b"0\r\n\r\n",
    "a size too large": b"ff\r\n" + ORDER,
    "no last chunk": b"11\r\n" + ORDER + b"\r\n",
    "an absurd size": b"ffffffffffffffffffff\r\n" + ORDER,
    "bytes over 127 as size": b"\xff\xff\r\n" + ORDER + LAST,
}


@pytest.mark.parametrize("body", BROKEN_CHUNKS.values(), ids=BROKEN_CHUNKS)
def test_a_broken_chunk_is_invalid(shop, live, body):
    sent = post(shop, CHUNKED, body)
    assert_envelope(exchange(live, sent, hang_up=True), 400, "invalid_request")


def test_a_body_cut_short_compressed_or_without_length_is_invalid(shop, live):
    gzip = b"Content-Length: 4\r\nContent-Encoding: gzip\r\n"
    cut_short = exchange(
        live, post(shop, b"Content-Length: 100\r\n", ORDER), hang_up=True
    )
    compressed = exchange(live, post(shop, gzip, b"\x1f\x8b\x08\x00"))
    without_length = exchange(live, post(shop, b"", ORDER))
    for answer in (cut_short, compressed, without_length):
        assert_envelope(answer, 400, "invalid_request")


@pytest.mark.parametrize("path", [b"/api/v1/payment-links", b"/api/v1/invoices"])
def test_a_body_that_never_comes_is_invalid_and_makes_no_link(shop, live, path):
    before = len(shop.get("/payment-links?limit=100", shop.issue("read")).json["data"])
    sent = post(shop, b"Content-Length: 2\r\n", b"", path)
    assert_envelope(exchange(live, sent, hang_up=True), 400, "invalid_request")
    after = len(shop.get("/payment-links?limit=100", shop.issue("read")).json["data"])
    assert after == before


def test_a_request_on_a_connection_kept_open_is_not_read_from_the_last_ones_rest(
    shop, live
):
    """A body that was refused unread must not become the next request."""
    smuggled = get(b"/api/v1/openapi.json")
    key = shop.issue("read").encode()
    first = (
        b"POST /api/v1/invoices HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer %s\r\n"
        b"Content-Type: application/json\r\nContent-Length: %d\r\n\r\n%s"
        % (key, len(smuggled), smuggled)
    )
    _, _, rest = exchange(live, first + get(b"/api/v1/balance"))
    assert b'"openapi"' not in rest


CREDENTIALS = [
    b"Bearer \xff\xfe",
    b"Bearer " + "ключ".encode(),
    b"Bearer " + b"x" * 8000,
]
CREDENTIALS += [
    b"\xff",
    b"Bearer a b c",
    b"Basic dXNlcjpwYXNz",
    b"Digest username=x, realm=y",
]
CREDENTIALS += [b"Bearer '; DROP TABLE api_key; --"]


@pytest.mark.parametrize("value", CREDENTIALS)
def test_junk_as_credential_is_unauthorized_or_throttled(live, value):
    status, _, _ = answer = exchange(
        live, get(b"/api/v1/balance", b"Authorization: " + value)
    )
    assert_envelope(
        answer, *((429, "rate_limited") if status == 429 else (401, "unauthorized"))
    )


@pytest.mark.parametrize(
    ("value", "accepted"),
    [
        pytest.param(b"", False, id="empty"),
        pytest.param(b"k", True, id="1 character"),
        pytest.param(b"k" * 255, True, id="255 characters"),
        pytest.param(b"k" * 256, False, id="256 characters"),
        pytest.param(b"\xff", False, id="a byte over 127"),
        pytest.param("ключ".encode(), False, id="UTF-8"),
        pytest.param(b"a b~!", True, id="blanks and signs"),
        pytest.param(b"a\tb", False, id="a tab"),
        pytest.param(b"'; DROP TABLE idempotency_key; --", True, id="SQL"),
    ],
)
def test_an_idempotency_key_is_1_to_255_printable_ascii_characters(
    shop, live, value, accepted
):
    headers = b"Content-Length: 17\r\nIdempotency-Key: %s\r\n" % value
    answer = exchange(live, post(shop, headers, ORDER))
    if accepted:
        assert answer[0] == 201
    else:
        assert_envelope(answer, 400, "invalid_request")
        assert b"Idempotency-Key" in answer[2]


FORWARDED = [
    b"203.0.113.7",
    b"junk",
    b"1, 2, 3, 4",
    b"\xff",
    b"",
    b"::1%eth0",
    b"9" * 4000,
]


@pytest.mark.parametrize("value", FORWARDED)
def test_x_forwarded_for_is_not_believed(live, value):
    before = exchange(live, get(b"/api/v1/openapi.json"))[1]["x-ratelimit-remaining"]
    exchange(live, get(b"/api/v1/balance", b"X-Forwarded-For: " + value, BAD_KEY))
    after = exchange(live, get(b"/api/v1/openapi.json"))[1]["x-ratelimit-remaining"]
    assert int(after) == max(0, int(before) - 1)


def test_x_forwarded_for_is_believed_of_as_many_proxies_as_are_trusted(shop, tmp_path):
    with Live(shop, tmp_path, BLOCKTILL_TRUSTED_PROXIES="1") as proxied:

        def remaining(forwarded):
            sent = get(b"/api/v1/balance", b"X-Forwarded-For: " + forwarded, BAD_KEY)
            return int(exchange(proxied, sent)[1]["x-ratelimit-remaining"])

        assert remaining(b"203.0.113.7") == 19
        assert remaining(b"203.0.113.8") == 19
        assert remaining(b"203.0.113.8, 203.0.113.7") == 18
        for absurd in FORWARDED[1:]:
            assert remaining(absurd) >= 0


NO_TEXT = [b"%00", b"%ff", b"%ff%fe%fd", b"%F0%9F%98%80", b"%", b"%zz", b"{id}"]
NO_ID = [b"", b"%00", b"%00" * 24, b"0" * 24 + b"%0a", b"%D9%A3" * 24, b"0" * 2000]
ATTACKS = [b"'%20OR%20'1'='1", b"1;DROP%20TABLE%20invoice"]
ATTACKS += [b"..", b"%2e%2e", b"%2e%2e%2f%2e%2e%2fetc%2fpasswd"]


@pytest.mark.parametrize("collection", [b"invoices", b"payment-links"])
def test_a_junk_id_is_not_found(shop, live, collection):
    for junk in (*NO_TEXT, *(b"inv_" + rest for rest in NO_ID), *ATTACKS):
        answer = exchange(
            live, get(b"/api/v1/%b/%b" % (collection, junk), bearer(shop))
        )
        assert_envelope(answer, 404, "not_found")


PATHS = [
    b"",
    b"/",
    b"/nothing",
    b"/balance/",
    b"/invoices/",
    b"//balance",
    b"/invoices/a/b",
]
PATHS += [b"/BALANCE", b"/balance%20", b"/%00", b"/openapi.json/"]


@pytest.mark.parametrize("path", PATHS)
def test_an_unknown_path_is_not_found_with_a_key_and_unauthorized_without(
    shop, live, path
):
    answer = exchange(live, get(b"/api/v1" + path, bearer(shop)))
    assert_envelope(answer, 404, "not_found")
    assert_envelope(exchange(live, get(b"/api/v1" + path)), 401, "unauthorized")


HOSTS = [
    b"",
    b"evil.example:99999",
    b"a..b",
    b"-",
    b"[::1",
    b"\xff",
    b"a b",
    b"x" * 300,
]


@pytest.mark.parametrize("host", HOSTS)
def test_the_name_in_host_may_be_any(shop, live, host):
    assert exchange(live, get(b"/api/v1/balance", bearer(shop), host=host))[0] == 200
    without_key = exchange(live, get(b"/api/v1/balance", host=host))
    assert_envelope(without_key, 401, "unauthorized")


@pytest.mark.parametrize(
    "path",
    [
        b"/api/v1/balance",
        b"/api/v1/invoices",
        b"/api/v1/invoices/inv_0",
        b"/api/v1/openapi.json",
    ],
)
@pytest.mark.parametrize(
    "method", [b"OPTIONS", b"PUT", b"PATCH", b"DELETE", b"TRACE", b"BREW"]
)
def test_another_method_is_not_allowed(shop, live, path, method):
    key = b"Authorization: Bearer " + shop.issue("write").encode()
    answer = exchange(live, get(path, key, method=method))
    assert_envelope(answer, 405, "invalid_request")
    assert "GET" in answer[1]["allow"]
    if not path.endswith(b"json"):
        assert answer[1]["x-ratelimit-limit"] == "120"
        assert_envelope(exchange(live, get(path, method=method)), 401, "unauthorized")


def test_head_is_get_without_a_body(shop, live):
    status, headers, body = exchange(
        live, get(b"/api/v1/balance", bearer(shop), method=b"HEAD")
    )
    assert (status, body) == (200, b"")
    assert headers["x-ratelimit-remaining"] == "119"


REFUSED = [
    b"",
    b"=",
    b"=%2B5",
    b"=+5",
    b"=5+",
    b"=%D9%A3",
    b"=1e1",
    b"=5.0",
    b"=0x5",
    b"=-5",
]
REFUSED += [b"=" + b"9" * 4000, b"=5%00", b"=5%0a", b"=%ff", b"=NaN", b"=5&limit=5"]
UNDERSTOOD = [
    b"limit[]=5",
    b"LIMIT=500",
    b"unknown=1&unknown=2",
    b"%ff=%ff&%00=%00",
    b"&&&===&",
]
UNDERSTOOD += [b"limit=005", b"limit=5&cursor=x"]


@pytest.mark.parametrize("path", [b"invoices", b"payment-links", b"payments"])
def test_a_query_string_is_understood_or_refused(shop, live, path):
    for query in REFUSED:
        answer = exchange(
            live, get(b"/api/v1/%b?limit%b" % (path, query), bearer(shop))
        )
        assert_envelope(answer, 400, "invalid_request")
        assert b"limit" in answer[2], query
    for query in UNDERSTOOD:
        sent = get(b"/api/v1/%b?%b" % (path, query), bearer(shop))
        assert exchange(live, sent)[0] == 200, query


@pytest.mark.parametrize(
    "junk", [b"%00", b"inv_%00", b"%ff", b"'--", b"x" * 3000, b"%ed%a0%80"]
)
def test_a_junk_invoice_id_in_the_filter_is_an_empty_list(shop, live, junk):
    status, _, body = exchange(
        live, get(b"/api/v1/payments?invoice_id=" + junk, bearer(shop))
    )
    assert (status, json.loads(body)) == (200, {"object": "list", "data": []})


# A request that gunicorn itself refuses never reaches the service: none of our headers.
REFUSED_BEFORE = {
    "a length that is no number": b"Content-Length: five",
    "two lengths": b"Content-Length: 17\r\nContent-Length: 18",
    "a length and chunks": b"Content-Length: 17\r\nTransfer-Encoding: chunked",
    "an unknown encoding": b"Transfer-Encoding: rot13",
    "two encodings": b"Transfer-Encoding: chunked\r\nTransfer-Encoding: gzip",
    "NUL in a header": b"A: \x00",
    "a blank in a header's name": b"A b: c",
    "a header without colon": b"no colon",
    "a header of 70,000 bytes": b"A: " + b"x" * 70_000,
    "500 headers": b"\r\n".join([b"A: b"] * 500),
}


@pytest.mark.parametrize("lines", REFUSED_BEFORE.values(), ids=REFUSED_BEFORE)
def test_a_malformed_head_is_refused_and_repeats_no_secret(shop, live, lines):
    status, headers, body = exchange(
        live, post(shop, lines + b"\r\n", ORDER), hang_up=True
    )
    assert (400 <= status < 500 or status == 501) and headers["connection"] == "close"
    assert b"sk_test_" not in body


@pytest.mark.parametrize("line", [b"GET", b"GET /" + b"x" * 9000, b"\x16\x03\x01\x02"])
def test_a_malformed_first_line_is_refused(live, line):
    assert 400 <= exchange(live, line + b"\r\n\r\n")[0] < 500
