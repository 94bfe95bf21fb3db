"""Idempotency-Key: a retry gets the first answer again and never makes a second resource."""

from concurrent.futures import Future, ThreadPoolExecutor
from datetime import UTC, datetime, timedelta

import pytest
import requests
from werkzeug.test import TestResponse

from btcpay.prices import price
from btcpay.values.times import to_ms
from btcpay.web import body as web_body
from storage.queries import idempotency, merchants
from tests.support.builders import Live, at_once, until

pytestmark = pytest.mark.both_databases

ORDER = {"amount_usd": 5}
RETRY = {"Idempotency-Key": "order 7"}


@pytest.fixture
def pool():
    with ThreadPoolExecutor(max_workers=8) as executor:
        yield executor


def order(shop, body=None, **headers):
    return shop.post("/invoices", body or ORDER, headers=RETRY | headers)


def count(shop, path="/invoices"):
    return len(shop.get(f"{path}?limit=100").json["data"])


def addresses_used(shop):
    return shop.service.db.get(merchants.BY_ID, id=shop.merchant_id).next_index


def held_row(shop):
    return shop.service.db.get(
        idempotency.FIND,
        merchant_id=shop.merchant_id,
        operation="create-invoice",
        idempotency_key=RETRY["Idempotency-Key"],
    )


def claim_and_die(shop):
    """The state left by a process that dies between claiming the key and storing the invoice."""
    now_ms = to_ms(shop.clock())
    shop.service.db.run(
        idempotency.CLAIM,
        merchant_id=shop.merchant_id,
        operation="create-invoice",
        idempotency_key=RETRY["Idempotency-Key"],
        body_sha256=web_body.sha256(ORDER),
        owner="own_of_the_dead",
        locked_ms=now_ms,
        created_ms=now_ms,
        since=0,
        until=0,
    )


@pytest.mark.parametrize("path", ["/invoices", "/payment-links"])
def test_a_repeat_gets_the_first_answer_again_and_makes_nothing(shop, path):
    first = shop.post(path, ORDER, headers=RETRY)
    shop.clock.move(minutes=5)
    second = shop.post(path, ORDER, headers=RETRY)
    assert "Idempotent-Replayed" not in first.headers
    assert second.headers["Idempotent-Replayed"] == "true"
    assert (
        (second.status_code, second.data)
        == (first.status_code, first.data)
        == (201, first.data)
    )
    assert second.mimetype == "application/json" and count(shop, path) == 1
    kept = shop.sql("SELECT response FROM idempotency_key").fetchone()[0]
    assert f"{kept}\n".encode() == first.data


def test_a_repeat_needs_no_price(shop, ticker, monkeypatch):
    first = order(shop)
    ticker.status = 500
    monkeypatch.setattr(shop.service.prices.usd, "max_age_s", 0)
    assert shop.post("/invoices", ORDER).status_code == 503
    assert order(shop).data == first.data


FIVE = '{"amount_usd": 5}'
ONE = '{"amount_usd": 5, "x": 1}'
SAME = {
    "10 and 10.0": ('{"amount_usd": 10}', '{"amount_usd": 10.0}'),
    "10 and 1e1": ('{"amount_usd": 10}', '{"amount_usd": 1e1}'),
    "0.5 and 500E-3": ('{"amount_usd": 0.5}', '{"amount_usd": 500E-3}'),
    "zero and minus zero": (
        '{"amount_usd": 5, "x": 0}',
        '{"amount_usd": 5, "x": -0.0}',
    ),
    "another order and spacing": (
        '{"amount_usd": 5, "x": {}}',
        '{"x":{},"amount_usd":5}',
    ),
    "an escape": ('{"amount_usd": 5, "x": "é"}', '{"amount_usd": 5, "x": "\\u00e9"}'),
}
OTHER = {
    "the 27th decimal": (FIVE, '{"amount_usd": 5.000000000000000000000000001}'),
    "another amount": (FIVE, '{"amount_usd": 6}'),
    "a null more": (FIVE, '{"amount_usd": 5, "description": null}'),
    "an ignored field more": (FIVE, ONE),
    "a number and its text": (ONE, '{"amount_usd": 5, "x": "1"}'),
    "one and true": (ONE, '{"amount_usd": 5, "x": true}'),
    "another array order": (
        '{"amount_usd": 5, "x": [1, 2]}',
        '{"amount_usd": 5, "x": [2, 1]}',
    ),
    "a disguise": (ONE, '{"amount_usd": 5, "x": ["number", "1e0"]}'),
}


