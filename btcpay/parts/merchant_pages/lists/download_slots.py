"""Slots for long answers: whoever has been slow for long gives way to the next."""

import contextlib
import socket
import threading
import time
from collections.abc import Callable, Iterable, Iterator

Clock = Callable[[], float]
# What the kernel may hold for a reader. Without a bound it takes some MB, and a reader that takes
# nothing would seem quick for as long as those are written.
SEND_BYTES = 131_072


class SlotLost(ConnectionError):
    """Ends an answer whose reader was slow while another waited, so that it is no whole file."""


class DownloadSlot:
    """One answer's slot, until it is released or taken away."""

    def __init__(
        self, slots: "DownloadSlots", connection: socket.socket | None
    ) -> None:
        self._slots = slots
        self._connection = connection
        self.has_given_way = False
        self.behind_since_s = slots.clock()
        if connection is not None:
            with contextlib.suppress(OSError):  # who hung up is met by the first piece
                connection.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, SEND_BYTES)

    def send(self, pieces: Iterable[bytes]) -> Iterator[bytes]:
        """The pieces, each noted when it goes out. Raises SlotLost."""
        began_s = self._slots.clock()
        for piece in pieces:
            if self.has_given_way:
                raise SlotLost
            now_s = self._slots.clock()
            earned_s = len(piece) / self._slots.least_pace
            # The time in which the piece was made is not the reader's.
            self.behind_since_s += now_s - began_s + earned_s
            self.behind_since_s = min(self.behind_since_s, now_s)
            yield piece
            began_s = self._slots.clock()

    def give_way(self) -> None:
        """Ends the answer, even while its thread waits for the reader."""
        self.has_given_way = True
        if self._connection is not None:
            with contextlib.suppress(OSError):  # it has just ended by itself
                self._connection.shutdown(socket.SHUT_RDWR)

    def release(self) -> None:
        self._slots.release(self)


class DownloadSlots:
    """As many slots as may be taken at once.

    A reader that has fallen `slow_s` behind `least_pace`, in bytes a second, loses its slot, but
    only when somebody else asks for one. To have been quicker before counts for nothing. `clock`
    counts seconds.
    """

    def __init__(
        self, most: int, slow_s: float, least_pace: float, clock: Clock = time.monotonic
    ) -> None:
        self.clock = clock
        self.least_pace = least_pace
        self._most = most
        self._slow_s = slow_s
        self._lock = threading.Lock()
        self._taken: list[DownloadSlot] = []

    def take(self, connection: socket.socket | None) -> DownloadSlot | None:
        """A slot for an answer on that connection; None while all readers are quick."""
        with self._lock:
            if len(self._taken) >= self._most and not self._free_slowest():
                return None
            slot = DownloadSlot(self, connection)
            self._taken.append(slot)
            return slot

    def release(self, slot: DownloadSlot) -> None:
        with self._lock:
            if slot in self._taken:
                self._taken.remove(slot)

    def _free_slowest(self) -> bool:
        slowest = min(self._taken, key=lambda slot: slot.behind_since_s)
        if self.clock() - slowest.behind_since_s < self._slow_s:
            return False
        slowest.give_way()
        self._taken.remove(slowest)
        return True
