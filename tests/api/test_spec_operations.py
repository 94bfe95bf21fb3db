"""Specification, section 4: every operation, its parameters, its bounds and what it refuses."""

from typing import Any

import pytest
from builders import Shop, TickerServer
from werkzeug.test import TestResponse

OPERATIONS = [
    pytest.param("GET", "/balance", 200, id="get-balance"),
    pytest.param("POST", "/invoices", 201, id="create-invoice"),
    pytest.param("GET", "/invoices", 200, id="list-invoices"),
    pytest.param("GET", "/invoices/{invoice}", 200, id="get-invoice"),
    pytest.param("POST", "/payment-links", 201, id="create-payment-link"),
    pytest.param("GET", "/payment-links", 200, id="list-payment-links"),
    pytest.param("GET", "/payment-links/{link}", 200, id="get-payment-link"),
    pytest.param("GET", "/payments", 200, id="list-payments"),
]
MAXIMUM_BODY = 65_536


def ask(shop: Shop, method: str, path: str, key: str) -> TestResponse:
    path = path.format(invoice=shop.invoice()["id"], link=shop.link()["id"])
    if method == "POST":
        return shop.post(path, {"amount_usd": 5}, key)
    return shop.get(path, key)


def assert_refused(response: TestResponse, status: int, code: str, *named: str) -> None:
    assert (response.status_code, response.json["error"]["code"]) == (status, code), response.text
    for name in named:
        assert name in response.json["error"]["message"]


# 4: the table


@pytest.mark.parametrize(("method", "path", "success"), OPERATIONS)
def test_an_operation_succeeds_with_a_key_of_its_scope(
    shop: Shop, method: str, path: str, success: int
) -> None:
    key = shop.write_key if method == "POST" else shop.read_key
    response = ask(shop, method, path, key)
    assert response.status_code == success
    assert response.mimetype == "application/json"


@pytest.mark.parametrize(("method", "path", "success"), OPERATIONS)
def test_a_write_key_may_do_every_operation(
    shop: Shop, method: str, path: str, success: int
) -> None:
    assert ask(shop, method, path, shop.write_key).status_code == success


@pytest.mark.parametrize(("method", "path", "success"), OPERATIONS)
def test_a_read_key_may_do_get_and_is_forbidden_to_post(
    shop: Shop, method: str, path: str, success: int
) -> None:
    response = ask(shop, method, path, shop.read_key)
    if method == "POST":
        assert_refused(response, 403, "forbidden")
    else:
        assert response.status_code == success


@pytest.mark.parametrize(("method", "path", "success"), OPERATIONS)
def test_every_operation_needs_the_bearer_credential(
    shop: Shop, method: str, path: str, success: int
) -> None:
    assert_refused(ask(shop, method, path, ""), 401, "unauthorized")


# 4.2, 4.5: bodies


def test_requests_with_a_body_are_of_content_type_json(shop: Shop) -> None:
    for content_type in ("application/json", "application/json; charset=utf-8"):
        response = shop.post("/invoices", data=b'{"amount_usd":5}', content_type=content_type)
        assert response.status_code == 201
    response = shop.post("/invoices", data=b'{"amount_usd":5}', content_type="text/plain")
    assert_refused(response, 400, "invalid_request", "Content-Type")


INVOICE = {"amount_usd": 5}
FLEXIBLE = {"amount_mode": "flexible"}


