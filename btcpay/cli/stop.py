"""An event that asks the program to stop, set by a signal or a thread."""

import os
import select
import signal
from contextlib import suppress

PIPE_BYTES = 65_536  # all that a pipe holds


class Stop:
    """An event that is set by the given signals, or by any thread.

    It uses a pipe instead of a threading.Event. A signal handler must not set such an
    event: the interrupted thread may hold the event's lock, which would be a deadlock.
    """

    def __init__(self, *signals: int) -> None:
        self._reading_end, self._writing_end = os.pipe()
        os.set_blocking(self._writing_end, False)
        for number in signals:
            signal.signal(number, lambda *_: self.set())

    def set(self) -> None:
        with suppress(BlockingIOError):  # the pipe is full, so the event is set already
            os.write(self._writing_end, b".")

    def clear(self) -> None:
        """Unsets the event, so that `wait` waits for the next signal.

        Call this method only after `wait` has returned True.
        """
        os.read(self._reading_end, PIPE_BYTES)

    def fileno(self) -> int:
        """The file descriptor for `select`, which is readable once the event is set."""
        return self._reading_end

    def wait(self, seconds: float = 0) -> bool:
        """Waits up to `seconds` for the event. Returns True if it is set, else False."""
        readable, _, _ = select.select([self._reading_end], [], [], seconds)
        return bool(readable)
