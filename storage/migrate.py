"""Brings a database to this version by the steps that it lacks; there is no way back.

A step is SQL. Code that a step may need names its columns itself: `storage/models` have those of
the last step, and the database may be several steps behind.
"""

from pathlib import Path

from storage import versions
from storage.database import Database, open_database, place_of, sqlite_path
from storage.locks import only_one
from storage.sqlite import create_file


def migrate(url: str, network: str, folder: Path = versions.STEPS) -> list[str]:
    """Runs the missing steps of `folder` under a lock; returns their names, in order.

    Raises DatabaseNotReady when the database is newer, of another program or of another network.
    """
    path = sqlite_path(url)
    if path:
        create_file(path)
    db = open_database(url)
    versions.refuse_unfit(db)
    with only_one(db, url, "migrate", wait=True):
        wanted = versions.steps(folder)
        found = versions.version(db)
        if found is not None:
            versions.refuse_foreign(found, len(wanted), place_of(url))
            versions.claim_network(db, network)
        missing = wanted[found or 0 :]
        for number, step in enumerate(missing, (found or 0) + 1):
            _run(db, step, number)
        versions.claim_network(db, network)
    db.close()
    return [step.stem for step in missing]


def _run(db: Database, step: Path, number: int) -> None:
    """One transaction: a process that dies here has changed nothing."""
    with db.write():
        if db.is_server and (tables := db.connection.get_tables()):
            # Locked: a service that still runs must not write to a table while it is copied.
            names = ", ".join(f'"{name}"' for name in tables)
            db.connection.execute_sql(f"LOCK TABLE {names} IN ACCESS EXCLUSIVE MODE")
        for statement in versions.statements(step, db.is_server):
            db.connection.execute_sql(statement)
        db.connection.execute_sql("DELETE FROM schema_step")
        db.connection.execute_sql(f"INSERT INTO schema_step (number) VALUES ({number:d})")  # noqa: S608
