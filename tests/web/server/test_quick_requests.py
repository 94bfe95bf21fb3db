"""What waits for nobody is answered where it is read: never in the way of anything else."""

import os
import socket
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from builders import Clock, Live, Shop, TickerServer, open_shop, until
from playground import children_of

from app import OPERATIONS
from btcpay.api.admission import quick

SOON_S = 2
AT_ONCE = 600  # a nested answer each would be too deep for Python
GET = b"GET /api/v1/invoices HTTP/1.1\r\nHost: x\r\n%s\r\n"


@pytest.fixture
def live(shop: Shop, tmp_path: Path) -> Iterator[Live]:
    """A server that ends without a fault."""
    with Live(shop, tmp_path) as running:
        yield running
        assert "Traceback" not in running.log()


def test_reads_of_the_database_are_quick_and_what_waits_for_a_price_or_the_disk_is_not(
    shop: Shop,
) -> None:
    begun = quick(shop.service, OPERATIONS)
    if shop.service.db.is_server:
        assert begun == ()
        return
    assert sorted(set(begun)) == [
        b"GET /api/v1/invoices",
        b"GET /api/v1/invoices/",
        b"GET /api/v1/payment-links",
        b"GET /api/v1/payment-links/",
        b"GET /api/v1/payments",
    ]


def test_where_counts_are_kept_by_a_server_nothing_is_quick(
    tmp_path: Path, ticker: TickerServer
) -> None:
    away = {"BTCPAY_RATE_LIMIT_STORE": "redis://127.0.0.1:9/0"}
    with open_shop(tmp_path, ticker.url, Clock(), **away) as shop:
        assert quick(shop.service, OPERATIONS) == ()


def test_who_waits_for_a_price_keeps_nobody_from_reading(
    live: Live, shop: Shop, ticker: TickerServer
) -> None:
    invoice, key = shop.invoice(), shop.issue("read")
    waiting = b"GET /api/v1/balance HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer %s\r\n\r\n"
    with ticker.silent(), socket.create_connection(("127.0.0.1", live.port)) as slow:
        asked = ticker.asked
        slow.sendall(waiting % key.encode())
        until(lambda: ticker.asked > asked, "the balance to be under way")
        started_s = time.monotonic()
        assert live.ask("GET", f"/invoices/{invoice['id']}", key).status_code == 200
        assert live.ask("GET", "/invoices", key).status_code == 200
        assert time.monotonic() - started_s < SOON_S


def test_hundreds_of_requests_at_once_are_answered_one_after_the_other(live: Live) -> None:
    with socket.create_connection(("127.0.0.1", live.port), 30) as connection:
        connection.sendall(GET % b"" * (AT_ONCE - 1) + GET % b"Connection: close\r\n")
        answers = connection.makefile("rb").read()
    assert answers.count(b"HTTP/1.1 401") == AT_ONCE


def test_a_worker_keeps_to_one_processor_and_its_master_to_none(live: Live) -> None:
    (worker,) = children_of(live.pid)
    assert len(os.sched_getaffinity(worker)) == 1
    assert os.sched_getaffinity(live.pid) == os.sched_getaffinity(0)


def test_a_request_in_pieces_is_answered_like_a_whole_one(live: Live, shop: Shop) -> None:
    asked = GET % (b"Authorization: Bearer %s\r\nConnection: close\r\n" % shop.write_key.encode())
    with socket.create_connection(("127.0.0.1", live.port), 30) as connection:
        connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        for at in range(0, len(asked), 7):
            connection.sendall(asked[at : at + 7])
        assert connection.makefile("rb").read().startswith(b"HTTP/1.1 200")
