"""Brands: how merchants' pages look, where they lead back. A logo's bytes are read to be served."""

from peewee import JOIN, fn

from storage.models import Brand, Merchant
from storage.statement import every, slot

_LOOKS = (Brand.name, Brand.accent, Brand.logo_sha256, Brand.contact)
_LOGO = (Brand.logo, Brand.logo_type)
_COLUMNS = (*_LOOKS, *_LOGO)
RETURNS = (Brand.return_paid, Brand.return_unpaid)

OF_MERCHANT = Brand.select(*_LOOKS, *RETURNS).where(Brand.merchant_id == slot("merchant_id"))
# What pages show: `seller` is the merchant's own name where its brand has none.
ON_PAGES = (
    Merchant.select(*_LOOKS, *RETURNS, fn.COALESCE(Brand.name, Merchant.name).alias("seller"))
    .join(Brand, JOIN.LEFT_OUTER, on=(Brand.merchant_id == Merchant.id))
    .where(Merchant.id == slot("merchant_id"))
)
WHOLE = Brand.select().where(Brand.merchant_id == slot("merchant_id"))
LOGO = Brand.select(*_LOGO).where(Brand.logo_sha256 == slot("logo_sha256")).limit(1)

# Nothing of it is set: of how the pages look, of all.
PLAIN = dict.fromkeys(column.name for column in _COLUMNS)
BLANK = PLAIN | dict.fromkeys(column.name for column in RETURNS)
PUT = Brand.insert(every(Brand)).on_conflict(
    conflict_target=[Brand.merchant_id],
    preserve=[*_COLUMNS, *RETURNS],
)
