"""Merchants, their next address indexes, and their brands (the look of their pages)."""

from typing import NamedTuple, cast

from peewee import JOIN, fn

from storage.models import Brand, Invoice, Merchant
from storage.statement import all_columns, blank, eq, param, params, rows_as
from storage.values import Values

# How often the explorers are asked whether a merchant's next addresses were used: once a day.
LOOK_AHEAD_EVERY_MS = 86_400_000

ALL = Merchant.select().order_by(Merchant.id)
BY_NAME = Merchant.select().where(eq(Merchant.name))
BY_ACCOUNT_KEY = Merchant.select().where(eq(Merchant.account_key))
BY_ID = Merchant.select().where(eq(Merchant.id))
# Locks the merchant's row, so that a transaction can look for a row and create it only once.
LOCKED = rows_as(
    tuple[int], Merchant.select(Merchant.id).where(eq(Merchant.id)).for_update()
)

ADD = Merchant.insert(
    params(
        Merchant.name,
        Merchant.descriptor,
        Merchant.account_key,
        Merchant.next_index,
        Merchant.created_ms,
        Merchant.used_before,
        Merchant.look_ahead_ms,
    )
)

# Takes the next address index, which is never reused. The row stays locked until the transaction
# ends.
TAKE_INDEX = rows_as(
    Merchant,
    Merchant.update({Merchant.next_index: Merchant.next_index + 1})
    .where(eq(Merchant.id))
    .returning(Merchant.next_index, Merchant.descriptor),
)

# The next address index only increases, even if another process has increased it.
FORWARD = Merchant.update(params(Merchant.next_index)).where(
    eq(Merchant.id), Merchant.next_index < param("next_index")
)

# The merchant whose next addresses have been due for a look-up for longest. A time after `until`
# was stored while the clock was ahead.
DUE_LOOK_AHEAD = (
    Merchant.select()
    .where(
        (Merchant.look_ahead_ms <= param("now"))
        | (Merchant.look_ahead_ms > param("until"))
    )
    .order_by(Merchant.look_ahead_ms, Merchant.id)
    .limit(1)
)
LOOKED_AHEAD = Merchant.update(
    params(Merchant.used_ahead, Merchant.look_ahead_ms)
).where(eq(Merchant.id))
PUT_OFF_LOOK_AHEAD = Merchant.update(params(Merchant.look_ahead_ms)).where(
    eq(Merchant.id)
)

SET_CURRENCY = Merchant.update(params(Merchant.currency)).where(eq(Merchant.id))
SET_TIMEZONE = Merchant.update(params(Merchant.timezone)).where(eq(Merchant.id))
SET_GRATUITIES = Merchant.update(
    params(Merchant.gratuity_percents, Merchant.gratuity_by_cashier)
).where(eq(Merchant.id))
CURRENCY = Merchant.select(Merchant.currency).where(eq(Merchant.id))
COUNTING = Merchant.select(Merchant.id, Merchant.currency, Merchant.timezone).where(
    Merchant.id == param("merchant_id")
)
CURRENCIES = Merchant.select(Merchant.currency).distinct()

SET_GAP_LIMIT = Merchant.update(params(Merchant.wallet_gap_limit)).where(
    eq(Merchant.id)
)

# A brand's columns. The logo's bytes are read only to serve the image.
_LOOKS = (Brand.name, Brand.accent, Brand.logo_sha256, Brand.contact)
_LOGO = (Brand.logo, Brand.logo_type)
_COLUMNS = (*_LOOKS, *_LOGO)
RETURNS = (Brand.return_paid, Brand.return_unpaid)
# The columns about the business that receipts show.
_BUSINESS = (Brand.business_address, Brand.tax_number, Brand.tax_percent)


class BrandOnPages(Brand):
    """A brand as pages show it.

    `seller` is the brand's name, or the merchant's name if the brand has none.
    """

    seller: str


BRAND_ON_PAGES = rows_as(
    BrandOnPages,
    Merchant.select(
        *_LOOKS,
        *RETURNS,
        *_BUSINESS,
        fn.COALESCE(Brand.name, Merchant.name).alias("seller"),
    )
    .join(Brand, JOIN.LEFT_OUTER, on=(Brand.merchant_id == Merchant.id))
    .where(Merchant.id == param("merchant_id")),
)


class MailBrand(NamedTuple):
    """A brand as mails show it.

    `name` is None if the logo is shown alone; `seller` is always a name.
    """

    seller: str
    name: str | None = None
    accent: str | None = None
    logo: bytes | None = None
    logo_type: str | None = None


MAIL_BRAND = rows_as(
    MailBrand,
    Merchant.select(
        fn.COALESCE(Brand.name, Merchant.name).alias("seller"),
        *(Brand.name, Brand.accent, Brand.logo, Brand.logo_type),
    )
    .join(Brand, JOIN.LEFT_OUTER, on=(Brand.merchant_id == Merchant.id))
    .where(Merchant.id == param("merchant_id")),
)
BRAND = Brand.select().where(eq(Brand.merchant_id))
LOGO = Brand.select(*_LOGO).where(eq(Brand.logo_sha256)).limit(1)

# Values that reset a brand's logo and its columns for pages.
DEFAULT_LOOKS = cast(Values, dict.fromkeys(column.name for column in _COLUMNS))
NO_BRAND = blank(Brand)  # has no values at all, and no merchant
PUT_BRAND = Brand.insert(all_columns(Brand)).on_conflict(
    conflict_target=[Brand.merchant_id],
    preserve=[*_COLUMNS, *RETURNS, *_BUSINESS],
)


class LastReceipt(NamedTuple):
    """A merchant's id, highest receipt number (0 if there is none), and tax rate."""

    id: int
    number: int
    tax_percent: str | None


LAST_RECEIPT = rows_as(
    LastReceipt,
    Merchant.select(
        Merchant.id,
        fn.COALESCE(
            Invoice.select(fn.MAX(Invoice.receipt_number)).where(
                Invoice.merchant_id == Merchant.id,
                Invoice.receipt_number.is_null(False),
            ),
            0,
        ).alias("number"),
        Brand.tax_percent,
    )
    .join(Brand, JOIN.LEFT_OUTER, on=(Brand.merchant_id == Merchant.id))
    .where(Merchant.id == param("merchant_id")),
)
