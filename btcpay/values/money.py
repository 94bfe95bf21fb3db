"""Satoshis and money. Satoshis are int, and money is Decimal in an ISO 4217 currency.

Floats are never used.
"""

from decimal import (
    ROUND_CEILING,
    ROUND_HALF_EVEN,
    ROUND_HALF_UP,
    ROUND_UP,
    Context,
    Decimal,
    InvalidOperation,
)
from typing import NamedTuple, Protocol

from btcpay.values.errors import BadRow, CommandError

SATS_PER_BTC = 100_000_000
MAX_MONEY_BTC = 21_000_000  # MAX_MONEY in Bitcoin Core, consensus/amount.h
MAX_MONEY_SATS = MAX_MONEY_BTC * SATS_PER_BTC
CENT = Decimal("0.01")

# 50 digits: a quotient of up to 16 digits, rounded up here and again to a whole satoshi, is the
# exact ceiling for any number of digits in the amount.
_ROUND_UP = Context(prec=50, rounding=ROUND_UP)


def sats_for(amount: Decimal, price: Decimal) -> int | None:
    """Returns the satoshis for `amount` > 0, rounded up, at least 1.

    `price` is the price of one bitcoin in the same currency. Returns None if the result
    exceeds 21 million bitcoin, because such a price is wrong.
    """
    btc = _ROUND_UP.divide(amount, price)
    if btc > MAX_MONEY_BTC:
        return None
    sats = _ROUND_UP.multiply(btc, Decimal(SATS_PER_BTC))
    return max(1, int(sats.to_integral_value(ROUND_CEILING)))


def stored_amount(text: str) -> Decimal:
    """Parses an amount or price that the database stores as text.

    Raises BadRow if the text is no finite number.
    """
    try:
        amount = Decimal(text)
    except (InvalidOperation, TypeError):
        amount = Decimal("NaN")  # refused below
    if not amount.is_finite():
        raise BadRow(f"{text!r} is no stored amount")
    return amount


def btc_text(amount_sats: int) -> str:
    """Returns the amount in bitcoin as BIP21 URIs have it, without trailing zeros or exponent."""
    return full_btc_text(amount_sats).rstrip("0").rstrip(".")


def full_btc_text(amount_sats: int) -> str:
    """Returns the amount in bitcoin for people, always with eight decimals."""
    whole, rest = divmod(amount_sats, SATS_PER_BTC)
    return f"{whole}.{rest:08d}"


_WHOLE = "BIF CLP DJF GNF ISK JPY KMF KRW PYG RWF UGX VND VUV XAF XOF XPF"
_THOUSANDTHS = "BHD IQD JOD KWD LYD OMR TND"
_CENTS = (
    "AED AFN ALL AMD AOA ARS AUD AWG AZN BAM BBD BDT BGN BMD BND BOB BRL BSD BTN BWP BYN BZD"
    " CAD CDF CHF CNY COP CRC CUP CVE CZK DKK DOP DZD EGP ERN ETB EUR FJD FKP GBP GEL GHS GIP"
    " GMD GTQ GYD HKD HNL HTG HUF IDR ILS INR IRR JMD KES KGS KHR KPW KYD KZT LAK LBP LKR LRD"
    " LSL MAD MDL MGA MKD MMK MNT MOP MRU MUR MVR MWK MXN MYR MZN NAD NGN NIO NOK NPR NZD PAB"
    " PEN PGK PHP PKR PLN QAR RON RSD RUB SAR SBD SCR SDG SEK SGD SHP SLE SOS SRD SSP STN SVC"
    " SYP SZL THB TJS TMT TOP TRY TTD TWD TZS UAH USD UYU UZS VES WST XCD XCG YER ZAR ZMW ZWG"
)
CODES = frozenset(f"{_WHOLE} {_THOUSANDTHS} {_CENTS}".split())
_NEAREST = Context(prec=50, rounding=ROUND_HALF_EVEN)


def checked_currency(code: str) -> str:
    """Returns the code in capitals. Raises CommandError if it is not in ISO 4217."""
    code = code.upper()
    if code not in CODES:
        raise CommandError(f"{code!a} is not an ISO 4217 currency such as EUR")
    return code


