"""Ends the PostgreSQL session of a process that froze while it held a lock.

A frozen process keeps its connections, and with them its locks and its open transaction.
A slow process must not be mistaken for a frozen one. So while a process holds a lock, one
of its threads sends a short statement on the lock's connection every two seconds (the
heartbeat), even while the process computes or waits for the network. Another process that
wants the lock can see in PostgreSQL's statistics how long the holder's session has been
silent, and end the session. If the holder then continues, its next statement raises
OperationalError.
"""

import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import Any

from peewee import PeeweeException

from storage.database import Database
from storage.faults import as_peewee_errors

BEAT_S = 2.0
SILENCE_S = 10
# A process may hang in a transaction. After this time the heartbeat pauses until the transaction
# ends. Then USUAL_SILENCE_S is the limit, which the server has for every session.
MOST_TRANSACTION_S = 120
USUAL_SILENCE_S = 60
# The ids of connections that have a heartbeat: a thread may take several locks with one.
_beating: set[int] = set()

# True if the transaction has lasted the given number of seconds. Outside of a transaction now() is
# the time at which this statement came, so the result is false.
_IS_OLD = "SELECT clock_timestamp() - now() >= make_interval(secs => {})"
# A session is silent if it waits for a statement, even for the next one of a pipeline. A session
# that copies rows from its client (COPY) may wait for rows, and is not silent then.
_END_SILENT = """
SELECT pg_terminate_backend(pid) FROM pg_locks JOIN pg_stat_activity USING (pid)
WHERE locktype = 'advisory' AND granted AND datname = current_database()
AND (classid, objid) = (0, %s)
AND (state LIKE 'idle%%' OR (wait_event = 'ClientRead' AND query NOT ILIKE 'COPY%%'))
AND clock_timestamp() - state_change > make_interval(secs =>
  CASE WHEN clock_timestamp() - xact_start > make_interval(secs => %s) THEN %s ELSE %s END)
"""


@contextmanager
def heartbeat(connection: Any) -> Iterator[None]:
    """Sends a short statement on the connection every BEAT_S seconds during the block.

    Sends none while another statement runs. Does nothing if the connection has a
    heartbeat already. `connection` is one of psycopg.
    """
    if id(connection) in _beating:
        yield
        return
    over = threading.Event()
    thread = threading.Thread(target=_beat, args=(connection, over), daemon=True)
    _beating.add(id(connection))
    thread.start()
    try:
        yield
    finally:
        over.set()
        thread.join()
        _beating.discard(id(connection))


def _beat(connection: Any, over: threading.Event) -> None:
    """Sends the heartbeat's statement again and again until `over` is set.

    Pauses during a transaction that has lasted MOST_TRANSACTION_S.
    """
    is_transaction_old = False
    while not over.wait(BEAT_S) and not connection.closed:
        is_in_transaction = connection.info.transaction_status.name != "IDLE"
        if is_transaction_old and is_in_transaction:
            continue
        # A PeeweeException says that the session has ended.
        with suppress(PeeweeException), as_peewee_errors:
            is_transaction_old = _is_transaction_old(connection)


def _is_transaction_old(connection: Any) -> bool:
    """Sends the heartbeat's statement. True if the transaction is MOST_TRANSACTION_S old.

    Sends nothing and returns False while the connection is busy. Holds psycopg's lock
    from the check of the connection to the response. Otherwise the other thread could
    begin a pipeline in between, and the statements would be mixed up.
    """
    with connection.lock:
        if not _is_silent(connection):
            return False
        statement = _IS_OLD.format(MOST_TRANSACTION_S)
        result = connection.pgconn.exec_(statement.encode())
    return bool(result.ntuples and result.get_value(0, 0) == b"t")


def _is_silent(connection: Any) -> bool:
    """True if no statement runs on the connection, and its transaction has not failed."""
    transaction = connection.info.transaction_status.name
    is_pipelining = connection.info.pipeline_status.name != "OFF"
    return transaction in ("IDLE", "INTRANS") and not is_pipelining


def end_silent_holder(db: Database, number: int) -> bool:
    """Ends the session that holds the advisory lock `number`, if its process is frozen.

    A process counts as frozen if its session has sent nothing for SILENCE_S seconds. In
    a transaction older than MOST_TRANSACTION_S the limit is USUAL_SILENCE_S. Returns
    True if a session was ended: its transaction is rolled back, and its locks are
    released.
    """
    parameters = (number, MOST_TRANSACTION_S, USUAL_SILENCE_S, SILENCE_S)
    ended_session = db.connection.execute_sql(_END_SILENT, parameters).fetchone()
    return ended_session is not None
