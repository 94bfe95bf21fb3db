"""Idempotency keys: an INSERT claims one, an UPDATE by its owner ends or returns the claim."""

from storage.models import IdempotencyKey as Key
from storage.statement import needed, same, slot, slots

_KEY = (Key.merchant_id, Key.operation, Key.idempotency_key)
_THIS = same(*_KEY)
_MINE = _THIS & same(Key.owner) & Key.response.is_null()

# One that is new, or whose holder is gone: never one from `since` to `until`, or with an answer.
_CLAIM = (Key.body_sha256, Key.owner, Key.locked_ms, Key.created_ms)
CLAIM = Key.insert(needed(Key)).on_conflict(
    conflict_target=_KEY,
    update=slots(*_CLAIM),
    where=Key.response.is_null()
    & ((Key.locked_ms <= slot("since")) | (Key.locked_ms >= slot("until"))),
)
FIND = Key.select().where(_THIS)
FULFIL = Key.update(slots(Key.response, Key.resource_id)).where(_MINE)
RELEASE = Key.delete().where(_MINE)
# The answer about a resource, without what must be forgotten.
OF_RESOURCE = Key.select(*_KEY, Key.owner, Key.response).where(
    same(Key.resource_id), Key.response.is_null(False)
)
REWRITE = Key.update(slots(Key.response)).where(_THIS, same(Key.owner))
FORGET = Key.delete().where(Key.created_ms < slot("before"))
# In a restored database nobody holds a key any more; kept answers stay.
FREE = Key.delete().where(Key.response.is_null())