@pytest.mark.parametrize(
    ("path", "body"),
    [
        pytest.param("/invoices", {"amount_usd": 1_000_000}, id="an invoice of 1,000,000"),
        pytest.param("/invoices", {"amount_usd": 1e-9}, id="an invoice just above 0"),
        pytest.param("/invoices", INVOICE | {"description": "x" * 500}, id="500 characters"),
        pytest.param("/invoices", INVOICE | {"description": "😀" * 500}, id="500 wide characters"),
        pytest.param("/invoices", INVOICE | {"description": ""}, id="an empty description"),
        pytest.param("/invoices", INVOICE | {"customer_email": "x" * 320}, id="an email of 320"),
        pytest.param("/invoices", INVOICE | {"expires_in_hours": 8760}, id="8,760 hours"),
        pytest.param("/invoices", INVOICE | {"expires_in_hours": 1e-9}, id="hours just above 0"),
        pytest.param("/invoices", INVOICE | {"description": None}, id="a null description"),
        pytest.param("/invoices", INVOICE | {"customer_email": None}, id="a null email"),
        pytest.param("/invoices", INVOICE | {"expires_in_hours": None}, id="null hours"),
        pytest.param("/invoices", INVOICE | {"colour": "red"}, id="an unknown field"),
        pytest.param("/payment-links", {}, id="a link of nothing"),
        pytest.param("/payment-links", {"amount_usd": 1_000_000}, id="a link of 1,000,000"),
        pytest.param("/payment-links", {"title": "x" * 200}, id="a title of 200"),
        pytest.param("/payment-links", {"description": "x" * 500}, id="a link described in 500"),
        pytest.param(
            "/payment-links", {"min_amount_usd": 5, "max_amount_usd": 5}, id="equal bounds"
        ),
        pytest.param("/payment-links", {"min_amount_usd": 1}, id="only a minimum"),
        pytest.param("/payment-links", {"max_amount_usd": 1_000_000}, id="only a maximum"),
        pytest.param("/payment-links", FLEXIBLE | {"amount_usd": None}, id="a null amount"),
    ],
)
def test_a_body_within_the_bounds_is_accepted(shop: Shop, path: str, body: dict[str, Any]) -> None:
    assert shop.post(path, body).status_code == 201


@pytest.mark.parametrize(
    ("path", "field", "body"),
    [
        pytest.param("/invoices", "amount_usd", {}, id="no amount"),
        pytest.param("/invoices", "amount_usd", {"amount_usd": None}, id="a null amount"),
        pytest.param("/invoices", "amount_usd", {"amount_usd": 0}, id="an amount of 0"),
        pytest.param("/invoices", "amount_usd", {"amount_usd": -0.01}, id="a negative amount"),
        pytest.param("/invoices", "amount_usd", {"amount_usd": 1_000_000.01}, id="over 1,000,000"),
        pytest.param("/invoices", "amount_usd", {"amount_usd": "25"}, id="an amount as text"),
        pytest.param("/invoices", "amount_usd", {"amount_usd": True}, id="a boolean amount"),
        pytest.param("/invoices", "amount_usd", {"amount_usd": [25]}, id="an amount in an array"),
        pytest.param("/invoices", "amount_usd", {"amount_usd": {}}, id="an object as amount"),
        pytest.param(
            "/invoices", "description", INVOICE | {"description": "x" * 501}, id="501 characters"
        ),
        pytest.param("/invoices", "description", INVOICE | {"description": 5}, id="5 as memo"),
        pytest.param(
            "/invoices", "customer_email", INVOICE | {"customer_email": "x" * 321}, id="email 321"
        ),
        pytest.param(
            "/invoices", "customer_email", INVOICE | {"customer_email": False}, id="no email text"
        ),
        pytest.param(
            "/invoices", "expires_in_hours", INVOICE | {"expires_in_hours": 0}, id="0 hours"
        ),
        pytest.param(
            "/invoices", "expires_in_hours", INVOICE | {"expires_in_hours": -1}, id="-1 hour"
        ),
        pytest.param(
            "/invoices",
            "expires_in_hours",
            INVOICE | {"expires_in_hours": 8760.001},
            id="a little more than 8,760 hours",
        ),
        pytest.param(
            "/invoices", "expires_in_hours", INVOICE | {"expires_in_hours": "1"}, id="hours as text"
        ),
        pytest.param("/payment-links", "amount_mode", {"amount_mode": "open"}, id="no such mode"),
        pytest.param("/payment-links", "amount_mode", {"amount_mode": 1}, id="a number as mode"),
        pytest.param(
            "/payment-links", "amount_usd", {"amount_mode": "fixed"}, id="fixed, unpriced"
        ),
        pytest.param("/payment-links", "amount_usd", {"amount_usd": 0}, id="a price of 0"),
        pytest.param("/payment-links", "amount_usd", {"amount_usd": 1_000_001}, id="too high"),
        pytest.param(
            "/payment-links", "amount_usd", FLEXIBLE | {"amount_usd": 5}, id="flexible with price"
        ),
        pytest.param(
            "/payment-links",
            "min_amount_usd",
            {"amount_usd": 5, "min_amount_usd": 1},
            id="fixed with a minimum",
        ),
        pytest.param(
            "/payment-links",
            "max_amount_usd",
            {"amount_usd": 5, "max_amount_usd": 9},
            id="fixed with a maximum",
        ),
        pytest.param("/payment-links", "min_amount_usd", {"min_amount_usd": 0}, id="minimum 0"),
        pytest.param(
            "/payment-links", "max_amount_usd", {"max_amount_usd": 1_000_000.01}, id="maximum high"
        ),
        pytest.param(
            "/payment-links",
            "min_amount_usd",
            {"min_amount_usd": 5.01, "max_amount_usd": 5},
            id="a minimum above the maximum",
        ),
        pytest.param("/payment-links", "title", {"title": "x" * 201}, id="a title of 201"),
        pytest.param("/payment-links", "title", {"title": 1}, id="a number as title"),
        pytest.param(
            "/payment-links", "description", {"description": "x" * 501}, id="a link in 501"
        ),
    ],
)
def test_a_field_missing_of_wrong_type_or_out_of_range_is_named(
    shop: Shop, path: str, field: str, body: dict[str, Any]
) -> None:
    assert_refused(shop.post(path, body), 400, "invalid_request", field)
    assert shop.get(path).json["data"] == []


