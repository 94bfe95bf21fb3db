"""More orders at once than the service has threads, and how soon others are answered meanwhile."""

import contextlib
import socket
import time
from collections.abc import Iterator
from http.client import HTTPResponse

import requests

from btcpay.web.process import THREADS
from tests.support.builders import Live, Shop

MANY = THREADS + 16
SOON_S = 2  # an order that waits holds its thread for three seconds or more
ORDER = (
    b"POST /api/v1/invoices HTTP/1.1\r\nHost: x\r\nContent-Length: 17\r\n"
    b'Content-Type: application/json\r\nAuthorization: Bearer %s\r\n\r\n{"amount_usd": 5}'
)


@contextlib.contextmanager
def orders_under_way(
    live: Live, keys: list[str], answers: dict[int, list[bytes]]
) -> Iterator[None]:
    """Sends them all and waits for no answer; at the end `answers` has theirs, by status."""
    with contextlib.ExitStack() as stack:
        clients = []
        for number in range(MANY):
            client = stack.enter_context(
                socket.create_connection(("127.0.0.1", live.port), 60)
            )
            client.sendall(ORDER % keys[number % len(keys)].encode())
            clients.append(client)
        yield
        for client in clients:
            client.settimeout(60)
            response = HTTPResponse(client)
            response.begin()
            answers.setdefault(response.status, []).append(response.read())


def write_keys(shop: Shop) -> list[str]:
    """Enough of them that none meets its limit."""
    return [shop.issue("write") for _ in range(MANY // 20)]


def slowest_s(url: str, times: int = 20) -> float:
    """The longest that anybody waits for this, each time on a new connection.

    But for one: a machine may stand still for some seconds.
    """
    waited = []
    for _ in range(times):
        started_s = time.monotonic()
        assert requests.get(url, timeout=60).ok
        waited.append(time.monotonic() - started_s)
    return sorted(waited)[-2]
