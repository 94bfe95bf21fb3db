"""Idempotency keys of API requests.

An INSERT claims a key. The owner of the claim then stores the response or releases it.
"""

from storage.models import IdempotencyKey as Key
from storage.statement import eq, param, params, required_columns

_KEY = (Key.merchant_id, Key.operation, Key.idempotency_key)
_THIS = eq(*_KEY)
_MINE = _THIS & eq(Key.owner) & Key.response.is_null()

# Claims a key that is new, or whose owner is gone: its claim has no response, and was not made
# between `since` and `until`.
_CLAIM = (Key.body_sha256, Key.owner, Key.locked_ms, Key.created_ms)
CLAIM = Key.insert(required_columns(Key)).on_conflict(
    conflict_target=_KEY,
    update=params(*_CLAIM),
    where=Key.response.is_null()
    & ((Key.locked_ms <= param("since")) | (Key.locked_ms >= param("until"))),
)
FIND = Key.select().where(_THIS)
FULFIL = Key.update(params(Key.response, Key.resource_id)).where(_MINE)
RELEASE = Key.delete().where(_MINE)
# The stored responses about a resource, from which personal data must be erased.
OF_RESOURCE = Key.select(*_KEY, Key.owner, Key.response).where(
    eq(Key.resource_id), Key.response.is_null(False)
)
REWRITE = Key.update(params(Key.response)).where(_THIS, eq(Key.owner))
FORGET = Key.delete().where(Key.created_ms < param("before"))
# A restore deletes unfinished claims, whose owners are gone, and keeps the responses.
FREE = Key.delete().where(Key.response.is_null())
