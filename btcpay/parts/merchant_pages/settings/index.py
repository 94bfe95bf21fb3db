"""The page that lists all pages of the settings, each with a summary of its values."""

from typing import NamedTuple

from flask import Response
from peewee import JOIN

from btcpay.merchants.sessions import LIFE
from btcpay.notify.mail.server import mail_account
from btcpay.parts.merchant_pages.visit import Visit
from btcpay.values.times import to_ms
from storage.models import (
    ApiKey,
    Brand,
    Fact,
    Merchant,
    MerchantMail,
    MerchantSession,
    Receiver,
)
from storage.queries.meta import Key
from storage.queries.receivers import MAILS
from storage.statement import count_of, param, rows_as

MOST_COUNTED = 100  # the maximum number of keys, webhooks or browsers to count


class Summary(NamedTuple):
    """The values in the list of settings. Further values are in the session's row.

    `devices` is the number of browsers that are logged in, `keys` the number of API keys
    that work, and `webhooks` the number of webhooks. Each is MOST_COUNTED if there are
    more. `address` is the address to which mail to the merchant is sent.
    """

    wallet_gap_limit: int
    address: str | None
    return_paid: str | None
    business_address: str | None
    tax_percent: str | None
    devices: int
    keys: int
    webhooks: int
    backed_up_ms: int | None


_DEVICES = MerchantSession.select(MerchantSession.id).where(
    MerchantSession.merchant_id == Merchant.id,
    MerchantSession.last_used_ms > param("used_after"),
)
_KEYS = ApiKey.select(ApiKey.id).where(
    ApiKey.merchant_id == Merchant.id,
    ApiKey.revoked_ms.is_null(),
    ApiKey.expires_ms.is_null() | (ApiKey.expires_ms > param("now")),
)
_WEBHOOKS = Receiver.select(Receiver.id).where(
    Receiver.merchant_id == Merchant.id, Receiver.transport.not_in(MAILS)
)
_BACKED_UP = Fact.select(Fact.value.cast("BIGINT")).where(
    Fact.name == Key.BACKED_UP_MS.value
)
SUMMARY = rows_as(
    Summary,
    Merchant.select(
        Merchant.wallet_gap_limit,
        MerchantMail.address,
        Brand.return_paid,
        Brand.business_address,
        Brand.tax_percent,
        count_of(_DEVICES, MOST_COUNTED).alias("devices"),
        count_of(_KEYS, MOST_COUNTED).alias("keys"),
        count_of(_WEBHOOKS, MOST_COUNTED).alias("webhooks"),
        _BACKED_UP.alias("backed_up_ms"),
    )
    .join(MerchantMail, JOIN.LEFT_OUTER, on=(MerchantMail.merchant_id == Merchant.id))
    .join_from(Merchant, Brand, JOIN.LEFT_OUTER, on=(Brand.merchant_id == Merchant.id))
    .where(Merchant.id == param("id")),
)


def show(visit: Visit) -> Response:
    """Shows the name of each page of settings, with a summary of its values in one line."""
    service = visit.service
    summary = service.db.get(
        SUMMARY,
        id=visit.merchant_id,
        now=to_ms(visit.now),
        used_after=to_ms(visit.now - LIFE),
    )
    account = None
    if visit.is_only_owner:
        account = mail_account(service.settings, service.db)
    return visit.page(
        "settings.html",
        summary=summary,
        account=account,
        is_only_owner=visit.is_only_owner,
        has_own_backup=not service.db.is_server,
    )
