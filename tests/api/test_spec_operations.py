"""Specification, section 4: every operation, its parameters, its bounds and what it refuses."""

from typing import Any

import pytest

OPERATIONS = {
    "get-balance": ("GET", "/balance"),
    "create-invoice": ("POST", "/invoices"),
    "list-invoices": ("GET", "/invoices"),
    "get-invoice": ("GET", "/invoices/{invoice}"),
    "create-payment-link": ("POST", "/payment-links"),
    "list-payment-links": ("GET", "/payment-links"),
    "get-payment-link": ("GET", "/payment-links/{link}"),
    "list-payments": ("GET", "/payments"),
}
MAXIMUM_BODY = 65_536


def ask(shop, method, path, key):
    path = path.format(invoice=shop.invoice()["id"], link=shop.link()["id"])
    if method == "POST":
        return shop.post(path, {"amount_usd": 5}, key)
    return shop.get(path, key)


def assert_refused(response, status, code, *named):
    assert response.status_code == status, response.text
    assert set(response.json) == {"error"} and set(response.json["error"]) == {
        "code",
        "message",
    }
    assert response.json["error"]["code"] == code
    for name in named:
        assert name in response.json["error"]["message"]


# 4: the table
@pytest.mark.parametrize(("method", "path"), OPERATIONS.values(), ids=OPERATIONS)
def test_a_write_key_may_do_all_a_read_key_what_is_read_and_without_a_key_nobody_anything(
    shop, method, path
):
    writes = method == "POST"
    written, read = (
        ask(shop, method, path, key) for key in (shop.write_key, shop.read_key)
    )
    assert written.status_code == (201 if writes else 200)
    assert written.mimetype == "application/json"
    if writes:
        assert_refused(read, 403, "forbidden")
    else:
        assert read.status_code == 200
    assert_refused(ask(shop, method, path, ""), 401, "unauthorized")


# 4.2, 4.5: bodies
def test_requests_with_a_body_are_of_content_type_json(shop):
    for content_type in ("application/json", "application/json; charset=utf-8"):
        response = shop.post(
            "/invoices", data=b'{"amount_usd":5}', content_type=content_type
        )
        assert response.status_code == 201


INVOICES = "/invoices"
LINKS = "/payment-links"
INVOICE = {"amount_usd": 5}
FLEXIBLE = {"amount_mode": "flexible"}


WITHIN: dict[str, Any] = {
    "an invoice of 1,000,000": (INVOICES, {"amount_usd": 1_000_000}),
    "an invoice just above 0": (INVOICES, {"amount_usd": 1e-9}),
    "500 characters": (INVOICES, INVOICE | {"description": "x" * 500}),
    "500 wide characters": (INVOICES, INVOICE | {"description": "😀" * 500}),
    "an empty description": (INVOICES, INVOICE | {"description": ""}),
    "an email of 320": (INVOICES, INVOICE | {"customer_email": "x" * 320}),
    "8,760 hours": (INVOICES, INVOICE | {"expires_in_hours": 8760}),
    "hours just above 0": (INVOICES, INVOICE | {"expires_in_hours": 1e-9}),
    "a null description": (INVOICES, INVOICE | {"description": None}),
    "a null email": (INVOICES, INVOICE | {"customer_email": None}),
    "null hours": (INVOICES, INVOICE | {"expires_in_hours": None}),
    "an unknown field": (INVOICES, INVOICE | {"colour": "red"}),
    "a link of nothing": (LINKS, {}),
    "a link of 1,000,000": (LINKS, {"amount_usd": 1_000_000}),
    "a title of 200": (LINKS, {"title": "x" * 200}),
    "a link described in 500": (LINKS, {"description": "x" * 500}),
    "equal bounds": (LINKS, {"min_amount_usd": 5, "max_amount_usd": 5}),
    "only a minimum": (LINKS, {"min_amount_usd": 1}),
    "only a maximum": (LINKS, {"max_amount_usd": 1_000_000}),
    "a null amount": (LINKS, FLEXIBLE | {"amount_usd": None}),
}


@pytest.mark.parametrize(("path", "body"), WITHIN.values(), ids=WITHIN)
def test_a_body_within_the_bounds_is_accepted(shop, path, body):
    assert shop.post(path, body).status_code == 201


