"""Facts about the database: its network, the chain's tip at the last check, that check's time."""

import os

from peewee import EXCLUDED

from storage.database import Database, slot
from storage.models import Fact

ORDER_BYTES = 262_144  # more than the largest order writes, in pages, keys and all

_GET = Fact.select(Fact.value).where(Fact.name == slot("name"))
_ALL = Fact.select()
_FORGET = Fact.delete().where(Fact.name == slot("name"))
_LOCK = Fact.select(Fact.value).where(Fact.name == "network").for_update()  # there is always one
_SET = Fact.insert({Fact.name: slot("name"), Fact.value: slot("value")}).on_conflict(
    conflict_target=[Fact.name], update={Fact.value: EXCLUDED.value}
)

_KEEP = Fact.insert({Fact.name: slot("name"), Fact.value: slot("value")}).on_conflict_ignore()


def get(db: Database, name: str) -> str | None:
    """The value of a fact; None when it was never set."""
    row = db.row(_GET, name=name)
    return row["value"] if row else None


def all(db: Database) -> dict[str, str]:
    """Every fact by its name."""
    return {row["name"]: row["value"] for row in db.rows(_ALL)}


def put(db: Database, name: str, value: str) -> None:
    """Sets a fact."""
    db.run(_SET, name=name, value=value)


def keep(db: Database, name: str, value: str) -> str:
    """Sets a fact unless it is set already; the value that stands, whoever came first."""
    found = get(db, name)
    if found is None:
        db.run(_KEEP, name=name, value=value)
        found = get(db, name)
    return found or value


def lock(db: Database) -> None:
    """Locks facts, and what an hour's quota has left, until the transaction ends."""
    db.row(_LOCK)


def try_to_write(db: Database, size: int = ORDER_BYTES) -> None:
    """Writes a fact of so many bytes and forgets it. Raises what stops it.

    The bytes are random: a server would compress others. A row that does not change is not written
    at all, so they differ each time.
    """
    with db.write():
        db.run(_SET, name="trial", value=os.urandom(size // 2).hex())
        db.run(_FORGET, name="trial")


def tip_height(db: Database) -> int | None:
    """Height of the chain's tip when a check last saw it."""
    text = get(db, "tip_height")
    return None if text is None else int(text)


def proven_height(db: Database) -> int:
    """Height of the highest tip that was proven to us; 0 when none was."""
    return int(get(db, "high_height") or 0)
