"""Limits how many long downloads run at the same time.

Each download has a slot. If no slot is free for another client, a slow client loses its
slot.
"""

import contextlib
import socket
import threading
import time
from collections.abc import Callable, Iterable, Iterator

Clock = Callable[[], float]
# The size of the kernel's send buffer. By default it has several MB, and a client that
# reads nothing would seem fast until the buffer is full.
SEND_BYTES = 131_072


class SlotLost(ConnectionError):
    """Aborts a download that has lost its slot. Its client gets an incomplete file."""


class DownloadSlot:
    """The right of one download to run.

    The slot is free again when the download is finished, or when another download gets
    the slot.

    - `has_given_way`: True if another download has got the slot.
    - `behind_since_s`: a time of the clock. The client is as many seconds behind the pace
      as have passed since then.
    """

    def __init__(
        self,
        slots: "DownloadSlots",
        connection: socket.socket | None,
    ) -> None:
        self._slots = slots
        self._connection = connection
        self.has_given_way = False
        self.behind_since_s = slots.clock()
        if connection is not None:
            # If the connection is closed already, sending the first piece fails.
            with contextlib.suppress(OSError):
                connection.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, SEND_BYTES)

    def send(self, pieces: Iterable[bytes]) -> Iterator[bytes]:
        """Yields the pieces, and measures how fast the client receives them.

        Raises SlotLost if another download has got the slot meanwhile.
        """
        began_s = self._slots.clock()
        for piece in pieces:
            if self.has_given_way:
                raise SlotLost
            now_s = self._slots.clock()
            # Two times do not count against the client: the time in which the server produced
            # this piece, and the time that a client at the pace needs to receive it.
            produced_s = now_s - began_s
            allowed_s = len(piece) / self._slots.least_pace
            self.behind_since_s += produced_s + allowed_s
            # A client that was faster than the pace gets no credit for it.
            self.behind_since_s = min(self.behind_since_s, now_s)
            yield piece
            began_s = self._slots.clock()

    def give_way(self) -> None:
        """Aborts the download, even while its thread waits for the client."""
        self.has_given_way = True
        if self._connection is not None:
            with contextlib.suppress(OSError):  # the connection has ended already
                self._connection.shutdown(socket.SHUT_RDWR)

    def release(self) -> None:
        self._slots.release(self)


class DownloadSlots:
    """A limited number of slots for downloads that run at the same time.

    - `most`: the number of slots.
    - `least_pace`: the pace in bytes per second that a client must keep.
    - `slow_s`: a client that is this many seconds behind `least_pace` loses its slot if
      another client needs one. If there are several such clients, only the slowest loses
      its slot. A client that was faster than the pace for a while gets no credit for it.
    - `clock`: a function that returns the time in seconds.
    """

    def __init__(
        self,
        most: int,
        slow_s: float,
        least_pace: float,
        clock: Clock = time.monotonic,
    ) -> None:
        self.clock = clock
        self.least_pace = least_pace
        self._most = most
        self._slow_s = slow_s
        self._lock = threading.Lock()
        self._slots: list[DownloadSlot] = []

    def take(self, connection: socket.socket | None) -> DownloadSlot | None:
        """Returns a slot for a download over `connection`; None if there is none.

        If all slots are in use, and the slowest client is too slow (`slow_s`), aborts the
        download of this client and gives its slot away.
        """
        with self._lock:
            if len(self._slots) >= self._most and not self._free_slowest():
                return None
            slot = DownloadSlot(self, connection)
            self._slots.append(slot)
            return slot

    def release(self, slot: DownloadSlot) -> None:
        with self._lock:
            if slot in self._slots:
                self._slots.remove(slot)

    def _free_slowest(self) -> bool:
        """Frees the slot of the slowest client. Returns False if no client is too slow.

        The caller must hold the lock.
        """
        slowest = min(self._slots, key=lambda slot: slot.behind_since_s)
        if self.clock() - slowest.behind_since_s < self._slow_s:
            return False
        slowest.give_way()
        self._slots.remove(slowest)
        return True
