"""A client's connection as a thread sees it: the whole request, and room for the whole answer."""

from typing import Any

from gunicorn import http
from gunicorn.http.unreader import IterUnreader
from gunicorn.workers.gthread import TConn

from btcpay.server.request_framing import Arriving


class Arrived(IterUnreader):
    """Gives the parser the bytes that have come; `ran_dry` says that it wanted more."""

    def __init__(self, data: bytes) -> None:
        super().__init__([data])
        self.ran_dry = False

    def chunk(self, size_hint: int | None = None) -> bytes:
        """All of it, then nothing."""
        data = super().chunk(size_hint)
        self.ran_dry = self.ran_dry or not data
        return data


class Answer:
    """Stands for the socket while a thread answers."""

    def __init__(self) -> None:
        self.data = b""

    def sendall(self, data: bytes) -> None:
        """Keeps the bytes."""
        self.data += data

    def shutdown(self, _: int) -> None:
        """Called when an answer fails half way. Raises OSError: the connection is closed later."""
        raise OSError("not a socket")

    def close(self) -> None:
        """Does nothing, for the same reason."""

    def gettimeout(self) -> float:
        """Zero: nothing blocks here."""
        return 0.0


class Connection(TConn):
    """A client's connection: the request that arrives, and the part of an answer still `unsent`."""

    def __init__(self, *args: Any) -> None:
        super().__init__(*args)
        self.parser = http.get_parser(self.cfg, [], self.client)
        self.data_ready = True  # gunicorn's threads need not wait for bytes
        self.arriving = Arriving(0)
        self.unsent = b""

    def send(self) -> bool:
        """Sends what the kernel takes; returns whether the client may still be there."""
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
