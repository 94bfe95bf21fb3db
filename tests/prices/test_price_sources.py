"""The price over real sockets: fresh, old, failing, slow, and asked by many threads at once."""

import threading
from decimal import Decimal

import pytest

from btcpay.prices import price, tickers
from btcpay.prices.price import Rate
from btcpay.settings.ticker_settings import PriceSource
from btcpay.values.errors import PriceUnavailable
from tests.support.builders import Seconds, at_once
from tests.support.fake_esplora import FakeEsplora, dropped, say, silent


@pytest.fixture
def seconds():
    return Seconds()


@pytest.fixture
def server():
    """Answers 100 at every path unless told otherwise."""
    with FakeEsplora() as fake:
        fake.instead = lambda _: say({"usd": "100"})
        yield fake


def prices_of(server, seconds, sources=1, quorum=1, max_age_s=120):
    asked = [
        PriceSource(f"{server.root}/{number}", "/usd") for number in range(sources)
    ]
    return Rate("USD", asked, quorum, max_age_s, seconds)


def tells(usd):
    return lambda _: say({"usd": usd})


def fails(_path):
    return say("Service Unavailable", 503)


@pytest.mark.parametrize(
    "reply",
    [
        pytest.param(say({"usd": "100"}, 500), id="a 500 with a number"),
        pytest.param(say({"error": "maintenance"}), id="a 200 with no number in it"),
        pytest.param(say("<!doctype html>"), id="a 200 with HTML"),
        pytest.param(say(""), id="a 200 with nothing"),
        pytest.param(say(b" " * 1_000_001), id="a huge body"),
        pytest.param(dropped, id="a closed connection"),
    ],
)
def test_a_source_without_a_number_has_failed(server, seconds, reply):
    server.instead = lambda _: reply
    assert prices_of(server, seconds).current_price_or_none() is None


def test_the_log_of_a_failed_source_holds_no_key_from_its_query(
    server, seconds, caplog
):
    server.instead = fails
    source = PriceSource(f"{server.root}/?api_key=hunter2", "/usd")
    assert Rate("USD", [source], 1, 120, seconds).current_price_or_none() is None
    assert "503" in caplog.text and "hunter2" not in caplog.text


def test_a_source_that_never_answers_is_left_and_the_others_decide(
    server, seconds, released, monkeypatch
):
    monkeypatch.setattr(tickers, "SOURCE_TIMEOUT_S", 0.5)
    server.instead = lambda path: (
        silent(released) if path == "/0" else say({"usd": "100"})
    )
    assert prices_of(server, seconds, sources=3, quorum=2).current_price() == 100


def test_all_sources_are_asked_at_the_same_time(server, seconds):
    barrier = threading.Barrier(5)

    def together(_path):
        barrier.wait(60)  # BrokenBarrierError, and no answer, unless all five are here
        return say({"usd": "100"})

    server.instead = together
    assert prices_of(server, seconds, sources=5, quorum=5).current_price() == 100


@pytest.mark.parametrize(("max_age_s", "fresh_s"), [(120, 30), (10, 10)])
def test_a_price_is_fresh_for_30_seconds_and_no_longer_than_the_age_limit(
    server, seconds, max_age_s, fresh_s
):
    prices = prices_of(server, seconds, max_age_s=max_age_s)
    prices.current_price()
    server.instead = tells("200")
    seconds.at_s += fresh_s - 0.1
    assert (prices.current_price(), len(server.asked)) == (100, 1)
    seconds.at_s += 0.1
    assert (prices.current_price(), len(server.asked)) == (200, 2)


def test_after_a_failure_the_old_price_serves_to_the_age_limit_and_then_nothing(
    server, seconds
):
    prices = prices_of(server, seconds)
    prices.current_price()
    server.instead = fails
    seconds.at_s += 119.9
    assert prices.current_price() == 100
    seconds.at_s += 0.1
    with pytest.raises(PriceUnavailable, match="unavailable"):
        prices.current_price()


def test_a_failure_is_remembered_for_two_seconds(server, seconds):
    prices = prices_of(server, seconds)
    server.instead = fails
    assert prices.current_price_or_none() is None
    server.instead = tells("100")
    seconds.at_s += 1.9
    assert (prices.current_price_or_none(), len(server.asked)) == (None, 1)
    seconds.at_s += 0.1
    assert (prices.current_price_or_none(), len(server.asked)) == (100, 2)


@pytest.mark.parametrize("age_s", [1, 1.9, 2])
def test_after_an_answer_nobody_waits_however_short_the_age_limit(
    server, seconds, age_s
):
    prices = prices_of(server, seconds, max_age_s=1)
    for asked in range(1, 5):
        assert (prices.current_price(), len(server.asked)) == (100, asked)
        seconds.at_s += age_s


@pytest.mark.parametrize(
    "answer", [pytest.param(100, id="a price"), pytest.param(None, id="none")]
)
def test_twenty_threads_ask_once_and_share_the_outcome(server, answer):
    """Each reading of the clock is 3 s later: no thread that waited may think the outcome old."""
    readings = iter(range(1, 10_000))
    calling = threading.Semaphore(0)

    def seconds():
        calling.release()
        return next(readings) * 3

    def slow(path):
        for _ in range(20):  # not before all twenty have come
            assert calling.acquire(timeout=60)
        return fails(path) if answer is None else say({"usd": "100"})

    server.instead = slow
    prices = prices_of(server, seconds)
    assert at_once(20, lambda _: prices.current_price_or_none()) == [answer] * 20
    assert len(server.asked) == 1


def test_while_one_thread_refreshes_the_others_take_the_old_price(server, seconds):
    prices = prices_of(server, seconds)
    prices.current_price()
    seconds.at_s += price.FRESH_S
    served = threading.Event()

    def waiting(_path):
        served.wait(60)
        return say({"usd": "200"})

    server.instead = waiting
    refreshed: list[Decimal] = []
    refreshing = threading.Thread(
        target=lambda: refreshed.append(prices.current_price())
    )
    refreshing.start()
    while len(server.asked) < 2:  # until the refresh is under way
        refreshing.join(0.001)
    assert at_once(5, lambda _: prices.current_price()) == [100] * 5
    served.set()
    refreshing.join()
    assert refreshed == [200] and len(server.asked) == 2
