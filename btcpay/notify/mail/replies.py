"""A mail server's answers, bounded in bytes and in time."""

import socket
import time
from dataclasses import dataclass

# Of all answers to one mail; no honest server sends as much.
MOST_BYTES = 65_536


@dataclass(frozen=True)
class Times:
    """The seconds that a mail server may take.

    `answer_s`: for the greeting and for each answer; servers that look at a mail before they take
    it need more than ten seconds. `mail_s`: for all that belongs to one mail.
    """

    connect_s: float = 10
    answer_s: float = 60
    mail_s: float = 150
    goodbye_s: float = 5


USUAL = Times()


class Bounds:
    """The bytes and the time that are left for the answers to one mail."""

    def __init__(self, times: Times) -> None:
        self._times = times
        self.next_mail()

    def next_mail(self) -> None:
        self.left_bytes = MOST_BYTES
        self._mail_until_s = time.monotonic() + self._times.mail_s
        self.next_answer()

    def next_answer(self) -> None:
        self._until_s = min(self._mail_until_s, time.monotonic() + self._times.answer_s)

    def goodbye(self) -> None:
        self._mail_until_s = time.monotonic() + self._times.goodbye_s
        self.next_answer()

    def left_s(self) -> float:
        """Raises TimeoutError if nothing is left."""
        left_s = self._until_s - time.monotonic()
        if left_s <= 0 or not self.left_bytes:
            raise TimeoutError
        return left_s


class Replies:
    """The server's lines, within bounds.

    smtplib keeps each line of a reply, however many follow, and its time-out begins again with each
    byte. Measured: a greeting without end filled 610 MB in a second and 2.3 GB in the ten of an
    attempt, so a limit of time alone does not bound the memory. At a byte every four seconds a
    single line would last for nine hours.
    """

    def __init__(self, connection: socket.socket, bounds: Bounds) -> None:
        self._connection = connection
        self._bounds = bounds

    def readline(self, limit: int) -> bytes:
        """Raises OSError beyond the bounds."""
        line = bytearray()
        while len(line) < limit and not line.endswith(b"\n"):
            self._connection.settimeout(self._bounds.left_s())
            byte = self._connection.recv(1)
            if not byte:
                break
            line += byte
            self._bounds.left_bytes -= 1
        return bytes(line)

    def close(self) -> None:
        """The session closes the connection."""
