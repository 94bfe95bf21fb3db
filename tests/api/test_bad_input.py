"""Nothing that a client sends is the service's fault: bodies, in this process."""

import time

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from test_spec_operations import assert_refused

from btcpay.values.errors import InvalidRequest
from btcpay.web.body import parse
from tests.support.builders import Clock, open_shop
from tests.support.processor_time import takes_less_than

POSTS = ["/invoices", "/payment-links"]
# a body of 64 KiB takes milliseconds; what takes seconds is quadratic or worse
QUICK_S = 2


@pytest.fixture(scope="module")
def shop(tmp_path_factory, ticker):
    """One service for the module: that it survives its tests is part of them."""
    ticker.reset()
    with open_shop(tmp_path_factory.mktemp("shop"), ticker.url, Clock()) as opened:
        yield opened


def send(shop, path, body, **kwargs):
    kwargs.setdefault("content_type", "application/json")
    return shop.post(path, data=body, key=shop.issue("write"), **kwargs)


def assert_no_fault(response):
    assert response.status_code < 500, response.text
    if response.status_code >= 400:
        assert_refused(response, response.status_code, response.json["error"]["code"])


NO_OBJECT = {
    "nothing but a blank": b" ",
    "a text that is no JSON": b"amount_usd=5",
    "an object and more": b'{"amount_usd": 5} {}',
    "a comma too many": b'{"amount_usd": 5,}',
    "a comment": b'{"amount_usd": 5 /* five */}',
    "NaN": b'{"amount_usd": NaN}',
    "Infinity": b'{"amount_usd": Infinity}',
    "a leading zero": b'{"amount_usd": 05}',
    "digits of another script": '{"amount_usd": ٥}'.encode(),
    "the same name twice": b'{"amount_usd": 5, "amount_usd": 5}',
    "the same name twice, escaped": b'{"amount_usd": 5, "amount\\u005fusd": 6}',
    "the same name twice, deep inside": b'{"amount_usd": 5, "x": [{"a": 1, "a": 2}]}',
    "a lone surrogate twice as name": b'{"amount_usd": 5, "\\ud800": 1, "\\ud800": 2}',
    "arrays of depth 10,000": b'{"amount_usd": ' + b"[" * 10_000 + b"]" * 10_000 + b"}",
    "objects of depth 10,000": b'{"a":' * 10_000 + b"1" + b"}" * 10_000,
    "an array": b"[]",
    "a number": b"5",
    "a text": b'"amount_usd"',
    "null": b"null",
    "true": b"true",
    "a byte order mark": b'\xef\xbb\xbf{"amount_usd": 5}',
    "invalid UTF-8": b'{"amount_usd": 5, "description": "\xff"}',
    "an overlong UTF-8 form": b'{"amount_usd": 5, "description": "\xc0\xaf"}',
    "a surrogate in UTF-8": b'{"amount_usd": 5, "description": "\xed\xa0\x80"}',
    "UTF-16": '{"amount_usd": 5}'.encode("utf-16"),
    "a raw line break in a text": b'{"amount_usd": 5, "description": "a\nb"}',
    "a NUL byte": b'{"amount_usd": 5}\x00',
}


@pytest.mark.parametrize("path", POSTS)
@pytest.mark.parametrize("name", NO_OBJECT)
def test_a_body_that_is_no_json_object_is_invalid(shop, path, name):
    started_s = time.thread_time()
    assert_refused(send(shop, path, NO_OBJECT[name]), 400, "invalid_request")
    assert time.thread_time() - started_s < QUICK_S


def test_a_name_that_comes_twice_is_named():
    with pytest.raises(InvalidRequest, match="the name 'a' appears twice"):
        parse(b'{"a": 1, "b": 2, "c": 3, "b": 4, "a": 5}')


def test_eight_thousand_names_cost_no_more_than_reading_them():
    """Each name counted among all the others took a second."""
    names = [f'"{number:04}":1' for number in range(8000)]
    body = f"{{{','.join([*names, names[-1]])}}}".encode()

    def read():
        with pytest.raises(InvalidRequest, match="'7999' appears twice"):
            parse(body)

    assert takes_less_than(0.25, read)


def test_an_empty_body_is_invalid_for_an_invoice_and_enough_for_a_link(shop):
    said = "the body is empty; send a JSON object"
    assert_refused(send(shop, "/invoices", b""), 400, "invalid_request", said)
    assert send(shop, "/payment-links", b"").status_code == 201


@pytest.mark.parametrize("name", ["min_amount_usd", "max_amount_usd"])
def test_a_bound_beside_a_price_names_both_and_no_field_that_was_not_sent(shop, name):
    response = send(
        shop, "/payment-links", b'{"amount_usd": 5, "%b": 1}' % name.encode()
    )
    message = f"amount_usd makes the price fixed: leave it or {name} out"
    assert_refused(response, 400, "invalid_request", message)
    assert "amount_mode" not in response.text


