"""Idempotency-Key: a retry gets the first response and creates no second resource."""

import re
from collections.abc import Callable
from datetime import datetime, timedelta

import orjson

from btcpay.values.errors import Conflict, InvalidRequest
from btcpay.values.ids import new_id
from btcpay.values.times import to_ms
from storage.database import Database, Values
from storage.queries import idempotency

# Longer than a request can take: at most 3 s for a price and 10 s for a lock.
HOLD = timedelta(seconds=60)
_PRINTABLE = re.compile(r"[\x20-\x7e]{1,255}")


def check_key(text: str) -> str:
    """Returns the header's value.

    Raises InvalidRequest unless it is 1 to 255 printable ASCII characters.
    """
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
    """Creates a resource once for each Idempotency-Key.

    Returns the response, and True if it is a stored one. `subject` has the merchant,
    the operation, the key and the digest of the request's body. If it is None, the
    resource is created with no key.

    1. The key is claimed in a transaction of its own, or the stored response is
       returned.
    2. `prepare` may use the network, since no transaction is open.
    3. `make` stores the resource. The same transaction stores the response. If another
       request has taken over the claim meanwhile, nothing is stored.
    4. If 2 or 3 fails, the key is released.

    Raises Conflict while another request holds the key, and if the key was used with a
    different body.

    Old responses are not deleted here: if this clock were ahead, a key would create a
    second resource. Only a check deletes them, since it has compared its clock with
    others.
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
    """Stores the response under its key.

    Raises Conflict if the claim is no longer valid.
    """
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
    """Claims the key, or returns the response stored under it. Raises Conflict.

    A claim expires after HOLD. It also expires if it seems to be made in the future,
    because the clock was set back.
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
    holder = db.get_or_none(idempotency.FIND, **subject)
    if holder and holder.body_sha256 != subject["body_sha256"]:
        raise Conflict("this Idempotency-Key was used with a different body")
    if holder is None or holder.response is None:
        raise Conflict(
            "a request with this Idempotency-Key is still being processed; retry shortly"
        )
    return holder.response
