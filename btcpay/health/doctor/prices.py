"""Examines the sources of the exchange rate (the price of one bitcoin)."""

from collections.abc import Iterator
from decimal import Decimal
from statistics import median
from urllib.parse import urlsplit

from btcpay.health.doctor.remedies import NETWORK_REMEDY, SANDBOX_REMEDY, remedy_for
from btcpay.health.doctor.shop import Shop
from btcpay.http import http_client
from btcpay.prices.price import Prices
from btcpay.prices.tickers import MAX_DEVIATION, agreed_price, fetch_price
from btcpay.settings.settings import Settings
from btcpay.settings.ticker_settings import PriceSource
from btcpay.values.errors import FetchError
from btcpay.values.finding import GREEN, RED, YELLOW, Colour, Finding
from btcpay.values.networks import SANDBOX_URL
from storage.database import Database
from storage.queries import links, merchants

REMEDY = "if this lasts, name another one in BLOCKTILL_PRICE_SOURCES"
# If one of three sources is wrong, the median is still a right price, or between two right ones.
ENOUGH = 3
CURRENCY_REMEDY = (
    "nothing can be sold in it until enough sources agree; if this lasts, see"
    " BLOCKTILL_CURRENCY_SOURCES"
)
Answer = Decimal | Exception


def findings(shop: Shop) -> Iterator[Finding]:
    """Yields a finding for each price source, and one for the price that they agree on.

    The finding about a source is green if the source gives a price near the median.
    Otherwise it is yellow if enough sources agree nevertheless, and red if not: without
    a price nothing can be sold.
    """
    settings = shop.settings
    answers = [_ask(source, settings.proxy) for source in settings.price_sources]
    prices = [answer for answer in answers if isinstance(answer, Decimal)]
    price_usd = agreed_price(prices, settings.price_quorum)
    fault_colour: Colour = YELLOW
    if price_usd is None:
        fault_colour = RED
    for source, answer in zip(settings.price_sources, answers, strict=True):
        yield _of_source(source, answer, prices, fault_colour)
    if price_usd is None:
        yield _no_price(settings, len(answers), len(prices))
    elif len(answers) < ENOUGH and settings.network.seeds:  # regtest has none
        sentence = f"{price_usd} USD for a bitcoin, by {len(answers)} alone: one that lies moves it"
        remedy = "set three or more in BLOCKTILL_PRICE_SOURCES"
        yield Finding("price", YELLOW, sentence, remedy)
    else:
        yield Finding("price", GREEN, f"{price_usd} USD for a bitcoin")


def _of_source(
    source: PriceSource,
    answer: Answer,
    prices: list[Decimal],
    fault_colour: Colour,
) -> Finding:
    """Returns the finding about one source.

    `prices` has the prices of all sources. `fault_colour` is the colour of the finding
    if the source fails or deviates from the median.
    """
    # Shows only the host, since the URL may contain an API key.
    name = f"price source {urlsplit(source.url).hostname}"
    if isinstance(answer, Exception):
        usual_remedy = REMEDY
        if source.url.startswith(f"{SANDBOX_URL}/"):
            usual_remedy = SANDBOX_REMEDY
        remedy = remedy_for(answer, "BLOCKTILL_PRICE_SOURCES", usual_remedy)
        return Finding(name, fault_colour, _sentence(answer, source), remedy)
    deviation = answer / median(prices) - 1
    sentence = f"{answer} USD, {deviation * 100:+.2f} % from the median"
    if abs(deviation) > MAX_DEVIATION:
        return Finding(name, fault_colour, sentence, REMEDY)
    return Finding(name, GREEN, sentence)


def _no_price(settings: Settings, source_count: int, price_count: int) -> Finding:
    """Returns the finding that there is no agreed price.

    `price_count` is the number of sources that returned a price.
    """
    if price_count:
        reason = (
            f"{settings.price_quorum} of {source_count} sources must agree within 5 %,"
            " and fewer do"
        )
    elif source_count == 1:
        reason = "none of 1 source answers"
    else:
        reason = f"none of {source_count} sources answers"
    remedy = (
        "no invoice can be made until enough sources agree; if none answers,"
        f" {NETWORK_REMEDY}"
    )
    return Finding("price", RED, f"no price: {reason}", remedy)


def other_currencies(shop: Shop, db: Database) -> Iterator[Finding]:
    """Yields a finding about the price in each currency that is in use, except USD.

    These are the currencies of merchants and of active payment links.
    """
    prices = Prices(shop.settings)
    currencies = {row.currency for row in db.rows(merchants.CURRENCIES)}
    currencies |= {row.currency for row in db.rows(links.CURRENCIES)}
    for currency in sorted(currencies - {"USD"}):
        name = f"price in {currency}"
        price = prices.rate_for(currency).current_price_or_none()
        if price is None:
            sentence = "none: too few sources know one, or agree on it"
            yield Finding(name, RED, sentence, CURRENCY_REMEDY)
        else:
            yield Finding(name, GREEN, f"{price:f} {currency} for a bitcoin")


def _ask(source: PriceSource, proxy: str) -> Answer:
    """Returns the source's price, or the exception if it cannot be fetched."""
    session = http_client.Session(proxy=proxy)
    try:
        return fetch_price(session, source, lambda sent_at: None)
    except (LookupError, FetchError, ValueError) as error:
        return error


def _sentence(error: Exception, source: PriceSource) -> str:
    if isinstance(error, LookupError):
        return f"has nothing at {source.pointer} in its answer"
    return str(error)