@pytest.mark.parametrize(("one", "other"), (SAME | OTHER).values(), ids=SAME | OTHER)
def test_the_same_value_is_the_same_body_and_another_one_is_a_conflict(
    shop, one, other
):
    first, second = (
        shop.post(
            "/invoices",
            data=body.encode(),
            content_type="application/json",
            headers=RETRY,
        )
        for body in (one, other)
    )
    assert first.status_code == 201 and count(shop) == 1
    if (one, other) in SAME.values():
        assert (
            second.data == first.data
            and second.headers["Idempotent-Replayed"] == "true"
        )
    else:
        assert (second.status_code, second.json["error"]["code"]) == (409, "conflict")


def test_no_body_and_an_empty_object_make_the_same_link(shop):
    first = shop.post("/payment-links", headers=RETRY)
    second = shop.post("/payment-links", {}, headers=RETRY)
    assert second.data == first.data


def test_a_key_belongs_to_an_operation_of_a_merchant_whichever_api_key_it_uses(shop):
    first = order(shop)
    assert (
        shop.post("/invoices", ORDER, shop.issue("write"), headers=RETRY).data
        == first.data
    )
    other = shop.issue("write", shop.add_merchant("other"))
    theirs = shop.post("/invoices", {"amount_usd": 6}, other, headers=RETRY)
    assert theirs.status_code == 201 and "Idempotent-Replayed" not in theirs.headers
    link = shop.post("/payment-links", ORDER, headers=RETRY)
    assert (link.status_code, link.json["object"]) == (201, "payment_link")


def test_keys_differ_by_case_and_inner_blanks(shop):
    for key in ("order 7", "Order 7", "order  7"):
        assert order(shop, **{"Idempotency-Key": key}).status_code == 201
    assert count(shop) == 3


def test_what_is_refused_does_not_spend_the_key(shop):
    for body in ({"amount_usd": -1}, {"amount_usd": "5"}, {"description": "no amount"}):
        assert order(shop, body).status_code == 400
    assert (
        shop.post("/invoices", ORDER, shop.read_key, headers=RETRY).status_code == 403
    )
    assert order(shop, {"amount_usd": 6}).status_code == 201


def test_a_price_that_is_unavailable_does_not_spend_the_key(shop, ticker, monkeypatch):
    monkeypatch.setattr(price, "RETRY_S", 0)
    ticker.status = 500
    assert order(shop).status_code == 503
    ticker.status = 200
    fresh = order(shop)
    assert fresh.status_code == 201 and "Idempotent-Replayed" not in fresh.headers
    assert order(shop, {"amount_usd": 6}).status_code == 409


def test_a_fault_does_not_spend_the_key_nor_an_address(shop):
    shop.sql("ALTER TABLE invoice RENAME TO gone")
    assert order(shop).status_code == 500
    shop.sql("ALTER TABLE gone RENAME TO invoice")
    assert order(shop).status_code == 201
    assert addresses_used(shop) == 1


# memory: the check forgets, which has compared its clock; no request does
@pytest.mark.parametrize(
    "ahead", [{"hours": 25}, {"days": 3650}], ids=["a day", "ten years"]
)
def test_a_service_whose_clock_is_ahead_frees_no_key(shop, ahead):
    first = order(shop)
    link = shop.post("/payment-links", headers=RETRY)
    shop.clock.move(**ahead)
    assert order(shop).data == first.data
    assert shop.post("/payment-links", headers=RETRY).data == link.data
    assert order(shop, {"amount_usd": 6}).status_code == 409
    assert count(shop) == count(shop, "/payment-links") == addresses_used(shop) == 1


