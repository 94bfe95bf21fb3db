"""The server's log: JSON lines, one for each request, with nothing in them that a client wrote."""

import json
import logging
import re
from concurrent.futures import ThreadPoolExecutor

import pytest
import requests

from btcpay.merchants import keys
from btcpay.settings.logs import Discreet, JsonLines
from tests.support.builders import Live, until
from tests.support.wire import answered

REQUEST = {"request_id", "operation", "merchant_id", "key_id", "method", "status", "ms"}
EVERY = {"at", "level", "logger", "message"}
EMAIL = "ada.lovelace@example.com"
INVALID = "sk_test_" + "wrong" * 8 + "123"


def lines(live):
    """Every line of the log; each must be one JSON object."""
    return [json.loads(line) for line in live.log().splitlines()]


def line_of(live, answer):
    request_id = answer.headers["X-Request-Id"]
    return until(
        lambda: [
            line
            for line in lines(live)
            if line.get("request_id") == request_id and line["message"] == "request"
        ],
        "the line",
    )[0]


def test_each_request_has_one_line_that_says_what_and_whose(shop, tmp_path):
    invoice = shop.invoice()
    asked = [
        ("GET", f"/invoices/{invoice['id']}", shop.read_key, "get-invoice", 200),
        ("POST", "/payment-links", shop.write_key, "create-payment-link", 201),
        ("POST", "/payment-links", shop.read_key, "create-payment-link", 403),
        ("GET", "/balance", INVALID, "get-balance", 401),
        ("GET", "/nothing", shop.read_key, "none", 404),
        ("DELETE", "/balance", shop.read_key, "none", 405),
        ("GET", "/openapi.json", "", "openapi", 200),
    ]
    with Live(shop, tmp_path) as live:
        for method, path, key, operation, status in asked:
            answer = live.ask(method, path, key)
            line = line_of(live, answer)
            assert set(line) == EVERY | REQUEST
            assert answer.status_code == line["status"] == status
            assert (line["operation"], line["method"]) == (operation, method)
            assert line["merchant_id"] == (
                shop.merchant_id if key in shop.key_ids else None
            )
            assert line["key_id"] == shop.key_ids.get(key)
            assert 0 < line["ms"] < 20_000 and line["level"] == "info"
        for path, operation in (
            (f"/pay/{invoice['id']}", "GET /pay/<id>"),
            ("/healthz", "healthz"),
            ("/readyz", "readyz"),
            ("/nothing", "none"),
        ):
            answer = requests.get(live.url + path, timeout=60)
            assert line_of(live, answer)["operation"] == operation
        ids = [
            line["request_id"] for line in lines(live) if line["message"] == "request"
        ]
    assert len(ids) == len(set(ids))


@pytest.mark.slow
def test_everything_on_serve_is_json(shop, tmp_path, ticker):
    ticker.status = 500
    with Live(shop, tmp_path, by_command=True) as live:
        answer = live.ask("POST", "/invoices", shop.write_key, json={"amount_usd": 5})
        assert answer.status_code == 503
        live.stop()
        live.wait()
        logged = lines(live)
    assert {"gunicorn.error", "btcpay.prices.price", "btcpay.web.access_log"} <= {
        t["logger"] for t in logged
    }
    assert all(set(line) >= EVERY for line in logged)
    (no_price,) = [line for line in logged if line["message"].startswith("no price")]
    assert no_price["request_id"] == answer.headers["X-Request-Id"]
    assert no_price["level"] == "error"


def test_an_id_that_a_client_sends_is_not_believed(shop):
    mine = "req_" + "0" * 24
    answer = shop.get("/balance", headers={"X-Request-Id": mine})
    assert re.fullmatch("req_[0-9a-f]{24}", answer.headers["X-Request-Id"])
    assert answer.headers["X-Request-Id"] != mine
    assert answer.headers.getlist("X-Request-Id") == [answer.headers["X-Request-Id"]]


def test_a_server_error_has_one_id_in_answer_header_and_log(shop, caplog):
    shop.sql("ALTER TABLE payment_link RENAME TO gone")
    answer = shop.get("/payment-links")
    request_id = answer.headers["X-Request-Id"]
    message = answer.json["error"]["message"]
    assert message == f"something went wrong on our side; request id {request_id}"
    assert f"request {request_id} failed" in caplog.text
    page = shop.client.get("/link/lnk_" + "0" * 24)
    assert page.status_code == 500 and page.headers["X-Request-Id"] in caplog.text


def test_requests_at_once_keep_their_ids_apart(shop, tmp_path):
    with Live(shop, tmp_path) as live, ThreadPoolExecutor(8) as pool:

        def ask(number):
            limit = number + 1 if number % 2 else 0
            answer = live.ask("GET", f"/payments?limit={limit}", shop.read_key)
            return answer.headers["X-Request-Id"], answer.status_code

        answers = dict(pool.map(ask, range(60)))
        logged = until(
            lambda: (
                len(found := [x for x in lines(live) if x["message"] == "request"]) > 60
                and found
            ),
            "all lines",
        )
    statuses = {line["request_id"]: line["status"] for line in logged}
    assert answers.items() <= statuses.items()


