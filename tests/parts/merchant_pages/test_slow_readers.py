"""Readers of files that are slow keep nobody else waiting."""

import socket
from contextlib import ExitStack

import pytest
import requests

from btcpay.parts.merchant_pages.lists.download_slots import DownloadSlots, SlotLost
from btcpay.parts.merchant_pages.lists.downloads import AT_ONCE
from tests.support.builders import Live, pay, until


class Clock:
    now_s = 0.0

    def __call__(self):
        return self.now_s


@pytest.mark.parametrize(
    ("waited_s", "gives_way"),
    [(9.9, False), (10, True)],
    ids=["not yet ten seconds", "ten seconds"],
)
def test_who_takes_nothing_for_ten_seconds_gives_way_to_the_next(waited_s, gives_way):
    clock = Clock()
    slots = DownloadSlots(2, 10, 1, clock)
    slow = slots.take(None)
    quick = slots.take(None)
    sent_slowly = slow.send([b"1", b"2"])
    next(sent_slowly)
    sent_quickly = quick.send([b"1", b"2" * 10])
    next(sent_quickly)
    clock.now_s = waited_s - 5
    next(sent_quickly)
    clock.now_s = waited_s
    assert (slots.take(None) is not None) is gives_way
    if gives_way:
        with pytest.raises(SlotLost):
            next(sent_slowly)
        slow.release()  # frees no slot that is another's now
        assert slots.take(None) is None
    else:
        assert next(sent_slowly) == b"2"


PIECE = b"x" * 70_000
PACES = {
    "8 kB a second": (8_000, True),
    "20 kB a second": (20_000, True),
    "a slow telephone line": (50_000, False),
}


@pytest.mark.parametrize(("pace", "gives_way"), PACES.values(), ids=PACES)
def test_who_takes_each_piece_in_time_but_little_of_the_file_gives_way(pace, gives_way):
    """Even if it was quick at first, when the pieces only filled what sockets hold."""
    clock = Clock()
    slots = DownloadSlots(1, 10, 32_768, clock)
    sent = slots.take(None).send([PIECE] * 1_000)
    for _ in range(500):
        next(sent)
    while clock.now_s < 60:
        clock.now_s += len(PIECE) / pace
        next(sent)
    assert (slots.take(None) is not None) is gives_way


def test_a_reader_does_not_pay_for_the_time_in_which_its_piece_is_made():
    clock = Clock()
    slots = DownloadSlots(1, 10, 32_768, clock)

    def pieces():
        while True:
            clock.now_s += 9
            yield PIECE

    sent = slots.take(None).send(pieces())
    for _ in range(10):
        next(sent)
    assert slots.take(None) is None


def test_a_slow_reader_keeps_its_place_while_nobody_else_asks():
    clock = Clock()
    slot = DownloadSlots(1, 10, 32_768, clock).take(None)
    sent = slot.send([b"1", b"2"])
    next(sent)
    clock.now_s = 10_000
    assert next(sent) == b"2"


def test_two_slow_readers_of_a_link_keep_no_download_waiting(shop, browser, tmp_path):
    """They read nothing of a file that is larger than what sockets hold."""
    pay(shop, shop.invoice(description="x" * 500))
    (seq,) = shop.sql("SELECT MAX(seq) FROM payment").fetchone()
    shop.sql(
        f"""WITH RECURSIVE n (n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM n WHERE n < 60000)
            INSERT INTO payment
                (id, merchant_id, address_invoice_id, amount_sats, currency, tx_hash, created_ms)
            SELECT 'pay_' || n, merchant_id, address_invoice_id, 1, 'USD', 'tx' || n, created_ms + n
            FROM payment, n WHERE seq = {seq}"""  # noqa: S608
    )
    page = browser.post("/files", **{"from": "2000-01-01", "to": "2099-12-31"}).text
    path = "/file/" + page.partition("/file/")[2].partition("?")[0]
    with (
        Live(shop, tmp_path, BLOCKTILL_MERCHANT_PAGES="on") as live,
        ExitStack() as stack,
    ):
        slot = ("127.0.0.1", int(live.url.rpartition(":")[2]))
        for _ in range(AT_ONCE):
            slow = stack.enter_context(socket.socket())
            slow.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
            slow.settimeout(60)
            slow.connect(slot)
            slow.sendall(f"GET {path} HTTP/1.1\r\nHost: localhost\r\n\r\n".encode())
            assert slow.recv(12) == b"HTTP/1.1 200"

        def download():
            with requests.get(live.url + path, stream=True, timeout=60) as answer:
                return answer.status_code

        assert download() == 429
        # The kernel would end them after half a minute.
        until(lambda: download() == 200, "one to give way", timeout_s=25, every_s=1)
