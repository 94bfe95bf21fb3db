"""Satoshis and money: satoshis are int, other money is Decimal, no float anywhere."""

from decimal import ROUND_CEILING, ROUND_UP, Context, Decimal, InvalidOperation

from btcpay.values.errors import BadRow

SATS_PER_BTC = 100_000_000
MAX_MONEY_BTC = 21_000_000  # Bitcoin Core, consensus/amount.h
MAX_MONEY_SATS = MAX_MONEY_BTC * SATS_PER_BTC
CENT = Decimal("0.01")

# 50 digits: a quotient of up to 16 digits that is rounded up here and again to a whole satoshi
# is the exact ceiling, however many digits the amount came with.
_ROUND_UP = Context(prec=50, rounding=ROUND_UP)


def sats_for(amount: Decimal, price: Decimal) -> int | None:
    """The satoshis that `amount` > 0 buys at `price` a bitcoin, rounded up, at least 1.

    None when the quotient exceeds the 21 million bitcoin that can exist: such a price is wrong.
    """
    btc = _ROUND_UP.divide(amount, price)
    if btc > MAX_MONEY_BTC:
        return None
    sats = _ROUND_UP.multiply(btc, Decimal(SATS_PER_BTC))
    return max(1, int(sats.to_integral_value(ROUND_CEILING)))


def stored_amount(text: str) -> Decimal:
    """The amount or price of a stored text. Raises BadRow."""
    try:
        amount = Decimal(text)
    except (InvalidOperation, TypeError):
        amount = Decimal("NaN")
    if not amount.is_finite():
        raise BadRow(f"{text!r} is no stored amount")
    return amount


def btc_text(amount_sats: int) -> str:
    """The amount in bitcoin as BIP21 writes it: no exponent, no trailing zeros, point as mark."""
    return btc_shown(amount_sats).rstrip("0").rstrip(".")


def btc_shown(amount_sats: int) -> str:
    """The amount in bitcoin for people: always eight places, so that two can be compared."""
    whole, rest = divmod(amount_sats, SATS_PER_BTC)
    return f"{whole}.{rest:08d}"
