"""An adapter that lets peewee use the driver psycopg 3.

The driver is imported when the adapter is created. peewee's own adapter works only if
the driver was imported before peewee. storage/__init__.py says why it is not.
"""

from importlib import import_module
from typing import Any

from peewee import Psycopg3Adapter


class PsycopgAdapter(Psycopg3Adapter):
    """Calls psycopg for peewee. Raises ImportError if psycopg is not installed."""

    def __init__(self) -> None:
        super().__init__()
        self._driver = import_module("psycopg")
        # peewee compares the state of a connection with these
        status = self._driver.pq.TransactionStatus
        self.txn_idle = status.IDLE
        self.txn_inerror = status.INERROR
        self.txn_unknown = status.UNKNOWN

    def check_driver(self) -> None:
        """Does nothing: this adapter exists only if the driver is installed."""

    def get_binary_type(self) -> Any:
        return self._driver.Binary

    def connect(self, db: Any, **params: Any) -> Any:
        """Connects to the database whose URL peewee has in `db.database`."""
        return self._driver.connect(db.database, **params)
