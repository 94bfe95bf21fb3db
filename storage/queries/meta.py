"""The table `meta`: single values about the database, each stored under a Key."""

import os
from datetime import datetime
from enum import StrEnum

from btcpay.values.times import from_ms, to_ms
from storage.database import Database
from storage.models import Fact
from storage.statement import all_columns, eq

# More than the largest order writes, with the pages of tables and indexes.
ORDER_BYTES = 262_144


class Key(StrEnum):
    """The names of the stored values. Heights are decimal text.

    Times are whole milliseconds since 1970 UTC, as text.
    """

    NETWORK = "network"  # the Bitcoin network of this database; it never changes
    # when a run over all watched invoices last completed and so found every payment
    CHECKED_MS = "checked_ms"
    # when the last run over all watched invoices began, whether it succeeded or not
    RAN_MS = "ran_ms"
    # the number of open pages for which the mempool was not checked in time
    PREVIEWS_LATE = "previews_late"
    LISTENS = "listens"  # "yes" if the last run's command listens to peers
    # when the tip was last fetched and every block up to it was read
    READ_MS = "read_ms"
    # The next two have a mark that `boot_mark` (values/times.py) has returned: the seconds since
    # the machine's boot, which no change of the clock affects, and the boot's id.
    # the hash of the newest known block, and the mark when it became the newest
    TIP_SINCE = "tip_since"
    # the mark when a check first found that another check held the lock; empty once that
    # other check has ended
    RUN_SINCE = "run_since"
    # Irreversible actions need a clock that is trusted (btcpay/chain/leap.py). This value
    # has the last trusted time, and the time and height of the newest block then, as JSON.
    TIME_BELIEVED = "time_believed"
    # the time that is not trusted, the mark since then and the reason; or empty
    TIME_LEAP = "time_leap"
    # SHA-256 of the token with which a browser can create the first merchant
    START_SHA256 = "start_sha256"
    # signs the cookies of link pages; generated once, at random
    COOKIE_KEY = "cookie_key"
    # salts the hash of the owner's password; generated once, at random
    PASSWORD_SALT = "password_salt"
    RESTORED_MS = "restored_ms"  # when a backup was restored into this database
    BACKED_UP_MS = "backed_up_ms"  # when `blocktill backup` last wrote a complete copy
    # why there is no first block to start from; empty if there is one
    NOT_BEGUN = "not_begun"
    TRIAL = "trial"  # written and deleted to test if the database accepts writes


_GET = Fact.select(Fact.value).where(eq(Fact.name))
_FORGET = Fact.delete().where(eq(Fact.name))
# The row of NETWORK always exists.
_LOCK = Fact.select(Fact.value).where(Fact.name == Key.NETWORK.value).for_update()
_SET = Fact.insert(all_columns(Fact)).on_conflict(
    conflict_target=[Fact.name], preserve=[Fact.value]
)

_KEEP = Fact.insert(all_columns(Fact)).on_conflict("NOTHING")


def get(db: Database, key: Key) -> str | None:
    """Returns the stored value; None if there is none."""
    row = db.get_or_none(_GET, name=Key(key).value)
    if row:
        return row.value
    return None


def put(db: Database, key: Key, value: str) -> None:
    db.run(_SET, name=Key(key).value, value=value)


def keep(db: Database, key: Key, value: str) -> str:
    """Stores a value unless one is stored already. Returns the stored value."""
    stored_value = get(db, key)
    if stored_value is None:
        db.run(_KEEP, name=Key(key).value, value=value)
        stored_value = get(db, key)
    return stored_value or value


def time(db: Database, key: Key) -> datetime | None:
    """Returns the stored time; None if there is none."""
    ms = get(db, key)
    if ms is None:
        return None
    return from_ms(int(ms))


def count(db: Database, key: Key) -> int:
    """Returns the stored number; 0 if there is none."""
    return int(get(db, key) or 0)


def put_time(db: Database, key: Key, at: datetime) -> None:
    put(db, key, str(to_ms(at)))


def lock(db: Database) -> None:
    """Locks the row of Key.NETWORK, which always exists, until the transaction ends.

    Code takes this lock before changes that processes must make one after the other,
    for example to the stored chain or to the quota of calls to explorers.
    """
    db.get_or_none(_LOCK)


def try_to_write(db: Database, size: int = ORDER_BYTES) -> None:
    """Writes a value of `size` bytes and deletes it, to test that the database can write.

    Raises the database's error if it cannot. The value is random, and new each time:
    PostgreSQL would compress other values, and would not write an unchanged row.
    """
    with db.write():
        value = os.urandom(size // 2).hex()
        db.run(_SET, name=Key.TRIAL.value, value=value)
        db.run(_FORGET, name=Key.TRIAL.value)
