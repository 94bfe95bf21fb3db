"""Specification, sections 5 to 9: keys, errors, rolling windows, the version."""

import time
from dataclasses import replace

import pytest

from app import create_app
from btcpay.settings import settings

NOBODY = "sk_test_" + "0" * 43


def status_and_code(response):
    return response.status_code, response.json["error"]["code"]


def window(response):
    """Limit, remaining, reset."""
    names = ("X-RateLimit-Limit", "X-RateLimit-Remaining", "X-RateLimit-Reset")
    limit, remaining, reset = (int(response.headers[name]) for name in names)
    return limit, remaining, reset


def conflicting(shop):
    shop.post("/payment-links", {}, headers={"Idempotency-Key": "k"})
    return shop.post("/payment-links", {"title": "x"}, headers={"Idempotency-Key": "k"})


def exhausted(shop):
    for _ in range(30):
        shop.post("/invoices", {})
    return shop.post("/invoices", {})


def refused_for_its_address(shop):
    for _ in range(20):
        shop.get("/balance", NOBODY)
    return shop.get("/balance", NOBODY)


def unpriced(shop):
    deaf = shop.environ | {"BLOCKTILL_PRICE_SOURCES": "http://127.0.0.1:9/#/usd"}
    app = create_app(settings.read(deaf), shop.clock)
    answer = replace(shop, app=app).post("/invoices", {"amount_usd": 5})
    assert shop.get("/invoices").json["data"] == []
    return answer


def broken(shop):
    shop.sql("ALTER TABLE payment_link RENAME TO gone")
    return shop.get("/payment-links")


def oversized(shop):
    return shop.post("/invoices", data=b" " * 65_537, content_type="application/json")


ERRORS = [
    pytest.param(lambda s: s.post("/invoices", {}), 400, "invalid_request", id="a bad body"),
    pytest.param(lambda s: s.get("/invoices?limit=0"), 400, "invalid_request", id="a bad limit"),
    pytest.param(lambda s: s.get("/balance", ""), 401, "unauthorized", id="no key"),
    pytest.param(lambda s: s.get("/balance", NOBODY), 401, "unauthorized", id="an invalid key"),
    pytest.param(lambda s: s.get("/nothing", ""), 401, "unauthorized", id="no key, no such path"),
    pytest.param(lambda s: s.post("/invoices", {"amount_usd": 5}, s.read_key), 403, "forbidden",
        id="a read-only key"),
    pytest.param(lambda s: s.get("/invoices/inv_" + "0" * 24), 404, "not_found",
        id="an unknown invoice"),
    pytest.param(lambda s: s.get("/nothing"), 404, "not_found", id="an unknown path"),
    pytest.param(lambda s: s.get(""), 404, "not_found", id="the bare root"),
    pytest.param(lambda s: s.post("/balance"), 405, "invalid_request", id="a wrong method"),
    pytest.param(conflicting, 409, "conflict", id="a reused Idempotency-Key"),
    pytest.param(oversized, 413, "payload_too_large", id="too large a body"),
    pytest.param(exhausted, 429, "rate_limited", id="an exhausted write bucket"),
    pytest.param(refused_for_its_address, 429, "rate_limited", id="an exhausted address"),
    pytest.param(broken, 500, "server_error", id="a broken database"),
    pytest.param(unpriced, 503, "price_unavailable", id="no price"),
]  # fmt: skip


# 5
@pytest.mark.parametrize("scheme", ["Bearer", "bearer", "BEARER"])
def test_a_key_is_sent_as_a_bearer_credential(shop, scheme):
    headers = {"Authorization": f"{scheme} {shop.read_key}"}
    assert shop.get("/balance", "", headers=headers).status_code == 200


