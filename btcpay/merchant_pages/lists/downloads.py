"""Files for the bookkeeper and for the wallet, sent while they are read."""

import threading
from collections.abc import Iterable, Iterator
from itertools import islice

from flask import Response

from btcpay.exports import payments
from btcpay.exports.payments import label_lines
from btcpay.merchant_pages.visit import Visit
from btcpay.values.errors import RateLimited
from btcpay.values.times import number_of, start_of
from storage.queries import merchants

AT_ONCE = 2  # downloads in one process: each keeps one of its threads while it lasts
AGAIN_S = 10
CHUNK_LINES = 200  # 70 kB at a time
FREE = threading.BoundedSemaphore(AT_ONCE)


def show(visit: Visit) -> Response:
    today = visit.now.astimezone(visit.zone).date()
    return visit.page("downloads.html", first=today.replace(month=1, day=1), last=today)


def send_payments(visit: Visit) -> Response:
    """The payments of `?from=` to `?to=`, both days whole, as `btcpay export`."""
    first, last = visit.day("from"), visit.day("to")
    records = payments.received(
        visit.service.db,
        visit.service.db.only(merchants.BY_ID, id=visit.merchant_id),
        0 if first is None else max(0, start_of(number_of(first), visit.zone)),
        payments.END if last is None else start_of(number_of(last) + 1, visit.zone),
    )
    days = "".join(f"-{day:%Y-%m-%d}" for day in (first, last) if day)
    return _send(payments.csv_lines(records), f"payments{days}.csv", "text/csv")


def send_labels(visit: Visit) -> Response:
    """Labels of addresses, transactions and outputs, as `btcpay export labels`."""
    merchant = visit.service.db.only(merchants.BY_ID, id=visit.merchant_id)
    return _send(label_lines(visit.service.db, merchant), "labels.jsonl", "application/jsonl")


def _send(lines: Iterable[str], name: str, media_type: str) -> Response:
    """Raises RateLimited while too many others download."""
    if not FREE.acquire(blocking=False):
        raise RateLimited(AGAIN_S)
    response = Response(_chunks(lines), content_type=f"{media_type}; charset=utf-8")
    response.call_on_close(FREE.release)
    response.headers["Content-Disposition"] = f'attachment; filename="{name}"'
    return response


def _chunks(lines: Iterable[str]) -> Iterator[bytes]:
    """Many lines at a time, since a piece costs the server as much as a single line would."""
    left = iter(lines)
    while chunk := "".join(islice(left, CHUNK_LINES)):
        yield chunk.encode()