@pytest.mark.parametrize("given", ["{key}", "Token {key}", "Basic {key}"])
def test_a_key_without_its_scheme_is_shown_how_it_is_sent(shop, given):
    headers = {"Authorization": given.format(key=shop.read_key)}
    response = shop.client.get("/api/v1/balance", headers=headers)
    assert_refused(
        response, 401, "unauthorized", "send it as `Authorization: Bearer KEY`"
    )


@pytest.mark.parametrize(
    ("depth", "status"), [(98, 201), (99, 201), (100, 400), (1000, 400)]
)
@pytest.mark.parametrize("with_key", [False, True])
def test_a_body_is_nested_100_deep_at_most_on_every_python(
    shop, depth, status, with_key
):
    headers = {"Idempotency-Key": f"depth {depth}"} if with_key else {}
    body = b'{"amount_usd": 5, "extra": ' + b"[" * depth + b"]" * depth + b"}"
    assert send(shop, "/invoices", body, headers=headers).status_code == status


def test_brackets_in_a_text_are_no_nesting(shop):
    text = b'{"amount_usd": 5, "description": "' + b'[{\\"' * 100 + b'"}'
    assert send(shop, "/invoices", text).status_code == 201


NOT_IN_RANGE = {
    "1e400": "1e400",
    "1e7": "1e7",
    "an exponent of 19 digits": "1e1000000000000000000",
    "a negative exponent of 20 digits": "1e-99999999999999999999",
    "an exponent of 1,000 digits": "1e" + "9" * 1000,
    "a negative exponent of 1,000 digits": "1e-" + "9" * 1000,
    "the largest exponent that a Decimal holds": "1e999999999999999999",
    "60,000 digits": "1" * 60_000,
    "60,000 digits and a fraction": "1" * 30_000 + "." + "1" * 30_000,
    "minus 60,000 digits": "-" + "1" * 60_000,
    "zero with an exponent": "0e999999999999999999",
    "zero with an exponent of 1,000 digits": "0e" + "9" * 1000,
    "zero with 60,000 decimals": "0." + "0" * 60_000,
    "minus zero": "-0.0",
    "what a double reads as 0": "1e-400",
    "the smallest that a Decimal holds": "1e-999999999999999999",
    "60,000 zeros before the first digit": "0." + "0" * 60_000 + "1",
    "a little above the maximum": "1000000." + "0" * 50_000 + "1",
}


@pytest.mark.parametrize(
    ("path", "field", "body"),
    [
        ("/invoices", "amount_usd", '{"amount_usd": %s}'),
        ("/invoices", "expires_in_hours", '{"amount_usd": 5, "expires_in_hours": %s}'),
        ("/payment-links", "amount_usd", '{"amount_usd": %s}'),
        ("/payment-links", "max_amount_usd", '{"max_amount_usd": %s}'),
    ],
)
@pytest.mark.parametrize("name", NOT_IN_RANGE)
def test_a_number_out_of_range_is_refused_quickly_and_by_name(
    shop, path, field, body, name
):
    started_s = time.thread_time()
    for headers in ({}, {"Idempotency-Key": name}):
        response = send(
            shop, path, (body % NOT_IN_RANGE[name]).encode(), headers=headers
        )
        assert_refused(response, 400, "invalid_request", field)
    assert time.thread_time() - started_s < QUICK_S


@pytest.mark.parametrize(
    ("number", "amount_sats"),
    [
        pytest.param("3e-324", 1, id="the smallest that a double holds"),
        pytest.param("0." + "0" * 300 + "1", 1, id="300 zeros before the first digit"),
        pytest.param(
            "0.06" + "0" * 60_000, 100, id="60,000 zeros behind the last digit"
        ),
        pytest.param(
            "0.06" + "0" * 60_000 + "1", 101, id="a little more, far behind the point"
        ),
        pytest.param("6e-2", 100, id="a small exponent"),
        pytest.param("0.0000000000006E+11", 100, id="an exponent with a plus sign"),
        pytest.param(
            "1000000." + "0" * 60_000, 1_666_666_667, id="the maximum at length"
        ),
    ],
)
def test_a_number_in_range_is_accepted_however_it_is_written(shop, number, amount_sats):
    started_s = time.thread_time()
    response = send(shop, "/invoices", b'{"amount_usd": %s}' % number.encode())
    assert response.status_code == 201, response.text
    assert response.json["amount_sats"] == amount_sats
    assert (
        shop.get(f"/invoices/{response.json['id']}", shop.issue("read")).json
        == response.json
    )
    link = send(shop, "/payment-links", b'{"amount_usd": %s}' % number.encode())
    assert link.status_code == 201
    path = link.json["link_url"].removeprefix(shop.service.settings.base_url)
    assert shop.client.get(path).status_code == 200
    pay_path = response.json["pay_url"].removeprefix(shop.service.settings.base_url)
    assert shop.client.get(pay_path).status_code == 200
    assert time.thread_time() - started_s < QUICK_S


