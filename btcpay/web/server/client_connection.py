"""A client's connection as a thread sees it: the whole request, and room for the whole answer."""

import socket
from errno import EPIPE
from typing import Any

from gunicorn import http
from gunicorn.http.unreader import IterUnreader
from gunicorn.workers.gthread import TConn

from btcpay.web.server.request_framing import Arriving

KEPT_BYTES = 524_288  # more than any page or list
PIECE_S = 30  # for so much of a longer answer: a poor mobile connection sends it in 15


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
    """Stands for the socket while a thread answers.

    Without a socket it keeps all there is. With one a long answer is sent while it is made: then
    the thread waits for the client.
    """

    def __init__(self, sock: socket.socket | None = None) -> None:
        self.data = b""
        self._sock = sock

    def sendall(self, data: bytes) -> None:
        """Keeps the bytes, or sends them with those before. Raises BrokenPipeError.

        That is when a client has gone, or reads too slowly: it keeps neither thread nor memory.
        """
        self.data += data
        if self._sock is None or len(self.data) <= KEPT_BYTES:
            return
        piece, self.data = self.data, b""
        self._sock.settimeout(PIECE_S)
        try:
            self._sock.sendall(piece)
        except OSError as error:
            raise BrokenPipeError(EPIPE, "the client reads too slowly, or has gone") from error

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
