"""The stored API requests of each key: the latest hundred of the past week."""

from collections.abc import Iterable, Mapping, Sequence
from datetime import timedelta
from typing import Any, NamedTuple

import orjson

from btcpay.parts.merchant_pages.models import KeyRequests
from storage import at_once
from storage.database import Database, Values
from storage.models import ApiKey
from storage.statement import all_columns, eq, param, rows_as

MOST_REQUESTS = 100  # for each key
LIFE_MS = timedelta(days=7) // timedelta(milliseconds=1)
# A request that is more than this in the future was stored while the clock was wrong.
MOST_AHEAD_MS = timedelta(days=1) // timedelta(milliseconds=1)
MOST_CHARACTERS = 80  # of the name of an operation, and of an error code

# Locks the row of a key. Without the lock, two processes that write requests of one key would lose
# some of them. No row means that the key was deleted: a restore can delete a key whose requests
# are still in the memory of a process.
_LOCK = (
    ApiKey.select(ApiKey.id)
    .where(eq(ApiKey.id))
    .order_by(ApiKey.id)
    .for_update("FOR NO KEY UPDATE")  # type: ignore[arg-type]  # its documentation has text too
)
OF_KEY = KeyRequests.select().where(eq(KeyRequests.key_id))
_PUT = KeyRequests.insert(all_columns(KeyRequests)).on_conflict(
    conflict_target=[KeyRequests.key_id],
    preserve=[KeyRequests.written_ms, KeyRequests.requests],
)
_IS_OLD = ~KeyRequests.written_ms.between(param("since"), param("until"))
_OLD = rows_as(
    tuple[str], KeyRequests.select(KeyRequests.key_id).where(_IS_OLD).limit(1)
)
_FORGET = KeyRequests.delete().where(_IS_OLD)


class Request(NamedTuple):
    """An answered API request.

    `error_code` is the code in the error's response; "" if there is none. `took_ms` is
    the time until the response began, in milliseconds, rounded up.
    """

    at_ms: int
    operation: str
    status: int
    error_code: str
    took_ms: int


def load(text: str, now_ms: int) -> list[Request]:
    """Parses the stored requests. Returns those that are not older than a week.

    They are in the order in which they were stored. Returns an empty list for a damaged
    text: a log is no reason for a page to fail.
    """
    try:
        return [Request(*values) for values in _recent(text, now_ms)]
    except TypeError:
        return []


def _recent(text: str, now_ms: int) -> list[list[Any]]:
    """Returns the values of each stored request that is not older than a week.

    Each has the fields of `Request`. Returns an empty list for a damaged text.
    """
    first_ms = now_ms - LIFE_MS
    last_ms = now_ms + MOST_AHEAD_MS
    try:
        return [
            values for values in orjson.loads(text) if first_ms <= values[0] <= last_ms
        ]
    except (TypeError, ValueError, LookupError):
        return []


def add(db: Database, new: Mapping[str, Iterable[Request]], now_ms: int) -> None:
    """Appends new requests to the stored ones of each key.

    `new` has the new requests by the key's id. Of each key, only the last MOST_REQUESTS
    requests are kept. Requests of a key that does not exist are dropped. Call this
    function in a database transaction.
    """
    ids = _lock_keys(db, sorted(new))
    stored_texts = _stored_texts(db, ids)
    rows: list[Values] = []
    for id in ids:
        requests = _recent(stored_texts.get(id, "[]"), now_ms)
        requests += [_truncate(request) for request in new[id]]
        text = orjson.dumps(requests[-MOST_REQUESTS:]).decode()
        rows.append({"key_id": id, "written_ms": now_ms, "requests": text})
    at_once.run(db, _PUT, rows)


def _lock_keys(db: Database, ids: Sequence[str]) -> list[str]:
    """Locks the rows of these keys, and returns the ids of those that exist."""
    rows = at_once.rows(db, _LOCK, [{"id": id} for id in ids])
    return [row.id for row in rows]


def _stored_texts(db: Database, ids: Sequence[str]) -> dict[str, str]:
    """Returns the stored requests of these keys as JSON text, by the key's id."""
    values: list[Values] = [{"key_id": id} for id in ids]
    rows = at_once.rows(db, OF_KEY, values)
    return {row.key_id: row.requests for row in rows}


def _truncate(request: Request) -> list[Any]:
    """Returns the values of a request with its texts cut to MOST_CHARACTERS."""
    at_ms, operation, status, error_code, took_ms = request
    operation = operation[:MOST_CHARACTERS]
    error_code = error_code[:MOST_CHARACTERS]
    return [at_ms, operation, status, error_code, took_ms]


def forget_old(db: Database, now_ms: int) -> None:
    """Deletes the requests of keys that no program has used for a week.

    Does not write to the database if there are no such keys.
    """
    bounds: Values = {"since": now_ms - LIFE_MS, "until": now_ms + MOST_AHEAD_MS}
    if db.get_or_none(_OLD, **bounds):
        db.run(_FORGET, **bounds)
