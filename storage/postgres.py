"""PostgreSQL through psycopg 3, with a pool that checks connections before use."""

import logging
import math
import select
import threading
import time
from collections.abc import Sequence
from importlib.util import find_spec
from typing import Any
from urllib.parse import parse_qsl, quote, urlencode

from peewee import OperationalError
from playhouse.pool import MaxConnectionsExceeded, PooledPostgresqlDatabase

from btcpay.values.errors import DatabaseNotReady
from storage.faults import as_peewee_errors
from storage.postgres_driver import PsycopgAdapter

# Enough for the sixteen threads of a check. A service has 64 threads, of which some then wait.
# PostgreSQL's default limit is 100.
CONNECTIONS = 20
BEGIN = "BEGIN"
CONNECT_S = 10  # time-out for connecting
WAIT_S = 10  # time-out for a free connection of the pool
# Overrides the server's settings. synchronous_commit: a commit that is lost after its response was
# sent could give out an address twice. lock_timeout is as long as SQLite's. A process that hangs in
# a transaction blocks others for at most a minute.
SESSION = (
    r"-c synchronous_commit=on -c default_transaction_isolation=read\ committed"
    " -c lock_timeout=10s -c idle_in_transaction_session_timeout=60s"
)
# Detects a lost connection within a minute, and within 20 s during a statement.
NETWORK = {
    "connect_timeout": CONNECT_S,
    "keepalives_idle": 30,
    "keepalives_interval": 10,
    "keepalives_count": 3,
    "tcp_user_timeout": 20_000,
}


class _Queue(threading.local):
    """The queued statements of each thread, as tuples of cursor, SQL and parameters."""

    def __init__(self) -> None:
        self.statements: list[tuple[Any, str, Sequence[Any]]] = []