@pytest.mark.parametrize("mistakes", [{"amount_usd": 0, "description": 7, "customer_email": 8}])
def test_every_offending_field_is_named_at_once(shop: Shop, mistakes: dict[str, Any]) -> None:
    assert_refused(shop.post("/invoices", mistakes), 400, "invalid_request", *mistakes)


@pytest.mark.parametrize("path", ["/invoices", "/payment-links"])
def test_a_body_of_the_maximum_size_is_read_and_one_byte_more_is_too_large(
    shop: Shop, path: str
) -> None:
    body = b'{"amount_usd":5}'.ljust(MAXIMUM_BODY)
    response = shop.post(path, data=body, content_type="application/json")
    assert response.status_code == 201
    response = shop.post(path, data=body + b" ", content_type="application/json")
    assert_refused(response, 413, "payload_too_large")
    assert len(shop.get(path).json["data"]) == 1


def test_without_a_live_price_create_invoice_is_price_unavailable_and_creates_nothing(
    shop: Shop, ticker: TickerServer
) -> None:
    ticker.status = 500
    assert_refused(shop.post("/invoices", INVOICE), 503, "price_unavailable")
    assert shop.get("/invoices").json["data"] == []


def test_a_payment_link_needs_no_live_price(shop: Shop, ticker: TickerServer) -> None:
    ticker.status = 500
    assert shop.post("/payment-links", {"amount_usd": 5}).status_code == 201


def test_an_idempotency_key_with_a_different_body_is_a_conflict(shop: Shop) -> None:
    for path in ("/invoices", "/payment-links"):
        headers = {"Idempotency-Key": "order 7"}
        assert shop.post(path, {"amount_usd": 5}, headers=headers).status_code == 201
        response = shop.post(path, {"amount_usd": 6}, headers=headers)
        assert_refused(response, 409, "conflict")


def test_the_body_of_a_payment_link_is_optional_as_a_whole(shop: Shop) -> None:
    response = shop.post("/payment-links")
    assert response.status_code == 201
    assert response.json["amount_mode"] == "flexible"


@pytest.mark.parametrize(
    ("body", "mode"), [({"amount_usd": 5}, "fixed"), ({"min_amount_usd": 5}, "flexible")]
)
def test_without_a_mode_a_price_makes_a_link_fixed(
    shop: Shop, body: dict[str, Any], mode: str
) -> None:
    assert shop.link(**body)["amount_mode"] == mode
