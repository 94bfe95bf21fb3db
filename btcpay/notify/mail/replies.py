"""The replies of a mail server, limited in bytes and in time."""

import socket
import time
from dataclasses import dataclass

# The maximum of all replies to one mail. An honest server sends far less.
MOST_BYTES = 65_536


@dataclass(frozen=True)
class Times:
    """The time limits for a mail server, in seconds.

    `answer_s` is for the greeting and for each reply. Servers that scan a mail before
    they accept it need more than ten seconds. `mail_s` is for all steps of one mail.
    """

    connect_s: float = 10
    answer_s: float = 60
    mail_s: float = 150
    goodbye_s: float = 5


USUAL = Times()


class Bounds:
    """The bytes and the time that remain for the replies to one mail."""

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
        """Returns the seconds that remain.

        Raises TimeoutError if no time or no bytes remain.
        """
        left_s = self._until_s - time.monotonic()
        if left_s <= 0 or not self.left_bytes:
            raise TimeoutError
        return left_s


class Replies:
    """The server's reply lines, read within the limits of `bounds`.

    smtplib stores every line of a reply, and its time-out begins again with each byte.
    An endless greeting filled 610 MB of memory in one second, and 2.3 GB in the ten
    seconds of an attempt: so a time limit alone does not limit the memory. A server
    that sends a byte every four seconds could take nine hours for one line.
    """

    def __init__(self, connection: socket.socket, bounds: Bounds) -> None:
        self._connection = connection
        self._bounds = bounds

    def readline(self, limit: int) -> bytes:
        """Returns the next line, at most `limit` bytes. Raises OSError if a limit is reached."""
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
