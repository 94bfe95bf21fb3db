"""The base class of logs that a thread writes, so that no request waits for the database."""

import threading

from storage.database import Database

SHUTDOWN_S = 5  # longest wait at shutdown, if another process holds the database


class BackgroundWriter:
    """Collects values in memory. A thread writes them to the database some seconds later.

    A subclass implements `write` and `pause_s`. Its methods that add values do so while
    they hold `_lock`, and call `wake` before they release the lock.
    """

    def __init__(self, db: Database) -> None:
        self._db = db
        self._lock = threading.Lock()
        self._ending = threading.Event()
        self._has_pending = threading.Event()
        self._thread: threading.Thread | None = None

    def write(self) -> object:
        """Writes the collected values. The thread calls this method after each pause."""
        raise NotImplementedError

    def pause_s(self) -> float:
        """Returns how many seconds values are collected before they are written."""
        raise NotImplementedError

    def close(self) -> None:
        """Writes the collected values, and ends the thread.

        No values may be added afterwards.
        """
        self._ending.set()
        self._has_pending.set()
        if self._thread:
            self._thread.join(SHUTDOWN_S)

    def wake(self) -> None:
        """Makes the thread write the collected values. Starts the thread if necessary."""
        self._has_pending.set()
        # started late, because threads do not survive the server's fork
        if self._thread is None:
            self._thread = threading.Thread(target=self._write_forever, daemon=True)
            self._thread.start()

    def _write_forever(self) -> None:
        """Writes the collected values after each pause, until `close` is called."""
        while not self._ending.is_set():
            self._has_pending.wait()
            self._ending.wait(self.pause_s())
            self._has_pending.clear()
            self.write()
        self.write()  # values that were added during the last write
        self._db.close()