@pytest.mark.parametrize(
    "credential",
    [
        pytest.param(lambda shop: {}, id="no header"),
        pytest.param(lambda shop: {"Authorization": ""}, id="an empty header"),
        pytest.param(lambda shop: {"Authorization": "Bearer"}, id="a scheme without a key"),
        pytest.param(lambda shop: {"Authorization": "Bearer "}, id="a scheme and a blank"),
        pytest.param(lambda shop: {"Authorization": f"Bearer {NOBODY}"}, id="an unknown key"),
        pytest.param(lambda shop: {"Authorization": shop.read_key}, id="a key without a scheme"),
        pytest.param(lambda shop: {"Authorization": f"Basic {shop.read_key}"}, id="another scheme"),
        pytest.param(lambda shop: {"Authorization": f"Bearer {shop.read_key[:-1]}"},
            id="a key cut short"),
        pytest.param(lambda shop: {"Authorization": f"Bearer {shop.read_key.upper()}"},
            id="in upper case"),
        pytest.param(lambda shop: {"Authorization":
            f"Bearer {shop.read_key}, Bearer {shop.read_key}"}, id="two keys"),
        pytest.param(lambda shop: {"X-Api-Key": shop.read_key}, id="a key in another header"),
    ],
)  # fmt: skip
def test_a_missing_or_invalid_key_is_unauthorized(shop, credential):
    for path in ("/balance", "/nothing"):
        response = shop.get(path, "", headers=credential(shop))
        assert status_and_code(response) == (401, "unauthorized")
        assert response.headers["WWW-Authenticate"] == "Bearer"


def test_a_key_in_the_query_string_is_no_credential(shop):
    assert shop.get(f"/balance?api_key={shop.read_key}", "").status_code == 401


# 7
@pytest.mark.parametrize(("ask", "status", "code"), ERRORS)
def test_every_error_has_its_status_its_code_and_the_one_envelope(
    shop, ask, status, code
):
    response = ask(shop)
    assert status_and_code(response) == (status, code)
    assert response.mimetype == "application/json"
    assert set(response.json) == {"error"}
    assert set(response.json["error"]) == {"code", "message"}
    message = response.json["error"]["message"]
    assert isinstance(message, str) and message
    assert_window_is_plausible(response)


def test_a_wrong_method_says_which_are_allowed(shop):
    assert shop.post("/balance").headers["Allow"] == "GET, HEAD"
    headers = {"Authorization": f"Bearer {shop.write_key}"}
    response = shop.client.delete("/api/v1/invoices", headers=headers)
    assert response.headers["Allow"] == "GET, HEAD, POST"


# 8: headers


def assert_window_is_plausible(response):
    limit, remaining, reset = window(response)
    assert limit in (120, 30, 20) and 0 <= remaining <= limit
    assert time.time() - 1 < reset <= time.time() + 61
    assert ("Retry-After" in response.headers) == (response.status_code == 429)


def test_the_document_needs_no_key_and_carries_the_headers_too(shop):
    response = shop.get("/openapi.json", "")
    assert response.status_code == 200
    assert window(response)[:2] == (20, 20)


# 8: buckets
READ = 120
WRITE = 30
FAILED = 20


def read(shop, key=None):
    return shop.get("/payment-links?limit=1", key)


def write(shop, key=None):
    return shop.post("/payment-links", {"amount_usd": -1}, key)


def fail(shop):
    return shop.get("/balance", NOBODY)


BUCKETS = [
    pytest.param(read, READ, 200, id="120 reads by key"),
    pytest.param(write, WRITE, 400, id="30 writes by key"),
    pytest.param(fail, FAILED, 401, id="20 failures by address"),
]


@pytest.mark.parametrize(("ask", "limit", "status"), BUCKETS)
def test_a_bucket_holds_its_limit_and_refuses_the_next(shop, clock, ask, limit, status):
    reset = int(clock().timestamp()) + 60
    for remaining in range(limit - 1, -1, -1):
        response = ask(shop)
        assert response.status_code == status
        assert window(response) == (limit, remaining, reset)
    for _ in range(3):
        response = ask(shop)
        assert status_and_code(response) == (429, "rate_limited")
        assert window(response) == (limit, 0, reset)
        assert response.headers["Retry-After"] == "60"