class Pool(PooledPostgresqlDatabase):  # type: ignore[misc]  # it has no stubs
    """A pool of connections, each borrowed for one statement or one transaction.

    A statement whose result nobody waits for, such as BEGIN, is queued. It is sent
    together with the next statement in one network round trip (psycopg's pipeline
    mode). If a queued statement fails, the server skips those after it, and the
    statement that sent the queue raises the error. From then on no statement is
    prepared (PREPARE) on this connection, and the pool closes the connection instead of
    reusing it.

    `is_pooled` is True if an external pooler in transaction mode (such as PgBouncer) is
    between this program and the server.
    """

    is_pooled = False
    # peewee chooses one of the two by the drivers that it has imported itself.
    psycopg2_adapter = PsycopgAdapter
    psycopg3_adapter = PsycopgAdapter

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self._asked = threading.local()  # `at_s`: when each thread called `connect`
        self._failed_s = -math.inf  # the monotonic time when connecting last failed
        self._queue = _Queue()

    def queue(self, sql: str, parameters: Sequence[Any] = ()) -> Any:
        """Queues a statement of this thread. Returns a cursor.

        The next `run` sends the queue, and then the cursor has the result. Call this
        only in a transaction: its COMMIT also calls `run`, so no statement is lost.
        """
        cursor = self.connection().cursor()
        self._queue.statements.append((cursor, sql, parameters))
        return cursor

    def run(self, sql: str, parameters: Sequence[Any] = ()) -> Any:
        """Sends the queue and this statement. Returns the statement's cursor."""
        cursor = self.connection().cursor()
        if self._queue.statements:
            self._queue.statements.append((cursor, sql, parameters))
            self._run_queue()
        else:
            cursor.execute(sql, parameters)
        return cursor

    def _run_queue(self) -> None:
        """Sends the queued statements in one network round trip, and empties the queue."""
        statements = self._queue.statements
        self._queue.statements = []
        connection = self.connection()
        have_succeeded = False
        try:
            with connection.pipeline():
                for cursor, sql, parameters in statements:
                    cursor.execute(sql, parameters)
            have_succeeded = True
        finally:
            if not have_succeeded:
                # The server may have skipped a PREPARE. psycopg would not send it again.
                connection.prepare_threshold = None

    def cursor(self, named_cursor: str | None = None) -> Any:
        if self._queue.statements:
            self._run_queue()
        return super().cursor(named_cursor)

    def execute_sql(self, sql: str, params: Sequence[Any] | None = None) -> Any:
        """Runs a statement that peewee makes, such as SAVEPOINT.

        A ROLLBACK first drops the statements that are queued.
        """
        if sql.startswith("ROLLBACK"):
            # BEGIN or SAVEPOINT was sent. Statements that were queued since then are dropped.
            self._queue.statements = []
        with as_peewee_errors:
            return self.run(sql, params or ())

    def begin(self, isolation_level: str | None = None) -> None:
        """Queues BEGIN, so that it is sent with the transaction's first statement.

        `isolation_level` is one of PostgreSQL's; None means the session's default.
        """
        statement = BEGIN
        if isolation_level:
            statement += f" ISOLATION LEVEL {isolation_level}"
        self.queue(statement)

    def commit(self) -> None:
        """Commits. Sends nothing if the transaction ran no statement."""
        queues_more_than_begin = len(self._queue.statements) > 1
        if self._has_begun() or queues_more_than_begin:
            self.execute_sql("COMMIT")
        self._queue.statements = []

    def rollback(self) -> None:
        """Rolls back. Sends nothing if BEGIN was not sent yet."""
        if self._has_begun():
            self.execute_sql("ROLLBACK")
        self._queue.statements = []

    def _has_begun(self) -> bool:
        """True if the transaction's BEGIN was sent."""
        queued = self._queue.statements
        if not queued:
            return True
        _cursor, first_sql, _parameters = queued[0]
        return not first_sql.startswith(BEGIN)

    def connect(self, reuse_if_open: bool = False) -> bool:
        """Borrows a connection, and waits if all are in use.

        Raises OperationalError if none becomes free within WAIT_S seconds; peewee
        itself would raise ValueError.
        """
        self._asked.at_s = time.monotonic()
        try:
            return bool(super().connect(reuse_if_open))
        except MaxConnectionsExceeded as error:
            raise OperationalError(
                f"all {CONNECTIONS} connections are in use"
            ) from error

    def _connect(self) -> Any:
        """Connects, one thread at a time. If that fails, the threads that wait fail too.

        Otherwise each thread would wait for its own time-out, one after the other,
        while the server is unreachable.
        """
        has_idle_connection = bool(self._connections)
        if not has_idle_connection and self._asked.at_s <= self._failed_s:
            raise OperationalError("the server could not be reached a moment ago")
        try:
            return super()._connect()
        except MaxConnectionsExceeded:
            raise
        except Exception:
            self._failed_s = time.monotonic()
            raise

    def _can_reuse(self, conn: Any) -> bool:
        """False if statements can no longer be prepared on the connection."""
        if conn.prepare_threshold is None and not self.is_pooled:
            return False
        return bool(super()._can_reuse(conn))

    def _is_closed(self, conn: Any) -> bool:
        """True if the server has closed the connection; this end is then closed too.

        An idle connection becomes readable only when the server closes it. poll() shows
        this without a network round trip. That matters, because this method runs before
        every statement.
        """
        if not conn.closed:
            poll = select.poll()
            poll.register(conn.fileno(), select.POLLIN)
            is_readable = poll.poll(0)
            if not is_readable:
                return False
        self._close_raw(conn)
        return True


def open_pool(url: str) -> Pool:
    """Returns a connection pool for a `postgresql://` URL. The first query connects.

    The URL may have libpq's parameters, which override the defaults in NETWORK. If it
    has `options`, the settings in SESSION override those in the `options`.

    The parameter `pooler=transaction` is this program's own. Statements are then not
    prepared, and the operator must set the SESSION settings on the database role.

    Raises DatabaseNotReady if the driver is not installed.
    """
    if find_spec("psycopg") is None:
        raise DatabaseNotReady(
            "PostgreSQL needs a driver: pip install --require-hashes -r requirements/postgres.txt,"
            " in a clone of the sources"
        )
    # psycopg's warnings only say that it skipped a statement after a failed one.
    logging.getLogger("psycopg").setLevel(logging.ERROR)
    address, _, query = url.partition("?")
    # in this URL a plus sign is not a space
    parameters = dict(parse_qsl(query.replace("+", "%2B")))
    options = parameters.pop("options", "")
    is_pooled = parameters.pop("pooler", "") == "transaction"
    connect_options: dict[str, Any] = {"options": f"{options} {SESSION}"}
    if is_pooled:
        connect_options = {"prepare_threshold": None}
    for name, default in NETWORK.items():
        connect_options[name] = parameters.get(name, default)
    pool = Pool(
        f"{address}?{urlencode(parameters, quote_via=quote)}",
        max_connections=CONNECTIONS,
        timeout=WAIT_S,
        autoconnect=False,
        **connect_options,
    )
    pool.is_pooled = is_pooled
    return pool
