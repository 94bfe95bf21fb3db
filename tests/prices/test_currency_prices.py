"""The price in another currency: asked beside the dollars, by their rules, waited for briefly."""

import threading
import time
from decimal import Decimal

import pytest

from btcpay.prices.price import Prices
from btcpay.settings import settings
from btcpay.settings.ticker_settings import PriceSource, currency_sources
from btcpay.values.errors import CommandError
from btcpay.values.money import checked_currency, places_of, round_money
from btcpay.values.networks import NETWORKS
from tests.support.fake_esplora import FakeEsplora, say, silent

SOURCES = (
    "{root}/0/{{CURRENCY}}#/{{currency}} {root}/1#/{{currency}} {root}/2#/{{currency}}"
)


@pytest.fixture
def server():
    """Says what a bitcoin costs at every path unless told otherwise."""
    with FakeEsplora() as fake:
        fake.instead = lambda _: say({"usd": "100", "eur": "90", "jpy": 15000})
        yield fake


def prices_of(server, sources=SOURCES):
    return Prices(
        settings.read(
            {
                "BLOCKTILL_PRICE_SOURCES": f"{server.root}/usd#/usd",
                "BLOCKTILL_CURRENCY_SOURCES": sources.format(root=server.root),
            }
        )
    )


def test_each_currency_has_a_price_of_its_own_and_none_of_them_is_the_dollars(server):
    prices = prices_of(server)
    assert prices.rate_for("EUR").current_price_or_none() == 90
    assert sorted(server.asked) == ["/0/EUR", "/1", "/2"]
    assert [
        prices.rate_for(code).current_price_or_none() for code in ("JPY", "XPF")
    ] == [
        15000,
        None,
    ]
    assert (
        prices.usd.current_price() == 100
        and prices.rate_for("EUR").cached_price() == 90
    )


@pytest.mark.parametrize(
    ("euros", "agreed"),
    [
        (["90", "92", None], "91"),
        (["90", None, None], None),
        (["90", "91", "900"], "90.5"),
    ],
    ids=["two of three suffice", "one of three does not", "a liar is dropped"],
)
def test_the_rules_are_those_of_the_dollar(server, euros, agreed):
    """Their whole table: test_price.py."""

    def tell(path):
        euro = euros[int(path[1])]
        return say({"eur": euro}) if euro else say("Not Found", 404)

    server.instead = tell
    price = prices_of(server).rate_for("EUR").current_price_or_none()
    assert price == (None if agreed is None else Decimal(agreed))


def took_s(what):
    began_s = time.monotonic()
    what()
    return time.monotonic() - began_s


def test_nobody_waits_longer_for_a_silent_ticker_than_their_patience_and_only_once(
    server,
):
    released = threading.Event()
    server.instead = lambda _: silent(released)
    euro = prices_of(server).rate_for("EUR")
    try:
        assert took_s(lambda: euro.start_refresh()) < 20
        assert euro.cached_price(0.2) is None
    finally:
        released.set()
    assert euro.current_price_or_none() is None  # it has failed by now
    released.clear()
    try:
        euro.start_refresh()
        assert took_s(lambda: euro.cached_price(60)) < 30
    finally:
        released.set()


def test_what_nobody_asked_for_is_not_known(server):
    assert (
        prices_of(server).rate_for("EUR").cached_price(60) is None
        and server.asked == []
    )


def test_every_public_ticker_has_a_place_for_the_currency():
    sources = currency_sources(" ".join(NETWORKS["mainnet"].currency_sources))
    assert len({source.of("EUR").url.split("/")[2] for source in sources}) == 5
    assert PriceSource("http://a/{CURRENCY}", "/{currency}").of("EUR") == PriceSource(
        "http://a/EUR", "/eur"
    )


@pytest.mark.parametrize(
    ("code", "amount", "text"),
    [
        ("EUR", "23.005", "23.00"),
        ("JPY", "3750.5", "3750"),
        ("KWD", "7.70049", "7.700"),
    ],
)
def test_an_amount_has_the_decimals_of_its_currency(code, amount, text):
    assert str(round_money(Decimal(amount), code)) == text
    assert places_of(code) == len(text.partition(".")[2])


@pytest.mark.parametrize("code", ["EUR", "eur", "usd", "CHF", "jpy", "BHD"])
def test_codes_of_iso_4217_are_taken_in_any_case(code):
    assert checked_currency(code) == code.upper()


@pytest.mark.parametrize("code", ["EUX", "BTC", "", "EU", "EUR GBP", "\u20ac"])
def test_codes_outside_iso_4217_are_refused(code):
    with pytest.raises(CommandError, match="EUR"):
        checked_currency(code)
