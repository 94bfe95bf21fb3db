"""Bytes on a socket to the shipped server, where no library sends what these tests send."""

import contextlib
import socket

from tests.support.builders import Live


def chunked(*pieces: bytes) -> bytes:
    return b"".join(b"%x\r\n%s\r\n" % (len(piece), piece) for piece in (*pieces, b""))


def answered(live: Live, sent: bytes, hang_up: bool = False) -> bytes:
    """All that comes back, until the server closes; `hang_up` ends our side after sending."""
    with socket.create_connection(("127.0.0.1", live.port), timeout=60) as connection:
        with contextlib.suppress(
            OSError
        ):  # it may answer and close before it has read everything
            connection.sendall(sent)
            if hang_up:
                connection.shutdown(socket.SHUT_WR)
        return connection.makefile("rb").read()