@pytest.mark.parametrize(("ask", "limit", "status"), BUCKETS)
def test_a_rate_limits_window_rolls(shop, clock, ask, limit, status):
    """A fixed window would let the whole limit in again after the first 60 seconds."""
    for _ in range(limit // 2):
        ask(shop)
    clock.move(seconds=40)
    for _ in range(limit // 2):
        ask(shop)
    refused = ask(shop)
    assert (refused.status_code, refused.headers["Retry-After"]) == (429, "20")
    clock.move(seconds=20.001)
    statuses = [ask(shop).status_code for _ in range(limit // 2 + 1)]
    assert statuses == [status] * (limit // 2) + [429]


def test_retry_after_never_exceeds_the_window_between_two_full_seconds(shop, clock):
    clock.move(milliseconds=500)
    assert exhausted(shop).headers["Retry-After"] == "60"


def test_reads_and_writes_and_the_keys_of_one_merchant_are_counted_apart(shop):
    for _ in range(WRITE):
        write(shop)
    assert write(shop).status_code == 429
    assert window(read(shop, shop.write_key))[:2] == (READ, READ - 1)
    assert window(write(shop, shop.issue("write")))[:2] == (WRITE, WRITE - 1)


@pytest.mark.parametrize(
    "ask",
    [
        pytest.param(lambda shop: shop.get("/nothing"), id="a 404"),
        pytest.param(lambda shop: shop.get("/invoices?limit=0"), id="a 400"),
        pytest.param(broken, id="a 500"),
    ],
)
def test_a_get_counts_in_the_read_bucket_whatever_its_answer(shop, ask):
    assert window(ask(shop))[:2] == (READ, READ - 1)
    assert window(shop.get("/balance"))[:2] == (READ, READ - 2)


def test_a_post_counts_in_the_write_bucket_whatever_its_answer(shop):
    answers = [
        shop.post("/invoices", {}),
        shop.post("/nothing"),
        shop.post("/balance"),
        oversized(shop),
        shop.post("/invoices", {"amount_usd": 5}),
    ]
    assert [answer.status_code for answer in answers] == [400, 404, 405, 413, 201]
    assert [window(answer)[:2] for answer in answers] == [
        (WRITE, WRITE - n) for n in range(1, 6)
    ]


def test_a_forbidden_post_counts_in_the_write_bucket_of_the_read_key(shop):
    assert window(write(shop, shop.read_key))[:2] == (WRITE, WRITE - 1)
    assert window(write(shop, shop.read_key))[:2] == (WRITE, WRITE - 2)


def test_a_refused_request_is_not_carried_out(shop):
    for _ in range(WRITE):
        write(shop)
    assert shop.post("/payment-links", {}).status_code == 429
    assert shop.get("/payment-links").json["data"] == []


def test_a_valid_key_is_never_refused_for_the_failures_of_its_address(shop):
    for _ in range(FAILED + 1):
        fail(shop)
    assert read(shop).status_code == 200
    assert fail(shop).status_code == 429


def test_a_missing_credential_is_no_failed_attempt(shop):
    for _ in range(FAILED + 5):
        response = shop.get("/balance", "")
        assert response.status_code == 401
        assert window(response)[:2] == (FAILED, FAILED)
    assert window(fail(shop))[:2] == (FAILED, FAILED - 1)


# 9
def test_the_version_is_carried_in_the_path(shop):
    headers = {"Authorization": f"Bearer {shop.read_key}"}
    assert shop.client.get("/api/v1/balance", headers=headers).status_code == 200
    assert shop.client.get("/balance", headers=headers).status_code == 404
    assert shop.client.get("/api/v2/balance", headers=headers).status_code == 404
