"""Handles Idempotency-Key: a retry gets the first response, and creates nothing twice."""

import re
from collections.abc import Callable
from datetime import datetime, timedelta
from typing import NamedTuple

import orjson

from btcpay.values.errors import Conflict, InvalidRequest
from btcpay.values.ids import new_id
from btcpay.values.times import to_ms
from storage.database import Database, Values
from storage.queries import idempotency

# Longer than a request can take: at most 3 s for the exchange rate and 10 s for a lock.
HOLD = timedelta(seconds=60)
_PRINTABLE = re.compile(r"[\x20-\x7e]{1,255}")


def check_key(text: str) -> str:
    """Returns the value of the header Idempotency-Key unchanged.

    Raises InvalidRequest unless the value is 1 to 255 printable ASCII characters.
    """
    if not _PRINTABLE.fullmatch(text):
        raise InvalidRequest(
            "Idempotency-Key must be 1 to 255 printable ASCII characters"
        )
    return text


class Answer(NamedTuple):
    """The response to a request.

    `text` is its JSON. `is_replayed` is True if an earlier request with the same
    Idempotency-Key has stored it.
    """

    text: str
    is_replayed: bool


def create_once(
    db: Database,
    subject: Values | None,
    now: datetime,
    prepare: Callable[[], object],
    make: Callable[[object], str],
) -> Answer:
    """Creates a resource only once for each Idempotency-Key, and returns the response.

    `subject` has the merchant, the operation, the key and the digest of the request's
    body. If `subject` is None, the request has no key, and a resource is always created.
    `make` returns the JSON of the resource.

    1. A database transaction claims the key for this request. If a response is already
       stored for the key, returns that response.
    2. `prepare` runs. It may use the network, since no database transaction is open.
    3. One database transaction runs `make`, which stores the resource, and stores the
       response. If another request has taken over the claim meanwhile, nothing is
       stored and Conflict is raised.
    4. If step 2 or 3 raises an error, the key is released.

    Also raises Conflict while another request holds the key, and if the key was used
    with a different body.

    This function deletes no old responses. While the machine's clock is ahead, it would
    delete a response too early, and a retry would create a second resource. Only
    `blocktill check` deletes old responses, since it compares the clock with others.
    """
    if subject is None:
        prepared = prepare()
        with db.write():
            return Answer(make(prepared), is_replayed=False)
    owner = new_id("own")
    with db.write():
        stored_answer = _claim(db, subject, owner, now)
    if stored_answer is not None:
        return Answer(stored_answer, is_replayed=True)
    text = _create_under_claim(db, subject, owner, prepare, make)
    return Answer(text, is_replayed=False)


def _create_under_claim(
    db: Database,
    subject: Values,
    owner: str,
    prepare: Callable[[], object],
    make: Callable[[object], str],
) -> str:
    """Creates the resource, stores the response for its key, and returns the response.

    `owner` has claimed the key. If an error is raised, the key is released.
    """
    try:
        prepared = prepare()
        with db.write():
            text = make(prepared)
            _fulfil(db, subject, owner, text)
        return text
    except BaseException:  # also SystemExit: otherwise retries would fail for HOLD
        with db.write():
            db.run(idempotency.RELEASE, **subject | {"owner": owner})
        raise


def _fulfil(db: Database, subject: Values, owner: str, answer: str) -> None:
    """Stores the response for its Idempotency-Key.

    Raises Conflict if another request has taken over the claim on the key.
    """
    outcome: Values = {
        "owner": owner,
        "response": answer,
        "resource_id": orjson.loads(answer)["id"],
    }
    stored_count = db.run(idempotency.FULFIL, **subject | outcome)
    if stored_count != 1:
        raise Conflict(
            "another request with this Idempotency-Key has overtaken this one"
        )


def _claim(db: Database, subject: Values, owner: str, now: datetime) -> str | None:
    """Claims the Idempotency-Key and returns None, or returns its stored response.

    Raises Conflict while another request holds the key, and if the key was used with a
    different body.

    A claim of another request does not count if it is older than HOLD: that request has
    ended without a response. It does not count either if it is later than now by HOLD:
    then the clock was set back.
    """
    claim: Values = {
        "owner": owner,
        "locked_ms": to_ms(now),
        "created_ms": to_ms(now),
        "since": to_ms(now - HOLD),
        "until": to_ms(now + HOLD),
    }
    claimed_count = db.run(idempotency.CLAIM, **subject | claim)
    if claimed_count == 1:
        return None
    # None if the other request has released the key since CLAIM was executed.
    holder = db.get_or_none(idempotency.FIND, **subject)
    if holder and holder.body_sha256 != subject["body_sha256"]:
        raise Conflict("this Idempotency-Key was used with a different body")
    if holder is None or holder.response is None:
        raise Conflict(
            "a request with this Idempotency-Key is still being processed; retry shortly"
        )
    return holder.response