@pytest.mark.parametrize(
    ("ttl", "hours", "milliseconds", "replayed"),
    [
        pytest.param({}, 24, 0, True, id="after exactly 24 hours it is remembered"),
        pytest.param({}, 24, 1, False, id="a millisecond later not"),
        pytest.param(
            {"BLOCKTILL_IDEMPOTENCY_TTL_H": "1"}, 1, 0, True, id="an hour, as set"
        ),
        pytest.param(
            {"BLOCKTILL_IDEMPOTENCY_TTL_H": "1"}, 1, 1, False, id="no longer than set"
        ),
    ],
)
def test_a_key_is_remembered_for_24_hours_or_as_the_setting_says(
    open_tills, ttl, hours, milliseconds, replayed
):
    till = open_tills(**ttl)
    first = order(till.shop)
    till.clock.move(hours=hours, milliseconds=milliseconds)
    assert order(till.shop).data == first.data
    till.check()
    second = order(till.shop)
    assert second.status_code == 201
    assert (second.data == first.data) == replayed
    assert count(till.shop) == (1 if replayed else 2)


@pytest.mark.parametrize("body", [ORDER, {"amount_usd": 6}])
def test_a_dead_holder_locks_its_key_for_less_than_a_minute(shop, body):
    claim_and_die(shop)
    for seconds in (0, 59.999):
        shop.clock.move(seconds=seconds)
        refused = order(shop, body)
        assert (refused.status_code, refused.json["error"]["code"]) == (409, "conflict")
    shop.clock.move(milliseconds=1)
    assert order(shop, body).status_code == 201
    assert count(shop) == addresses_used(shop) == 1


def test_a_claim_from_the_future_locks_no_longer_than_a_minute_either(shop):
    shop.clock.move(hours=3)
    claim_and_die(shop)
    shop.clock.move(hours=-3)
    assert order(shop).status_code == 201


def test_a_holder_that_was_overtaken_makes_nothing(shop, ticker, pool):
    with ticker.silent():
        slow: Future[TestResponse] = pool.submit(order, shop)
        until(lambda: ticker.asked == 1, "the first request to ask for the price")
        owner = held_row(shop).owner
        shop.clock.move(seconds=60)
        quick: Future[TestResponse] = pool.submit(order, shop)
        until(
            lambda: held_row(shop).owner != owner, "the second request to take the key"
        )
    assert (slow.result().status_code, quick.result().status_code) == (409, 201)
    assert count(shop) == addresses_used(shop) == 1
    assert order(shop).data == quick.result().data


def test_two_at_once_make_one_invoice(shop, ticker, pool):
    with ticker.silent():
        first: Future[TestResponse] = pool.submit(order, shop)
        until(lambda: ticker.asked == 1, "the first request to ask for the price")
        second = order(shop)
        assert (second.status_code, second.json["error"]["code"]) == (409, "conflict")
        assert not first.done()
    assert first.result().status_code == 201
    assert order(shop).data == first.result().data
    assert count(shop) == addresses_used(shop) == 1


def test_many_at_once_make_one_invoice(shop):
    keys = [shop.issue("write") for _ in range(8)]
    for rounds in range(1, 6):
        headers = {"Idempotency-Key": f"round {rounds}"}

        def ask(number, headers=headers):
            return shop.post("/invoices", ORDER, keys[number], headers=headers)

        answers = at_once(8, ask)
        assert {answer.status_code for answer in answers} <= {201, 409}
        assert (
            len({answer.data for answer in answers if answer.status_code == 201}) == 1
        )
        assert count(shop) == addresses_used(shop) == rounds


def test_a_server_killed_in_the_middle_leaves_no_invoice_and_a_key_usable_after_a_minute(
    shop, ticker, pool, tmp_path
):
    with Live(shop, tmp_path) as live, ticker.silent():
        sent = {"json": ORDER, "headers": RETRY}
        cut = pool.submit(live.ask, "POST", "/invoices", shop.write_key, **sent)
        until(lambda: ticker.asked == 1, "the request to ask for the price")
        live.kill()
        assert isinstance(cut.exception(), requests.ConnectionError)
        assert count(shop) == addresses_used(shop) == 0
    locked_at = datetime.fromtimestamp(held_row(shop).locked_ms / 1000, UTC)
    shop.clock.at = locked_at + timedelta(seconds=59)
    assert order(shop).status_code == 409
    shop.clock.at = locked_at + timedelta(seconds=60)
    made = order(shop)
    assert made.status_code == 201 and "Idempotent-Replayed" not in made.headers
    assert count(shop) == addresses_used(shop) == 1
