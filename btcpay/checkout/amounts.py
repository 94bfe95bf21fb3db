"""Amounts that are too small to be sent to a merchant's addresses."""

from decimal import ROUND_CEILING, Decimal

from btcpay.languages import formats
from btcpay.merchants import account
from btcpay.values.currencies import unit_of
from btcpay.values.money import SATS_PER_BTC
from btcpay.web.pages import languages
from btcpay.web.pages.forms import AmountRefused
from btcpay.web.pages.languages import gettext
from btcpay.web.service import Service
from storage.queries import merchants


def refuse_dust(
    service: Service,
    merchant_id: int,
    amount: Decimal,
    high: Decimal,
    currency: str,
    price: Decimal,
) -> None:
    """Refuses what a wallet cannot send at this price of a bitcoin. Raises AmountRefused.

    Not where the seller takes no more than that: then the invoice's page asks for what can be sent.
    """
    exact = least_sats_of(service, merchant_id) * price / SATS_PER_BTC
    least = exact.quantize(unit_of(currency), ROUND_CEILING)
    if amount < least <= high:
        shown = formats.money(least, currency, languages.current())
        raise AmountRefused(
            gettext(
                "Wallets cannot send such a small amount. Enter at least %(least)s.", least=shown
            )
        )


def least_sats_of(service: Service, merchant_id: int) -> int:
    """The least that can be sent to the addresses of a merchant."""
    merchant = service.db.only(merchants.BY_ID, id=merchant_id)
    return account.least_sats_of(account.stored_account(merchant["descriptor"]).script(0).hex())
