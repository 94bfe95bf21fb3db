"""Price tickers, and the parsers of the settings that list them."""

import re
from dataclasses import dataclass

from btcpay.settings.parsers import accepting, http_url, require, words


@dataclass(frozen=True)
class PriceSource:
    """A price ticker: its URL, and where its JSON response has the price.

    `pointer` is the JSON pointer (RFC 6901) to the price of one bitcoin.
    """

    url: str
    pointer: str

    def of(self, currency: str) -> "PriceSource":
        """Returns the source of the price in `currency`, a code such as EUR.

        The code replaces {CURRENCY} in capital letters, and {currency} in small letters.
        """
        text = f"{self.url}#{self.pointer}"
        text = text.replace("{CURRENCY}", currency.upper())
        text = text.replace("{currency}", currency.lower())
        url, _, pointer = text.partition("#")
        return PriceSource(url, pointer)


_SOURCES = "one or more URL#/json/pointer, separated by spaces"


@accepting(_SOURCES)
def price_sources(text: str) -> tuple[PriceSource, ...]:
    sources = []
    for word in words(text):
        root, hash_sign, pointer = word.partition("#")
        require(hash_sign and re.fullmatch(r"(/[^/]*)*", pointer))
        sources.append(PriceSource(http_url(root), pointer))
    return tuple(sources)


@accepting(
    f"{_SOURCES}, each with {{CURRENCY}} (for EUR) or {{currency}} (for eur) in it"
)
def currency_sources(text: str) -> tuple[PriceSource, ...]:
    sources = price_sources(text)
    require(all(source != source.of("EUR") for source in sources))
    return sources