def test_no_secret_and_no_email_is_in_the_log_wherever_they_are_sent(shop, tmp_path):
    key = shop.write_key
    order = {"amount_usd": 5, "customer_email": EMAIL, "description": "for Charles"}
    bearer = f"Authorization: Bearer {key}\r\n"
    malformed = [
        f"GET /api/v1/balance HTTP/1.1\r\nHost: x\r\nAuthorization Bearer {key}\r\n\r\n",
        f"GET /api/v1/balance HTTP/1.1\r\nHost: x\r\n{key}: {EMAIL}\r\n {EMAIL}\r\n\r\n",
        f"GET /{key} HTTP/9.9\r\n{bearer}\r\n",
        f"GET /{key} {EMAIL}\r\n{bearer}\r\n",
        f"{key} /api/v1/balance HTTP/1.1\r\nHost: x\r\n\r\n",
        f"GET /{key * 200} HTTP/1.1\r\nHost: x\r\n\r\n",
        f"GET / HTTP/1.1\r\nHost: x\r\nX-{EMAIL}: {key}\r\n\r\n",
        f"GET /api/v1/balance HTTP/1.1\r\nHost: {key} {EMAIL}\r\n{bearer}\r\n",
        f"POST /api/v1/invoices HTTP/1.1\r\nHost: x\r\n{bearer}Transfer-Encoding: {key}\r\n\r\n",
        f"POST /api/v1/invoices HTTP/1.1\r\nHost: x\r\n{bearer}Content-Length: {EMAIL}\r\n\r\n",
        f"POST /api/v1/invoices HTTP/1.1\r\nHost: x\r\n{bearer}Content-Type: application/json\r\n"
        f"Content-Length: 900\r\n\r\n{json.dumps(order)}",
        f"POST /api/v1/invoices HTTP/1.1\r\nHost: x\r\n{bearer}Content-Type: application/json\r\n"
        f"Transfer-Encoding: chunked\r\n\r\n{EMAIL}\r\n",
        f"GET /pay/{key}?email={EMAIL} HTTP/1.1\r\nHost: x\r\nCookie: a={key}\r\n\r\n",
        f"GET /link/{EMAIL} HTTP/1.1\r\nHost: x\r\nX-Request-Id: {key}\r\n\r\n",
        f"OPTIONS {key} HTTP/1.1\r\nHost: x\r\n\r\n",
        f"SECRET-{EMAIL.replace('@', '-')} / HTTP/1.1\r\nHost: x\r\n\r\n",
    ]
    with Live(shop, tmp_path) as live:
        live.ask(
            "POST", "/invoices", key, json=order, headers={"Idempotency-Key": EMAIL}
        )
        live.ask("POST", "/invoices", key, json=order | {"customer_email": EMAIL * 30})
        live.ask("POST", "/invoices", key, data=f'{{"{key}": {EMAIL}')
        live.ask("GET", f"/invoices?status={EMAIL}&key={key}", shop.read_key)
        live.ask("GET", f"/invoices/{key}?api_key={key}", shop.read_key)
        live.ask("GET", f"/{key}", INVALID)
        live.ask("GET", "/balance", headers={"Authorization": f"Basic {INVALID}"})
        requests.post(f"{live.url}/link/{key}", data={"amount": EMAIL}, timeout=60)
        for text in malformed:
            answered(live, text.encode(), hang_up=True)
        shop.sql("ALTER TABLE invoice RENAME TO gone")
        fault = live.ask(
            "POST", "/invoices", key, json=order, headers={"Idempotency-Key": key}
        )
        assert fault.status_code == 500
        until(lambda: "Traceback" in live.log(), "the fault to be in the log")
        line_of(live, fault)
        live.stop()
        live.wait()
        log = live.log()
        logged = lines(live)
    assert sum(line["message"] == "request" for line in logged) >= 10
    private = [
        key,
        shop.read_key,
        INVALID,
        EMAIL,
        "ada.",
        "lovelace",
        "Charles",
        "SECRET-",
    ]
    private += [keys.sha256_of(key), keys.sha256_of(shop.read_key), key[-20:]]
    assert [text for text in private if text in log] == []


@pytest.mark.parametrize(
    ("message", "arguments"),
    [
        ("Invalid request from ip=1.2.3.4: Invalid Header 'sk_test_x'", ()),
        ("Error handling request %s", ("/?key=sk_test_x",)),
        ("Error handling request %s %s", ("GET", "/sk_test_x")),
    ],
)
def test_what_gunicorn_quotes_is_withheld(message, arguments):
    record = logging.LogRecord("gunicorn.error", 30, "", 0, message, arguments, None)
    assert Discreet().filter(record)
    assert "sk_test_x" not in JsonLines().format(record)


@pytest.mark.parametrize(
    "text", ["two\nlines", 'a "quotation"', "\ud800 half a pair", "\x00\x1b[2J", "漢字"]
)
def test_a_line_is_one_line_whatever_it_says(text):
    line = JsonLines().format(logging.LogRecord("x", 30, "", 0, "%s", (text,), None))
    assert "\n" not in line and "\x1b" not in line
    assert json.loads(line)["level"] == "warning"
