"""Brands: how merchants' pages look. The logo's bytes are only read to be served."""

from peewee import EXCLUDED

from storage.database import every, slot
from storage.models import Brand

_LOOKS = (Brand.name, Brand.accent, Brand.logo_sha256)
_LOGO = (Brand.logo, Brand.logo_type)
_COLUMNS = (*_LOOKS, *_LOGO)

OF_MERCHANT = Brand.select(*_LOOKS).where(Brand.merchant_id == slot("merchant_id"))
WHOLE = Brand.select().where(Brand.merchant_id == slot("merchant_id"))
LOGO = Brand.select(*_LOGO).where(Brand.logo_sha256 == slot("logo_sha256")).limit(1)

# Nothing of it is set.
BLANK = dict.fromkeys(column.name for column in _COLUMNS)
PUT = Brand.insert(every(Brand)).on_conflict(
    conflict_target=[Brand.merchant_id],
    update={column: getattr(EXCLUDED, column.name) for column in _COLUMNS},
)
