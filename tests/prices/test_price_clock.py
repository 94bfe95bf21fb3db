"""The service's clock against the price sources': hours ahead, it makes no invoice."""

import re
from collections.abc import Callable, Iterator
from datetime import timedelta
from email.utils import format_datetime

import pytest
from builders import Clock, Shop
from fake_esplora import FakeEsplora, Reply, say
from payer import Page, press

from btcpay.health.doctor import prices
from btcpay.health.doctor.finding import Shop as Examined
from btcpay.http.clock_skew import agreed_ahead

MINUTE = timedelta(minutes=1)
AHEAD = timedelta(hours=3)
Tell = Callable[[int, timedelta | None], None]


@pytest.mark.parametrize(
    ("minutes", "asked", "ahead"),
    [
        pytest.param([], 5, 0, id="nobody told the time"),
        pytest.param([180], 1, 180, id="the only source says so"),
        pytest.param([180, 0, 0, 0, 0], 5, 0, id="one liar of five does nothing"),
        pytest.param([180, 180, 0, 0, 0], 5, 0, id="nor do two"),
        pytest.param([180, 170, 160, 0, 0], 5, 160, id="three of five: by what all three say"),
        pytest.param([180, 180], 5, 0, id="two of five, the others say nothing"),
        pytest.param([180, 180, 180], 5, 180, id="three of five, the others say nothing"),
        pytest.param([180, 180], 3, 180, id="two of three"),
        pytest.param([180, 0], 2, 0, id="one of two is no majority"),
        pytest.param([2, 2, 2], 3, 0, id="two minutes are forgiven"),
        pytest.param([2.1, 2.1, 2.1], 3, 2.1, id="and no more"),
        pytest.param([-180, -180, -180], 3, 0, id="behind is not ahead"),
    ],
)
def test_so_far_ahead_as_more_than_half_of_the_sources_say(minutes, asked, ahead):
    assert agreed_ahead([n * MINUTE for n in minutes], asked) == ahead * MINUTE


@pytest.fixture
def tickers(clock: Clock) -> Iterator[FakeEsplora]:
    """Five sources elsewhere, behind a proxy on this machine; each has the right clock."""
    with FakeEsplora() as fake:
        tell_of(fake, clock)(0, timedelta())
        yield fake


def tell_of(tickers: FakeEsplora, clock: Clock) -> Tell:
    """Has so many of the five say that it is `early` before what it is; None: they do not say."""
    right = clock.at

    def tell(liars: int, early: timedelta | None) -> None:
        def instead(path: str) -> Reply:
            is_liar = int(path.rpartition("/")[2]) < liars
            lie = timedelta() if not is_liar else early
            date = {} if lie is None else {"Date": format_datetime(right - lie, usegmt=True)}
            return say({"usd": "60000"}, **date)

        tickers.instead = instead

    return tell


@pytest.fixture
def tell(tickers: FakeEsplora, clock: Clock) -> Tell:
    return tell_of(tickers, clock)


@pytest.fixture
def shop(open_shops, tickers: FakeEsplora) -> Shop:
    """A shop that asks these five."""
    sources = " ".join(f"http://ticker.example/{number}#/usd" for number in range(5))
    return open_shops(BTCPAY_PRICE_SOURCES=sources, BTCPAY_PROXY=tickers.root)


def order(shop: Shop, **headers: str):
    return shop.post("/invoices", {"amount_usd": 5}, headers=headers)


def test_a_machine_whose_clock_is_hours_ahead_makes_no_invoice_and_says_why(
    shop: Shop, clock: Clock, caplog
) -> None:
    clock.move(hours=3)
    refused = order(shop)
    assert (refused.status_code, refused.json["error"]["code"]) == (503, "price_unavailable")
    assert re.search("clock is 1(0799|0800) s ahead", refused.json["error"]["message"])
    assert "Retry-After" not in refused.headers
    assert shop.get("/invoices").json["data"] == []
    (told,) = (record.message for record in caplog.records if record.levelname == "ERROR")
    assert "timedatectl" in told
    clock.move(hours=-3)
    assert order(shop).status_code == 201


def test_its_links_make_none_either(shop: Shop, clock: Clock) -> None:
    link = shop.link(amount_usd=5)
    clock.move(hours=3)
    refused = press(shop.client, link)
    assert refused.status_code == 503 and "not available" in Page(refused.text).texts["problem"]


@pytest.mark.parametrize(("seconds", "status"), [(119, 201), (123, 503)])
def test_two_minutes_are_forgiven(shop: Shop, clock: Clock, seconds: int, status: int) -> None:
    clock.move(seconds=seconds)
    assert order(shop).status_code == status


def test_a_step_after_the_sources_were_asked_is_noticed(
    shop: Shop, clock: Clock, tickers: FakeEsplora
) -> None:
    assert order(shop).status_code == 201
    clock.move(hours=3)
    assert order(shop).status_code == 503 and len(tickers.asked) == 5


@pytest.mark.parametrize(
    ("liars", "status"),
    [
        pytest.param(1, 201, id="one does nothing"),
        pytest.param(2, 201, id="two do nothing"),
        pytest.param(3, 503, id="three could set the price, too"),
    ],
)
def test_sources_that_say_it_is_earlier(shop: Shop, tell: Tell, liars: int, status: int) -> None:
    tell(liars, AHEAD)
    assert order(shop).status_code == status


@pytest.mark.parametrize(
    ("liars", "status"),
    [
        pytest.param(2, 503, id="two cannot hide that we are ahead"),
        pytest.param(3, 201, id="three can, as three without a Date"),
    ],
)
@pytest.mark.parametrize("early", [-AHEAD, None], ids=["agree with us", "do not say"])
def test_sources_that_agree_with_a_clock_that_is_ahead(
    shop: Shop, clock: Clock, tell: Tell, liars: int, status: int, early: timedelta | None
) -> None:
    clock.move(hours=3)
    tell(liars, early)
    assert order(shop).status_code == status


def test_a_clock_that_is_behind_makes_invoices(shop: Shop, clock: Clock) -> None:
    clock.move(hours=-3)
    assert order(shop).status_code == 201


def test_balance_and_replays_do_not_wait_for_the_right_time(shop: Shop, clock: Clock) -> None:
    retry = {"Idempotency-Key": "order 7"}
    first = order(shop, **retry)
    clock.move(hours=3)
    assert shop.get("/balance").json["confirmed_usd"] == 0
    assert order(shop, **retry).data == first.data
    assert order(shop, **{"Idempotency-Key": "order 8"}).status_code == 503
    clock.move(hours=-3)
    assert order(shop, **{"Idempotency-Key": "order 8"}).status_code == 201  # it was given back


@pytest.mark.parametrize(
    ("hours", "colour"), [pytest.param(3, "red", id="ahead"), pytest.param(-3, None, id="behind")]
)
def test_the_doctor_is_red_when_no_invoice_can_be_made(
    shop: Shop, clock: Clock, hours: int, colour: str | None
) -> None:
    clock.move(hours=hours)
    examined = Examined(shop.service.settings, shop.environ, clock, lambda _: 10**12)
    found = {finding.name: finding for finding in prices.findings(examined)}
    assert found["price"].colour == "green"
    finding = found.get("clock of the prices")
    assert (finding and finding.colour) == colour
    if finding:
        assert "no invoice is made" in finding.sentence and "timedatectl" in finding.remedy


def test_sources_on_this_machine_tell_nothing(open_shops, ticker, clock: Clock) -> None:
    shop = open_shops()
    clock.move(hours=3)
    assert order(shop).status_code == 201
