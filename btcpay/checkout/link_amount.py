"""The amount that a payment link asks for: its own or what was typed, if it can be sent at all."""

from decimal import ROUND_CEILING, Decimal

from btcpay.checkout.amounts import AmountRefused, read_usd
from btcpay.checkout.link_page import LinkRefused
from btcpay.invoices.links import bounds
from btcpay.languages import formats
from btcpay.merchants.account import DUST_SATS
from btcpay.values.money import CENT, SATS_PER_BTC, sats_for_usd
from btcpay.web.pages import languages
from btcpay.web.pages.languages import gettext
from btcpay.web.service import Service
from storage.database import Row
from storage.queries import merchants

# A link with a higher price need not ask what a bitcoin costs: the dust limit is less than this,
# until a bitcoin costs 900,000 USD.
NO_DUST_USD = Decimal(5)


def chosen_usd(link: Row, text: str) -> Decimal:
    """The price of a link, or the amount in this text. Raises LinkRefused."""
    if link["amount_mode"] == "fixed":
        return Decimal(link["amount_usd"])
    try:
        return read_usd(text, *bounds(link))
    except AmountRefused as refused:
        raise LinkRefused(400, str(refused), field=True) from None


def refuse_dust(service: Service, link: Row, amount_usd: Decimal, price_usd: Decimal) -> None:
    """Refuses an amount that was typed and is less than can be sent. Raises LinkRefused.

    Not where the seller asks for so little: then the invoice's page asks for what can be sent.
    """
    exact_usd = _least_sats(service, link) * price_usd / SATS_PER_BTC
    least_usd = exact_usd.quantize(CENT, ROUND_CEILING)
    if link["amount_mode"] == "flexible" and amount_usd < least_usd <= bounds(link)[1]:
        least = formats.usd(least_usd, languages.current())
        message = gettext(
            "Wallets cannot send such a small amount. Enter at least %(least)s.", least=least
        )
        raise LinkRefused(400, message, field=True)


def dust_of(service: Service, link: Row) -> int | None:
    """The least that can be sent, when a fixed price is less and there is a BTC price."""
    if link["amount_usd"] is None or Decimal(link["amount_usd"]) >= NO_DUST_USD:
        return None
    price_usd = service.prices.usd.current_or_none()
    if price_usd is None:
        return None
    least_sats = _least_sats(service, link)
    amount_sats = sats_for_usd(Decimal(link["amount_usd"]), price_usd)
    return least_sats if amount_sats and amount_sats < least_sats else None


def _least_sats(service: Service, link: Row) -> int:
    return DUST_SATS[service.db.only(merchants.BY_ID, id=link["merchant_id"])["script_type"]]
