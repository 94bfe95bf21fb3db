"""Strangers who ask without end with wrong keys, and how long a new visitor waits beside them."""

import contextlib
import selectors
import socket
import ssl
import threading
import time
from collections.abc import Callable, Iterator
from typing import Any

WRONG = (
    b"%s /api/v1/invoices HTTP/1.1\r\nHost: 127.0.0.1\r\n"
    b"Authorization: Bearer sk_test_no\r\n%s\r\n"
)
KEPT = WRONG % (b"GET", b"")
NEW = WRONG % (b"POST", b"Content-Length: 0\r\n")  # whose answers end the connection
VISITS = 6


@contextlib.contextmanager
def strangers(
    connect: Callable[[], socket.socket], sent: bytes, count: int
) -> Iterator[list[int]]:
    """Each asks again when it is answered, on a new connection where that ended."""
    ended = threading.Event()
    answers = [0]

    def ask(selector: selectors.BaseSelector) -> None:
        client = connect()
        client.sendall(sent)
        client.setblocking(False)
        selector.register(client, selectors.EVENT_READ)

    def answered(client: socket.socket) -> bytes | None:
        """None when there is nothing to read but what TLS says for itself."""
        try:
            return client.recv(65_536)
        except (ssl.SSLWantReadError, BlockingIOError):
            return None
        except OSError:
            return b""

    def go_on() -> None:
        client: Any  # the selectors' own type knows no socket
        with selectors.DefaultSelector() as selector:
            for _ in range(count):
                ask(selector)
            while not ended.is_set():
                for key, _ in selector.select(0.1):
                    client = key.fileobj
                    said = answered(client)
                    if said is None:
                        continue
                    if said and sent is KEPT:
                        client.sendall(sent)
                    else:
                        selector.unregister(client)
                        client.close()
                        ask(selector)
                    answers[0] += 1
            for key in list(selector.get_map().values()):
                client = key.fileobj
                client.close()

    thread = threading.Thread(target=go_on)
    thread.start()
    try:
        yield answers
    finally:
        ended.set()
        thread.join()


def visits(visit: Callable[[], None], answers: list[int]) -> list[tuple[float, int]]:
    """How long each visit took, and how many answers the strangers got meanwhile."""
    waited = []
    for _ in range(VISITS):
        started_s = time.monotonic()
        before = answers[0]
        visit()
        waited.append((time.monotonic() - started_s, answers[0] - before))
        time.sleep(0.05)
    return waited
