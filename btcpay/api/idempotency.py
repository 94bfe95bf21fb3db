"""Idempotency-Key: a retry gets the first answer again and never makes a second resource."""

import re
from collections.abc import Callable
from datetime import datetime, timedelta

import orjson

from btcpay.values.errors import Conflict, InvalidRequest
from btcpay.values.ids import new_id
from btcpay.values.times import to_ms
from storage.database import Database, Values
from storage.queries import idempotency

# A live request has ended by then: a price takes 3 s, a lock 10 s.
HOLD = timedelta(seconds=60)
_PRINTABLE = re.compile(r"[\x20-\x7e]{1,255}")


def check_key(text: str) -> str:
    """The header's value. Raises InvalidRequest unless it is 1 to 255 printable ASCII."""
    if not _PRINTABLE.fullmatch(text):
        raise InvalidRequest(
            "Idempotency-Key must be 1 to 255 printable ASCII characters"
        )
    return text


def create_once(
    db: Database,
    subject: Values | None,
    now: datetime,
    prepare: Callable[[], object],
    make: Callable[[object], str],
) -> tuple[str, bool]:
    """The answer, and whether it is a replay. Without a subject, simply makes it.

    `subject`: the merchant, the operation, the key, and the digest of the body that it came with.

    1. The key is claimed in a transaction of its own, or the stored answer is returned.
    2. `prepare` asks over the network, with no transaction open.
    3. `make` stores the resource. The same transaction stores the answer if the claim still
       stands: a holder that was overtaken stores nothing.
    4. If 2 or 3 fails, the key is given back.

    Only a check deletes old answers, since it has compared its clock with others. If they were
    deleted here, a clock that is ahead would make a second resource for one key.
    Raises Conflict while the key is held, and if it came with another body before.
    """
    if subject is None:
        prepared = prepare()
        with db.write():
            return make(prepared), False
    owner = new_id("own")
    with db.write():
        stored_answer = _claim(db, subject, owner, now)
    if stored_answer is not None:
        return stored_answer, True
    try:
        prepared = prepare()
        with db.write():
            answer = make(prepared)
            _fulfil(db, subject, owner, answer)
        return answer, False
    except BaseException:
        with db.write():
            db.run(idempotency.RELEASE, **subject | {"owner": owner})
        raise


def _fulfil(db: Database, subject: Values, owner: str, answer: str) -> None:
    """Stores the answer under its key. Raises Conflict if the claim does not stand any more."""
    outcome: Values = {
        "owner": owner,
        "response": answer,
        "resource_id": orjson.loads(answer)["id"],
    }
    if db.run(idempotency.FULFIL, **subject | outcome) != 1:
        raise Conflict(
            "another request with this Idempotency-Key has overtaken this one"
        )


def _claim(db: Database, subject: Values, owner: str, now: datetime) -> str | None:
    """Takes the key, or returns the answer stored under it. Raises Conflict.

    A key that is held is free again after HOLD, and if the clock was set back.
    """
    claim: Values = {
        "owner": owner,
        "locked_ms": to_ms(now),
        "created_ms": to_ms(now),
        "since": to_ms(now - HOLD),
        "until": to_ms(now + HOLD),
    }
    if db.run(idempotency.CLAIM, **subject | claim) == 1:
        return None
    holder = db.row(idempotency.FIND, **subject)
    if holder and holder.body_sha256 != subject["body_sha256"]:
        raise Conflict("this Idempotency-Key was used with a different body")
    if holder is None or holder.response is None:
        raise Conflict(
            "a request with this Idempotency-Key is still being processed; retry shortly"
        )
    return holder.response
