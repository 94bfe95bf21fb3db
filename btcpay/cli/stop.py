"""The wish to end: set by a signal or by any thread, and waited for."""

import os
import select
import signal
from contextlib import suppress


class Stop:
    """An event that these signals set, or any thread.

    A threading.Event has a lock. The thread that a signal interrupts may hold it, and its handler
    would wait for itself.
    """

    def __init__(self, *signals: int) -> None:
        self._reading_end, self._writing_end = os.pipe()
        os.set_blocking(self._writing_end, False)
        for number in signals:
            signal.signal(number, lambda *_: self.set())

    def set(self) -> None:
        with suppress(BlockingIOError):  # the pipe is full: it was set before
            os.write(self._writing_end, b".")

    def wait(self, seconds: float = 0) -> bool:
        """True once it is set; False if the time runs out first."""
        readable, _, _ = select.select([self._reading_end], [], [], seconds)
        return bool(readable)
