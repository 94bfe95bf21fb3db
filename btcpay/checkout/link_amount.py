"""The amount that a payment link asks for: its own, or what a visitor has typed, within bounds."""

from decimal import Decimal

from btcpay.checkout.amounts import parse_usd
from btcpay.checkout.dust import dust_usd_of
from btcpay.checkout.link_refused import LinkRefused
from btcpay.invoices.links import bounds
from btcpay.languages import formats
from btcpay.web.pages import languages
from btcpay.web.pages.languages import gettext
from btcpay.web.service import Service
from storage.database import Row


def chosen_usd(link: Row, text: str) -> Decimal:
    """The price of a link, or the amount in this text. Raises LinkRefused."""
    if link["amount_mode"] == "fixed":
        return Decimal(link["amount_usd"])
    amount_usd = parse_usd(text)
    if amount_usd is None:
        language = languages.current()
        examples = {"one": "25", "other": formats.cents(Decimal("19.90"), language)}
        raise LinkRefused(
            400, gettext("Enter an amount such as %(one)s or %(other)s.", **examples), field=True
        )
    low, high = bounds(link)
    if not (amount_usd > 0 and low <= amount_usd <= high):
        raise LinkRefused(400, _range(low, high), field=True)
    return amount_usd


def _range(low: Decimal, high: Decimal) -> str:
    language = languages.current()
    texts = {"low": formats.usd(low, language), "high": formats.usd(high, language)}
    if low:
        return gettext("Enter an amount from %(low)s to %(high)s.", **texts)
    return gettext("Enter an amount above 0 and up to %(high)s.", high=texts["high"])


def refuse_dust(service: Service, link: Row, amount_usd: Decimal, price_usd: Decimal) -> None:
    """Refuses an amount that was typed and is less than can be sent.

    Not where the seller asks for so little: then the invoice's page asks for what can be sent.
    """
    least_usd = dust_usd_of(service, link, price_usd)
    if link["amount_mode"] == "flexible" and amount_usd < least_usd <= bounds(link)[1]:
        least = formats.usd(least_usd, languages.current())
        told = gettext("Wallets cannot send so little. Enter at least %(least)s.", least=least)
        raise LinkRefused(400, told, field=True)
