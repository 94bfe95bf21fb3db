"""A client's connection as a thread has it: all of the request, and room for all of the answer."""

from typing import Any

from gunicorn import http
from gunicorn.http.unreader import IterUnreader
from gunicorn.workers.gthread import TConn

from btcpay.server.arriving import Arriving


class Arrived(IterUnreader):
    """Hands out what has come; `ran_dry` says that the parser wanted more than that."""

    def __init__(self, data: bytes) -> None:
        super().__init__([data])
        self.ran_dry = False

    def chunk(self, size_hint: int | None = None) -> bytes:
        """All of it, then nothing."""
        data = super().chunk(size_hint)
        self.ran_dry = self.ran_dry or not data
        return data


class Answer:
    """What gunicorn takes for a socket while a thread answers."""

    def __init__(self) -> None:
        self.data = b""

    def sendall(self, data: bytes) -> None:
        """Keeps it."""
        self.data += data

    def shutdown(self, _: int) -> None:
        """When an answer fails in its midst. Raises OSError, since its connection ends later."""
        raise OSError("not a socket")

    def close(self) -> None:
        """Does nothing, likewise."""


class Connection(TConn):
    """A client's connection: the request that arrives on it, what of an answer is `unsent`."""

    def __init__(self, *args: Any) -> None:
        super().__init__(*args)
        self.parser = http.get_parser(self.cfg, [], self.client)
        self.data_ready = True  # gunicorn's threads need not look
        self.arriving = Arriving(0)
        self.unsent = b""

    def send(self) -> bool:
        """Gives the kernel what it takes; whether the client may still be there."""
        self.sock.setblocking(False)
        try:
            while self.unsent:
                self.unsent = self.unsent[self.sock.send(self.unsent) :]
        except BlockingIOError:
            pass
        except OSError:
            self.unsent = b""
            return False
        return True
