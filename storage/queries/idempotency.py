"""Idempotency keys of API requests.

An INSERT claims a key. The owner of the claim then stores the response or releases it.
"""

from storage.models import IdempotencyKey as Key
from storage.statement import needed, same, slot, slots

_KEY = (Key.merchant_id, Key.operation, Key.idempotency_key)
_THIS = same(*_KEY)
_MINE = _THIS & same(Key.owner) & Key.response.is_null()

# Claims a key that is new, or whose claim has no response and was not made between `since` and
# `until`: its owner is gone.
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
# The stored responses about a resource, from which personal data must be erased.
OF_RESOURCE = Key.select(*_KEY, Key.owner, Key.response).where(
    same(Key.resource_id), Key.response.is_null(False)
)
REWRITE = Key.update(slots(Key.response)).where(_THIS, same(Key.owner))
FORGET = Key.delete().where(Key.created_ms < slot("before"))
# A restore deletes unfinished claims, whose owners are gone, and keeps the responses.
FREE = Key.delete().where(Key.response.is_null())
