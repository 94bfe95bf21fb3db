"""Idempotency keys: an INSERT claims one, an UPDATE by its owner ends or returns the claim."""

from storage.models import IdempotencyKey as Key
from storage.statement import needed, same, slot, slots

_THIS = same(Key.merchant_id) & same(Key.operation) & same(Key.idempotency_key)
_MINE = _THIS & same(Key.owner) & Key.response.is_null()

<<<<<<< HEAD
CLAIM = Key.insert(needed(Key)).on_conflict("NOTHING")
FIND = Key.select().where(_THIS)
# Takes a key over from a holder that is gone, never from one that lives or has answered meanwhile.
TAKE_OVER = Key.update(slots(Key.body_sha256, Key.owner, Key.locked_at, Key.created_at)).where(
    _THIS,
    Key.owner == slot("old_owner"),
    Key.locked_at == slot("old_locked_at"),
    Key.response.is_null(),
=======
# One that is new, or whose holder is gone: never one from `since` to `until`, or with an answer.
_CLAIM = (Key.body_sha256, Key.owner, Key.locked_at, Key.created_at)
CLAIM = Key.insert(needed(Key)).on_conflict(
    conflict_target=[Key.merchant_id, Key.operation, Key.idempotency_key],
    update=slots(*_CLAIM),
    where=Key.response.is_null()
    & ((Key.locked_at <= slot("since")) | (Key.locked_at >= slot("until"))),
>>>>>>> main
)
FIND = Key.select().where(_THIS)
FULFIL = Key.update(slots(Key.response, Key.resource_id)).where(_MINE)
RELEASE = Key.delete().where(_MINE)
# The answer about a resource, without what must be forgotten.
OF_RESOURCE = Key.select(
    Key.merchant_id, Key.operation, Key.idempotency_key, Key.owner, Key.response
).where(same(Key.resource_id), Key.response.is_null(False))
REWRITE = Key.update({Key.response: slot("response")}).where(_THIS, same(Key.owner))
FORGET = Key.delete().where(Key.created_at < slot("before"))
# In a restored database nobody holds a key any more; kept answers stay.
FREE = Key.delete().where(Key.response.is_null())
