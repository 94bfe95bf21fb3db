"""Facts about the database, one row each: every key is declared here with what it means."""

import os
from datetime import datetime
from enum import StrEnum

from btcpay.values.times import from_ms, to_ms
from storage.database import Database
from storage.models import Fact
from storage.statement import every, same

ORDER_BYTES = 262_144  # more than the largest order writes, in pages, keys and all


class Key(StrEnum):
    """The names of the facts. Heights are decimal text, times whole milliseconds since 1970 UTC."""

    NETWORK = "network"  # whose addresses are given out: never another's
    # when a run over all watched invoices last found every payment
    CHECKED_MS = "checked_ms"
    # when the last run over all watched invoices began, whatever it found
    RAN_MS = "ran_ms"
    # the open pages for which no mempool was asked in time
    PREVIEWS_LATE = "previews_late"
    LISTENS = "listens"  # "yes" where the last run's command listens to peers
    READ_MS = "read_ms"  # when the tip was last asked and every block up to it was read
    # Two marks of a clock that does not step (`boot_mark`).
    TIP_SINCE = "tip_since"  # our newest block's hash, and since when it is the newest
    RUN_SINCE = "run_since"  # when the check that holds the lock began
    # What cannot be taken back is done by a clock that is believed (btcpay/chain/leap.py).
    # the last clock, the newest block's time and height, in JSON
    TIME_BELIEVED = "time_believed"
    # the clock that is doubted, since which mark and why; or empty
    TIME_LEAP = "time_leap"
    # of the token that lets a browser make the first merchant
    START_SHA256 = "start_sha256"
    COOKIE_KEY = "cookie_key"  # signs the cookies of link pages; made once, at random
    RESTORED_MS = "restored_ms"  # when a backup was put in the database's place
    BACKED_UP_MS = "backed_up_ms"  # when `blocktill backup` last wrote a whole copy
    # why there is no first block to read from; empty once there is one
    NOT_BEGUN = "not_begun"
    TRIAL = "trial"  # written and forgotten, to see whether the database takes writes


_GET = Fact.select(Fact.value).where(same(Fact.name))
_FORGET = Fact.delete().where(same(Fact.name))
# There is always one.
_LOCK = Fact.select(Fact.value).where(Fact.name == Key.NETWORK.value).for_update()
_SET = Fact.insert(every(Fact)).on_conflict(
    conflict_target=[Fact.name], preserve=[Fact.value]
)

_KEEP = Fact.insert(every(Fact)).on_conflict("NOTHING")


def get(db: Database, key: Key) -> str | None:
    row = db.row(_GET, name=Key(key).value)
    if row:
        return row.value
    return None


def put(db: Database, key: Key, value: str) -> None:
    db.run(_SET, name=Key(key).value, value=value)


def keep(db: Database, key: Key, value: str) -> str:
    """Sets a fact unless it is set already; returns the value that stands."""
    found = get(db, key)
    if found is None:
        db.run(_KEEP, name=Key(key).value, value=value)
        found = get(db, key)
    return found or value


def time(db: Database, key: Key) -> datetime | None:
    ms = get(db, key)
    if ms is None:
        return None
    return from_ms(int(ms))


def count(db: Database, key: Key) -> int:
    return int(get(db, key) or 0)


def put_time(db: Database, key: Key, at: datetime) -> None:
    put(db, key, str(to_ms(at)))


def lock(db: Database) -> None:
    """Locks facts, the rest of an hour's quota too, until the transaction ends."""
    db.row(_LOCK)


def try_to_write(db: Database, size: int = ORDER_BYTES) -> None:
    """Writes a fact of so many bytes and deletes it. Raises whatever error prevents that.

    The bytes are random: a server would compress others. A row that does not change is not written
    at all, so they differ each time.
    """
    with db.write():
        db.run(_SET, name=Key.TRIAL.value, value=os.urandom(size // 2).hex())
        db.run(_FORGET, name=Key.TRIAL.value)