def places_of(currency: str) -> int:
    """Returns the number of the currency's decimals: 2 for EUR, 0 for JPY."""
    if currency in _WHOLE.split():
        return 0
    if currency in _THOUSANDTHS.split():
        return 3
    return 2


def of_minor(minor: int, currency: str) -> Decimal:
    """Converts a number of smallest units to an amount: 1234 cents in EUR are 12.34.

    The amount has all decimals of the currency.
    """
    return Decimal(minor).scaleb(-places_of(currency))


def to_minor(amount: Decimal, currency: str) -> int:
    """Converts an amount to the currency's smallest units: 12.34 EUR are 1234 cents.

    The amount is rounded half to even.
    """
    return int(round_money(amount, currency).scaleb(places_of(currency)))


def unit_of(currency: str) -> Decimal:
    """Returns the currency's smallest unit: 0.01 for EUR, 1 for JPY."""
    return of_minor(1, currency)


def round_money(amount: Decimal, currency: str) -> Decimal:
    """Rounds the amount to the currency's smallest unit, half to even."""
    return amount.quantize(unit_of(currency), ROUND_HALF_EVEN, _NEAREST)


def value_of(amount_sats: int, price: Decimal, currency: str) -> Decimal:
    """Returns the value of the satoshis, rounded to the currency's smallest unit.

    `price` is the price of one bitcoin in this currency.
    """
    value = _NEAREST.multiply(Decimal(amount_sats), price) / SATS_PER_BTC
    return round_money(value, currency)


def money_text(amount: Decimal, currency: str) -> str:
    """Returns the amount as text for operators: `1,234.50 EUR`, without an exponent.

    A positive amount below the smallest unit becomes `< 0.01 EUR`.
    """
    unit = unit_of(currency)
    if 0 < amount < unit:
        return f"< {unit} {currency}"
    return f"{round_money(amount, currency):,f} {currency}"


class Money(NamedTuple):
    """An amount of money, and its currency."""

    amount: Decimal
    currency: str


class AmountColumns(Protocol):
    """The columns of an invoice's row that have the amount due (`Invoice.AMOUNT_DUE`).

    `amount` is None if the API created the invoice. Then the amount due is in dollars,
    and `amount_usd_quote` has it.
    """

    amount_usd_quote: str
    amount: str | None
    currency: str


class PriceColumns(AmountColumns, Protocol):
    """The columns of an invoice's row that have the amount due and the exchange rate."""

    price_usd: str
    price: str


def price_of(row: PriceColumns) -> Decimal:
    """Returns the price of one bitcoin when the invoice was created.

    It is in the invoice's currency, or in dollars if the API created the invoice.
    Raises BadRow if the stored price is no number.
    """
    if row.amount is None:
        return stored_amount(row.price_usd)
    return stored_amount(row.price)


def amount_due(row: AmountColumns) -> Money:
    """Returns the amount that the invoice asks for, in its currency.

    Raises BadRow if the stored amount is no number.
    """
    if row.amount is None:
        return Money(stored_amount(row.amount_usd_quote), "USD")
    return Money(stored_amount(row.amount), row.currency)


class Taxed(AmountColumns, Protocol):
    gratuity: str | None
    tax_percent: str | None


class Tax(NamedTuple):
    """A tax that an invoice's amount includes: the tax rate in percent, and the tax."""

    percent: Decimal
    money: Money


def tax_of(row: Taxed) -> Tax | None:
    """Returns the tax that the invoice's amount includes; None if it has no tax rate.

    The gratuity is not taxed. The tax is rounded half up to the currency's smallest
    unit. Raises BadRow if a stored number is invalid.
    """
    if row.tax_percent is None:
        return None
    percent = stored_amount(row.tax_percent)
    amount, currency = amount_due(row)
    gratuity = stored_amount(row.gratuity or "0")
    return tax_in(amount - gratuity, currency, percent)


def tax_in(price: Decimal, currency: str, percent: Decimal) -> Tax:
    """Returns the tax that a price includes, rounded half up to the smallest unit.

    `percent` is the tax rate.
    """
    exact_tax = _NEAREST.divide(price * percent, 100 + percent)
    tax = exact_tax.quantize(unit_of(currency), ROUND_HALF_UP, _NEAREST)
    return Tax(percent, Money(tax, currency))
