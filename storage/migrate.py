"""Brings a database to this version.

Migrations run in the order of their numbers. There is no 0007 and never was: 0006 and 0008 were
written at the same time. A number says only what comes first; none is given to another migration.
"""

from playhouse.migrations import Runner

from storage.database import open_database, sqlite_path
from storage.locks import only_one
from storage.sqlite import create_file
from storage.versions import MIGRATIONS, claim_network, refuse_newer, refuse_unfit


def migrate(url: str, network: str) -> list[str]:
    """Runs the missing migrations under a lock; returns their names, in order.

    Raises DatabaseNotReady when the database is newer, or belongs to another network.
    """
    path = sqlite_path(url)
    if path:
        create_file(path)
    db = open_database(url)
    refuse_unfit(db)
    with only_one(db, url, "migrate", wait=True):
        runner = Runner(db.connection, str(MIGRATIONS))
        applied = runner.applied()
        refuse_newer(applied)
        if applied:
            claim_network(db, network)
        done = runner.up()
        claim_network(db, network)
    db.close()
    return list(done)
