"""Reads the replies of a mail server, with limits on their size and their time."""

import socket
import time
from dataclasses import dataclass

# The maximum size of all replies to one mail. An honest server sends far less.
MOST_BYTES = 65_536


@dataclass(frozen=True)
class Times:
    """The time limits for a mail server, in seconds.

    - `connect_s`: the time to connect.
    - `answer_s`: the time for the greeting, and for each reply. It is long, since servers
      that look for viruses before they accept a mail need more than ten seconds.
    - `mail_s`: the time for all replies to one mail together.
    - `goodbye_s`: the time to end the session.
    """

    connect_s: float = 10
    answer_s: float = 60
    mail_s: float = 150
    goodbye_s: float = 5


USUAL = Times()


class Bounds:
    """Counts the bytes and the time that remain for the server's replies to one mail."""

    def __init__(self, times: Times) -> None:
        self._times = times
        self.next_mail()

    def next_mail(self) -> None:
        """Resets all limits, before the first reply to the next mail."""
        self.left_bytes = MOST_BYTES
        self._mail_until_s = time.monotonic() + self._times.mail_s
        self.next_answer()

    def next_answer(self) -> None:
        """Resets the time limit of one reply. The mail's own limit stays."""
        self._until_s = min(self._mail_until_s, time.monotonic() + self._times.answer_s)

    def goodbye(self) -> None:
        """Sets the time limit of the reply that ends the session."""
        self._mail_until_s = time.monotonic() + self._times.goodbye_s
        self.next_answer()

    def left_s(self) -> float:
        """Returns the seconds that remain for the present reply.

        Raises TimeoutError if no time or no bytes remain.
        """
        left_s = self._until_s - time.monotonic()
        if left_s <= 0 or not self.left_bytes:
            raise TimeoutError
        return left_s


class Replies:
    """Reads the server's reply lines within the limits of `bounds`.

    It replaces the file object of smtplib, which limits neither the size nor the time
    of a reply: smtplib stores every line, and its time-out begins again with each byte.
    In a test an endless greeting filled 610 MB of memory in one second. A server that
    sends a byte every four seconds could take nine hours for one line.
    """

    def __init__(self, connection: socket.socket, bounds: Bounds) -> None:
        self._connection = connection
        self._bounds = bounds

    def readline(self, limit: int) -> bytes:
        """Returns the next line, or the first `limit` bytes of a longer line.

        Raises TimeoutError (an OSError) if the time or the bytes of `bounds` run out.
        """
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
        """Does nothing: the session closes the connection."""
