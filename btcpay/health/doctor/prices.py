"""Every price source: its answer, and the distance of its price from the others'."""

from collections.abc import Iterator
from decimal import Decimal
from statistics import median
from urllib.parse import urlsplit

from btcpay.health.doctor.explorers import OF_NETWORK, OF_SANDBOX
from btcpay.health.doctor.remedies import remedy_for
from btcpay.health.doctor.shop import Shop
from btcpay.http import http_client
from btcpay.prices.price import Prices
from btcpay.prices.tickers import MAX_DEVIATION, agreed_price, fetch_price
from btcpay.settings.parsers import PriceSource
from btcpay.values.errors import FetchError
from btcpay.values.finding import GREEN, RED, YELLOW, Finding
from btcpay.values.networks import SANDBOX_URL
from storage.database import Database
from storage.queries import links, merchants

REMEDY = "if this lasts, name another one in BLOCKTILL_PRICE_SOURCES"
ENOUGH = 3  # sources: the median of three is an honest one's, or lies between two
OTHER_REMEDY = (
    "until enough sources agree; if this lasts, see BLOCKTILL_CURRENCY_SOURCES"
)


def findings(shop: Shop) -> Iterator[Finding]:
    """Sources in trouble are yellow while enough others agree; without a price nothing is sold."""
    settings = shop.settings
    answers = [_ask(source, settings.proxy) for source in settings.price_sources]
    prices = [answer for answer in answers if isinstance(answer, Decimal)]
    price_usd = agreed_price(prices, settings.price_quorum)
    bad = RED if price_usd is None else YELLOW
    for source, answer in zip(settings.price_sources, answers, strict=True):
        # Only the host: a URL may hold a key.
        name = f"price source {urlsplit(source.url).hostname}"
        if not isinstance(answer, Decimal):
            is_sandbox = source.url.startswith(f"{SANDBOX_URL}/")
            usual = OF_SANDBOX if is_sandbox else REMEDY
            remedy = remedy_for(answer, "BLOCKTILL_PRICE_SOURCES", usual)
            yield Finding(name, bad, _sentence(answer, source), remedy)
            continue
        off = (answer / median(prices) - 1) * 100
        sentence = f"{answer} USD, {off:+.2f} % from the median"
        far = abs(off) > MAX_DEVIATION * 100
        yield (
            Finding(name, bad, sentence, REMEDY)
            if far
            else Finding(name, GREEN, sentence)
        )
    if price_usd is None:
        agreed = (
            f"{settings.price_quorum} of {len(answers)} sources must agree within 5 %"
        )
        none = f"none of {len(answers)} source{'s'[: len(answers) > 1]} answers"
        sentence = f"no price: {f'{agreed}, and fewer do' if prices else none}"
        remedy = f"no invoice can be made until enough sources agree; if none answers, {OF_NETWORK}"
        yield Finding("price", RED, sentence, remedy)
    elif len(answers) < ENOUGH and settings.network.seeds:
        sentence = f"{price_usd} USD for a bitcoin, by {len(answers)} alone: one that lies moves it"
        yield Finding(
            "price", YELLOW, sentence, "set three or more in BLOCKTILL_PRICE_SOURCES"
        )
    else:
        yield Finding("price", GREEN, f"{price_usd} USD for a bitcoin")


def other_currencies(shop: Shop, db: Database) -> Iterator[Finding]:
    """The currencies of merchants and of active links, without the dollar."""
    prices = Prices(shop.settings)
    used = {row.currency for row in db.rows(merchants.CURRENCIES)}
    used |= {row.currency for row in db.rows(links.CURRENCIES)}
    for currency in sorted(used - {"USD"}):
        name = f"price in {currency}"
        price = prices.rate_for(currency).current_price_or_none()
        if price is None:
            sentence = "none: too few sources know one, or agree on it"
            yield Finding(
                name, RED, sentence, f"nothing can be sold in it {OTHER_REMEDY}"
            )
        else:
            yield Finding(name, GREEN, f"{price:f} {currency} for a bitcoin")


def _ask(source: PriceSource, proxy: str) -> Decimal | Exception:
    """The price, or its error."""
    try:
        return fetch_price(
            http_client.Session(proxy=proxy), source, lambda sent_at: None
        )
    except (LookupError, FetchError, ValueError) as error:
        return error


def _sentence(error: Exception, source: PriceSource) -> str:
    if isinstance(error, LookupError):
        return f"has nothing at {source.pointer} in its answer"
    return str(error)
