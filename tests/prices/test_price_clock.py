"""The service's clock against the price sources': hours ahead, it makes no invoice."""

import re
from datetime import timedelta
from email.utils import format_datetime

import pytest

from btcpay.http.clock_skew import agreed_time_ahead
from tests.support.fake_esplora import FakeEsplora, say

MINUTE = timedelta(minutes=1)


@pytest.mark.parametrize(
    ("minutes", "asked", "ahead"),
    [
        pytest.param([], 5, 0, id="nobody gave the time"),
        pytest.param([180], 1, 180, id="the only source says so"),
        pytest.param([180, 0, 0, 0, 0], 5, 0, id="one liar of five does nothing"),
        pytest.param([180, 180, 0, 0, 0], 5, 0, id="nor do two"),
        pytest.param(
            [180, 170, 160, 0, 0], 5, 160, id="three of five: by what all three say"
        ),
        pytest.param([180, 180], 5, 0, id="two of five, the others say nothing"),
        pytest.param(
            [180, 180, 180], 5, 180, id="three of five, the others say nothing"
        ),
        pytest.param([180, 180], 3, 180, id="two of three"),
        pytest.param([180, 0], 2, 0, id="one of two is no majority"),
        pytest.param([2, 2, 2], 3, 0, id="two minutes are forgiven"),
        pytest.param([2.1, 2.1, 2.1], 3, 2.1, id="and no more"),
        pytest.param([-180, -180, -180], 3, 0, id="behind is not ahead"),
    ],
)
def test_so_far_ahead_as_more_than_half_of_the_sources_say(minutes, asked, ahead):
    assert agreed_time_ahead([n * MINUTE for n in minutes], asked) == ahead * MINUTE


@pytest.fixture
def tickers(clock):
    """Five sources elsewhere, behind a proxy on this machine; each has the right clock."""
    right = {"Date": format_datetime(clock.at, usegmt=True)}
    with FakeEsplora() as fake:
        fake.instead = lambda _: say({"usd": "60000"}, **right)
        yield fake


@pytest.fixture
def shop(open_shops, tickers):
    """A shop that asks these five."""
    sources = " ".join(f"http://ticker.example/{number}#/usd" for number in range(5))
    return open_shops(BLOCKTILL_PRICE_SOURCES=sources, BLOCKTILL_PROXY=tickers.root)


def order(shop, **headers):
    return shop.post("/invoices", {"amount_usd": 5}, headers=headers)


def test_a_machine_whose_clock_is_hours_ahead_makes_no_invoice_and_says_why(
    shop, clock, caplog
):
    clock.move(hours=3)
    refused = order(shop)
    assert (refused.status_code, refused.json["error"]["code"]) == (
        503,
        "price_unavailable",
    )
    assert re.search("clock is 1(0799|0800) s ahead", refused.json["error"]["message"])
    assert "Retry-After" not in refused.headers
    assert shop.get("/invoices").json["data"] == []
    (message,) = (
        record.message for record in caplog.records if record.levelname == "ERROR"
    )
    assert "timedatectl" in message
    clock.move(hours=-3)
    assert order(shop).status_code == 201


def test_a_step_after_the_sources_were_asked_is_noticed(shop, clock, tickers):
    assert order(shop).status_code == 201
    clock.move(hours=3)
    assert order(shop).status_code == 503 and len(tickers.asked) == 5


def test_balance_and_replays_do_not_wait_for_the_right_time(shop, clock):
    retry = {"Idempotency-Key": "order 7"}
    first = order(shop, **retry)
    clock.move(hours=3)
    assert shop.get("/balance").json["confirmed_usd"] == 0
    assert order(shop, **retry).data == first.data
    assert order(shop, **{"Idempotency-Key": "order 8"}).status_code == 503
    clock.move(hours=-3)
    assert (
        order(shop, **{"Idempotency-Key": "order 8"}).status_code == 201
    )  # it was given back


def test_sources_on_this_machine_tell_nothing(open_shops, ticker, clock):
    shop = open_shops()
    clock.move(hours=3)
    assert order(shop).status_code == 201
