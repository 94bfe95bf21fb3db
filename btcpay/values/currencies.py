"""Currencies other than the dollar: their codes, and how many decimals amounts have (ISO 4217)."""

from decimal import ROUND_HALF_EVEN, Context, Decimal

from btcpay.values.errors import CommandError

_WHOLE = "BIF CLP DJF GNF ISK JPY KMF KRW PYG RWF UGX VND VUV XAF XOF XPF"
_THOUSANDTHS = "BHD IQD JOD KWD LYD OMR TND"
_CENTS = (
    "AED AFN ALL AMD AOA ARS AUD AWG AZN BAM BBD BDT BGN BMD BND BOB BRL BSD BTN BWP BYN BZD"
    " CAD CDF CHF CNY COP CRC CUP CVE CZK DKK DOP DZD EGP ERN ETB EUR FJD FKP GBP GEL GHS GIP"
    " GMD GTQ GYD HKD HNL HTG HUF IDR ILS INR IRR JMD KES KGS KHR KPW KYD KZT LAK LBP LKR LRD"
    " LSL MAD MDL MGA MKD MMK MNT MOP MRU MUR MVR MWK MXN MYR MZN NAD NGN NIO NOK NPR NZD PAB"
    " PEN PGK PHP PKR PLN QAR RON RSD RUB SAR SBD SCR SDG SEK SGD SHP SLE SOS SRD SSP STN SVC"
    " SYP SZL THB TJS TMT TOP TRY TTD TWD TZS UAH UYU UZS VES WST XCD XCG YER ZAR ZMW ZWG"
)
CODES = frozenset(f"{_WHOLE} {_THOUSANDTHS} {_CENTS} USD".split())
_NEAREST = Context(prec=50, rounding=ROUND_HALF_EVEN)


def checked_currency(code: str) -> str:
    """The code in capitals. Raises CommandError for none of ISO 4217, and for the dollar."""
    code = code.upper()
    if code == "USD":
        raise CommandError("dollars are shown anyway: name another currency, such as EUR, or off")
    if code not in CODES:
        raise CommandError(f"{code!a} is no currency of ISO 4217, such as EUR")
    return code


def places_of(currency: str) -> int:
    """How many decimals its amounts have: 2 of EUR, 0 of JPY."""
    if currency in _WHOLE.split():
        return 0
    return 3 if currency in _THOUSANDTHS.split() else 2


def of_minor(minor: int, currency: str) -> Decimal:
    """The amount of so many of its smallest units, with all its decimals."""
    return Decimal(minor).scaleb(-places_of(currency))


def rounded(amount: Decimal, currency: str) -> Decimal:
    """The amount to the nearest of its smallest units, half to even."""
    return amount.quantize(Decimal(1).scaleb(-places_of(currency)), ROUND_HALF_EVEN, _NEAREST)
