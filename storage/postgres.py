"""PostgreSQL through psycopg 3: a pool whose connections are looked at before they are used."""

import math
import select
import threading
import time
from importlib.util import find_spec
from typing import Any
from urllib.parse import parse_qsl, quote, urlencode

from peewee import OperationalError
from playhouse.pool import MaxConnectionsExceeded, PooledPostgresqlDatabase

from btcpay.values.errors import DatabaseNotReady

# Enough for a check's sixteen threads; of a service's 64 the others wait. A server allows 100.
CONNECTIONS = 20
CONNECT_S = WAIT_S = (
    10  # to a server that does not answer; for a connection that others use
)
# Whatever the server's own settings say. A commit that is lost after its answer went out would
# hand out an address twice; waiting for a lock takes as long as SQLite's; a process that freezes
# in a transaction stops the others for a minute at most.
SESSION = (
    r"-c synchronous_commit=on -c default_transaction_isolation=read\ committed"
    " -c lock_timeout=10s -c idle_in_transaction_session_timeout=60s"
)
# A peer that vanished silently is noticed within a minute, during a statement within 20 s.
NETWORK = {
    "connect_timeout": CONNECT_S,
    "keepalives_idle": 30,
    "keepalives_interval": 10,
    "keepalives_count": 3,
    "tcp_user_timeout": 20_000,
}


class Pool(PooledPostgresqlDatabase):  # type: ignore[misc]  # it has no stubs
    """Lends a connection for one statement or one transaction.

    `is_pooled`: another program's pool stands before the server, and lends a connection likewise.
    """

    is_pooled = False

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self._asked = threading.local()  # when each thread did
        self._failed_s = -math.inf

    def connect(self, reuse_if_open: bool = False) -> bool:
        """Waits for one. Raises OperationalError when all stay in use, not peewee's ValueError."""
        self._asked.at_s = time.monotonic()
        try:
            return bool(super().connect(reuse_if_open))
        except MaxConnectionsExceeded as error:
            raise OperationalError(
                f"all {CONNECTIONS} connections are in use"
            ) from error

    def _connect(self) -> Any:
        """One thread at a time enters peewee's pool; those that queue behind a failure share it.

        Otherwise the eighth thread would wait eight times as long for a server that is away.
        """
        if not self._connections and self._asked.at_s <= self._failed_s:
            raise OperationalError("the server could not be reached a moment ago")
        try:
            return super()._connect()
        except MaxConnectionsExceeded:
            raise
        except Exception:
            self._failed_s = time.monotonic()
            raise

    def _is_closed(self, conn: Any) -> bool:
        """True where the server has hung up: an idle connection has nothing to read but its end.

        Asks this machine's kernel and not the server, since every statement is asked for first.
        """
        if not conn.closed:
            poll = select.poll()
            poll.register(conn.fileno(), select.POLLIN)
            if not poll.poll(0):
                return False
        self._close_raw(conn)
        return True


def open_pool(url: str) -> Pool:
    """The pool of a `postgresql://` URL, with libpq's parameters; connects at the first query.

    The URL's parameters win over NETWORK, and SESSION wins over the URL's options. The parameter
    `pooler=transaction` is ours: statements are not prepared, and SESSION is left to the role.

    Raises DatabaseNotReady when the driver is not installed.
    """
    if find_spec("psycopg") is None:
        raise DatabaseNotReady(
            "PostgreSQL needs a driver: pip install --require-hashes -r requirements/postgres.txt,"
            " in a clone of the sources"
        )
    place, _, parameters = url.partition("?")
    said = dict(parse_qsl(parameters.replace("+", "%2B")))  # a plus is not a space here
    options: dict[str, Any] = {"options": f"{said.pop('options', '')} {SESSION}"}
    if is_pooled := said.pop("pooler", "") == "transaction":
        options = {"prepare_threshold": None}
    pool = Pool(
        f"{place}?{urlencode(said, quote_via=quote)}",
        max_connections=CONNECTIONS,
        timeout=WAIT_S,
        autoconnect=False,
        prefer_psycopg3=True,
        **options,
        **{name: said.get(name, value) for name, value in NETWORK.items()},
    )
    pool.is_pooled = is_pooled
    return pool