@pytest.mark.parametrize("hours", ["3e-324", "0." + "0" * 300 + "1"])
def test_a_tiny_number_of_hours_is_accepted(shop, hours):
    body = f'{{"amount_usd": 5, "expires_in_hours": {hours}}}'.encode()
    response = send(shop, "/invoices", body)
    assert response.status_code == 201
    assert response.json["expires_at"] == response.json["created_at"]


@pytest.mark.parametrize(
    "place", ['{"x": %s, "amount_usd": 5}', '{"amount_usd": 5, "x": [[%s]]}']
)
@pytest.mark.parametrize("name", NOT_IN_RANGE)
def test_an_absurd_number_in_an_ignored_field_costs_nothing(shop, place, name):
    started_s = time.thread_time()
    body = (place % NOT_IN_RANGE[name]).encode()
    response = send(
        shop, "/invoices", body, headers={"Idempotency-Key": f"{place[2]} {name}"}
    )
    assert response.status_code == 201
    assert time.thread_time() - started_s < QUICK_S


@pytest.mark.parametrize(
    ("path", "field"),
    [
        ("/invoices", "description"),
        ("/invoices", "customer_email"),
        ("/payment-links", "title"),
        ("/payment-links", "description"),
    ],
)
@pytest.mark.parametrize(
    "escape", ["\\u0000", "\\ud800", "\\udfff", "\\udc00\\ud800", "a\\u0000b"]
)
def test_u0000_and_lone_surrogates_are_refused_by_name(shop, path, field, escape):
    body = f'{{"amount_usd": 5, "{field}": "{escape}"}}'.encode()
    assert_refused(send(shop, path, body), 400, "invalid_request", field)


@pytest.mark.parametrize(
    "text",
    [
        "\ud83d\ude00".encode("utf-16", "surrogatepass").decode("utf-16"),
        "\u202eright to left",
        "\x01\x1f\x7f\x80\ufffe\uffff",
        "'; DROP TABLE invoice; --",
        "<script>alert(1)</script>",
        "%00 {{7*7}} ${7*7}",
    ],
)
def test_any_other_text_comes_back_as_it_went_in(shop, text):
    assert shop.invoice(description=text)["description"] == text
    assert shop.link(title=text)["title"] == text


def test_a_surrogate_in_an_ignored_field_or_name_is_no_fault(shop):
    body = b'{"amount_usd": 5, "x": "\\ud800", "\\udfff": "\\u0000"}'
    for headers in ({}, {"Idempotency-Key": "surrogates"}):
        assert send(shop, "/invoices", body, headers=headers).status_code == 201
    assert (
        send(shop, "/payment-links", body, headers={"Idempotency-Key": "s"}).status_code
        == 201
    )


@pytest.mark.parametrize(
    "body",
    [
        b'{"amount_mode": "\\ud800"}',
        b'{"amount_mode": "\\u0000"}',
        b'{"amount_mode": ""}',
    ],
)
def test_a_mode_that_is_no_mode_is_refused_by_name(shop, body):
    assert_refused(
        send(shop, "/payment-links", body), 400, "invalid_request", "amount_mode"
    )


FORMS = ["application/x-www-form-urlencoded", "multipart/form-data; boundary=x"]
ALIKE = ["application/jsonx", "application/json-patch+json", "json"]
JUNK = [None, "", "text/plain", "application/\xff", ";;;=", "x" * 5000]


@pytest.mark.parametrize("path", POSTS)
@pytest.mark.parametrize("content_type", [*FORMS, *ALIKE, *JUNK])
def test_a_body_of_another_content_type_is_invalid(shop, path, content_type):
    response = send(shop, path, b'{"amount_usd": 5}', content_type=content_type)
    assert_refused(response, 400, "invalid_request", "Content-Type")


@settings(max_examples=80, derandomize=True, database=None)
@given(path=st.sampled_from(POSTS), body=st.binary(max_size=200))
def test_no_bytes_are_a_fault(shop, path, body):
    response = send(shop, path, body)
    assert_no_fault(response)


@settings(max_examples=100, derandomize=True, database=None)
@given(
    name=st.text(st.characters(codec=None)),
    path=st.sampled_from(["/invoices/", "/payment-links/", "/"]),
)
def test_no_path_is_a_fault(shop, path, name):
    encoded = name.encode("utf-8", "surrogatepass").hex("%")
    assert_no_fault(shop.get(f"{path}%{encoded}", shop.issue("read")))