BEYOND: dict[str, Any] = {
    "no amount": (INVOICES, "amount_usd", {}),
    "a null amount": (INVOICES, "amount_usd", {"amount_usd": None}),
    "an amount of 0": (INVOICES, "amount_usd", {"amount_usd": 0}),
    "a negative amount": (INVOICES, "amount_usd", {"amount_usd": -0.01}),
    "over 1,000,000": (INVOICES, "amount_usd", {"amount_usd": 1_000_000.01}),
    "an amount as text": (INVOICES, "amount_usd", {"amount_usd": "25"}),
    "a boolean amount": (INVOICES, "amount_usd", {"amount_usd": True}),
    "an amount in an array": (INVOICES, "amount_usd", {"amount_usd": [25]}),
    "an object as amount": (INVOICES, "amount_usd", {"amount_usd": {}}),
    "501 characters": (INVOICES, "description", INVOICE | {"description": "x" * 501}),
    "5 as memo": (INVOICES, "description", INVOICE | {"description": 5}),
    "email 321": (INVOICES, "customer_email", INVOICE | {"customer_email": "x" * 321}),
    "no email text": (INVOICES, "customer_email", INVOICE | {"customer_email": False}),
    "0 hours": (INVOICES, "expires_in_hours", INVOICE | {"expires_in_hours": 0}),
    "-1 hour": (INVOICES, "expires_in_hours", INVOICE | {"expires_in_hours": -1}),
    "a little more than 8,760 hours": (INVOICES, "expires_in_hours", INVOICE | {"expires_in_hours":
        8760.001}),
    "hours as text": (INVOICES, "expires_in_hours", INVOICE | {"expires_in_hours": "1"}),
    "no such mode": (LINKS, "amount_mode", {"amount_mode": "open"}),
    "a number as mode": (LINKS, "amount_mode", {"amount_mode": 1}),
    "fixed, unpriced": (LINKS, "amount_usd", {"amount_mode": "fixed"}),
    "a price of 0": (LINKS, "amount_usd", {"amount_usd": 0}),
    "too high": (LINKS, "amount_usd", {"amount_usd": 1_000_001}),
    "flexible with price": (LINKS, "amount_usd", FLEXIBLE | {"amount_usd": 5}),
    "fixed with a minimum": (LINKS, "min_amount_usd", {"amount_usd": 5, "min_amount_usd": 1}),
    "fixed with a maximum": (LINKS, "max_amount_usd", {"amount_usd": 5, "max_amount_usd": 9}),
    "minimum 0": (LINKS, "min_amount_usd", {"min_amount_usd": 0}),
    "maximum high": (LINKS, "max_amount_usd", {"max_amount_usd": 1_000_000.01}),
    "a minimum above the maximum": (LINKS, "min_amount_usd", {"min_amount_usd": 5.01,
        "max_amount_usd": 5}),
    "a title of 201": (LINKS, "title", {"title": "x" * 201}),
    "a number as title": (LINKS, "title", {"title": 1}),
    "a link in 501": (LINKS, "description", {"description": "x" * 501}),
}  # fmt: skip


@pytest.mark.parametrize(("path", "field", "body"), BEYOND.values(), ids=BEYOND)
def test_a_field_missing_of_wrong_type_or_out_of_range_is_named(
    shop, path, field, body
):
    assert_refused(shop.post(path, body), 400, "invalid_request", field)
    assert shop.get(path).json["data"] == []


def test_every_offending_field_is_named_at_once(shop):
    mistakes = {"amount_usd": 0, "description": 7, "customer_email": 8}
    assert_refused(shop.post("/invoices", mistakes), 400, "invalid_request", *mistakes)


@pytest.mark.parametrize("path", ["/invoices", "/payment-links"])
def test_a_body_of_the_maximum_size_is_read_and_one_byte_more_is_too_large(shop, path):
    body = b'{"amount_usd":5}'.ljust(MAXIMUM_BODY)
    response = shop.post(path, data=body, content_type="application/json")
    assert response.status_code == 201
    response = shop.post(path, data=body + b" ", content_type="application/json")
    assert_refused(response, 413, "payload_too_large")
    assert len(shop.get(path).json["data"]) == 1


def test_a_payment_link_needs_no_live_price(shop, ticker):
    ticker.status = 500
    assert shop.post("/payment-links", {"amount_usd": 5}).status_code == 201


@pytest.mark.parametrize(
    ("body", "mode"),
    [
        ({"amount_usd": 5}, "fixed"),
        ({"min_amount_usd": 5}, "flexible"),
        ({}, "flexible"),
    ],
)
def test_without_a_mode_a_price_makes_a_link_fixed(shop, body, mode):
    assert shop.link(**body)["amount_mode"] == mode
