"""Every price source: whether it answers, and how far it is from the others."""

from collections.abc import Iterator
from decimal import Decimal
from urllib.parse import urlsplit

from btcpay import fetch
from btcpay.doctor.finding import GREEN, RED, YELLOW, Finding, Patient
from btcpay.price import MAX_DEVIATION, agree, median, read_price
from btcpay.variables import PriceSource

REMEDY = "name another one in BTCPAY_PRICE_SOURCES when it stays so"


def findings(patient: Patient) -> Iterator[Finding]:
    """Sources in trouble are yellow while enough others agree; without a price nothing is sold."""
    settings = patient.settings
    answers = [_ask(source) for source in settings.price_sources]
    prices = [answer for answer in answers if isinstance(answer, Decimal)]
    price_usd = agree(prices, settings.price_quorum)
    bad = RED if price_usd is None else YELLOW
    for source, answer in zip(settings.price_sources, answers, strict=True):
        # The host alone: a URL may carry a key.
        name = f"price source {urlsplit(source.url).hostname}"
        if isinstance(answer, str):
            yield Finding(name, bad, answer, REMEDY)
            continue
        off = (answer / median(prices) - 1) * 100
        told = f"{answer} USD, {off:+.2f} % from the median"
        far = abs(off) > MAX_DEVIATION * 100
        yield Finding(name, bad, told, REMEDY) if far else Finding(name, GREEN, told)
    if price_usd is None:
        told = f"no price: {settings.price_quorum} sources that agree within 5 % are asked for"
        yield Finding("price", RED, told, "until then no invoice can be made: mend the sources")
    else:
        yield Finding("price", GREEN, f"{price_usd} USD for a bitcoin")


def _ask(source: PriceSource) -> Decimal | str:
    """The price, or why there is none."""
    try:
        return read_price(fetch.new_session(), source)
    except LookupError:
        return f"has nothing at {source.pointer} in its answer"
    except (fetch.FetchError, ValueError) as error:
        return str(error)
