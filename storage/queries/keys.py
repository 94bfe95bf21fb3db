"""API keys. Only the SHA-256 of a secret is stored and searched for."""

from peewee import fn

from storage.models import ApiKey, Merchant
from storage.statement import eq, param, params, required_columns, rows_as


class Caller(ApiKey):
    """The API key of a request. A shop plug-in's key also has a store and permissions.

    `currency` is the merchant's display currency, shown beside an order's dollar
    amount.
    """

    key_id: str
    currency: str


_WORKS = ApiKey.revoked_ms.is_null() & (
    ApiKey.expires_ms.is_null() | (ApiKey.expires_ms > param("now"))
)
BY_SECRET = rows_as(
    Caller,
    ApiKey.select(
        *(ApiKey.id.alias("key_id"), ApiKey.merchant_id, ApiKey.scope, ApiKey.store_id),
        *(ApiKey.permissions, Merchant.currency),
    )
    .join(Merchant, on=(ApiKey.merchant_id == Merchant.id))
    .where(eq(ApiKey.secret_sha256), _WORKS),
)
WORKING = ApiKey.select(ApiKey.id).where(eq(ApiKey.merchant_id), _WORKS)

# The id follows from the form, so that a form that is sent twice creates only one key.
ADD = ApiKey.insert(
    required_columns(ApiKey) | params(ApiKey.store_id, ApiKey.permissions)
).on_conflict("NOTHING")


class ListedKey(ApiKey):
    """An API key in a list, with its merchant's name.

    `revoked_ms` is the time at which the key stops working: it was revoked then, or it
    was rotated and expires then. `is_revoked` is True only for a revoked key.
    """

    merchant: str
    is_revoked: bool


ALL = rows_as(
    ListedKey,
    ApiKey.select(
        *(ApiKey.id, ApiKey.name, ApiKey.merchant_id, Merchant.name.alias("merchant")),
        *(ApiKey.scope, ApiKey.last_four, ApiKey.created_ms, ApiKey.last_used_ms),
        fn.COALESCE(ApiKey.revoked_ms, ApiKey.expires_ms).alias("revoked_ms"),
        ApiKey.revoked_ms.is_null(False).alias("is_revoked"),
    )
    .join(Merchant, on=(ApiKey.merchant_id == Merchant.id))
    .order_by(ApiKey.created_ms, ApiKey.id),
)

OF_MERCHANT = ALL.where(eq(ApiKey.merchant_id))
BY_ID = ApiKey.select().where(eq(ApiKey.id))

# A key is revoked once and for all.
REVOKE = ApiKey.update({ApiKey.revoked_ms: param("at")}).where(
    eq(ApiKey.id), ApiKey.revoked_ms.is_null()
)
# A key is rotated once; the old key then expires.
EXPIRE = ApiKey.update({ApiKey.expires_ms: param("at")}).where(
    eq(ApiKey.id), ApiKey.revoked_ms.is_null(), ApiKey.expires_ms.is_null()
)

USED = ApiKey.update({ApiKey.last_used_ms: param("at")}).where(eq(ApiKey.id))
