"""The database layer: models, schema migrations and all queries.

peewee imports the driver psycopg where it is installed, which takes 12 MB of memory in each
process. A shop on SQLite needs no driver. So the driver is hidden while peewee is imported
here, and storage/postgres_driver.py loads it when a PostgreSQL database is opened.
"""

import sys

DRIVER = "psycopg"

_is_hidden = DRIVER not in sys.modules
if _is_hidden:
    # None makes the import fail (Python's reference, "The module cache").
    sys.modules[DRIVER] = None  # type: ignore[assignment]

import peewee  # noqa: E402, F401 - the first import of peewee in each process

if _is_hidden:
    del sys.modules[DRIVER]
