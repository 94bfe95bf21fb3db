"""What each request leaves: its id in the answer, one line in the log, one count.

Every request pays for this, so it is written for speed: it asks each of Flask's proxies once, and
writes its line without the logging library, which would take longer than all the rest.
"""

import contextlib
import logging
import os
import random
import time
from collections.abc import Callable
from datetime import datetime
from typing import Any

import orjson
from flask import Flask, Request, g, request

from btcpay.health.process_metrics import Counters
from btcpay.values.times import iso
from btcpay.web.application import Answer
from btcpay.web.logs import REQUEST_ID
from btcpay.web.process import end_connection

log = logging.getLogger(__name__)

METHODS = {"GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS"}
NO_OPERATION = "none"
STDERR = 2  # the library's lines go there too; one call writes one whole line


def watch(app: Flask, counters: Counters, now: Callable[[], datetime]) -> None:
    """Runs before everything else on the way in, and after everything else on the way out."""
    app.before_request(begin)
    app.after_request(end_of(counters, now))


def begin() -> None:
    """Gives the request an id of ours: one that a client sends could be another request's.

    It opens nothing, so it need not come from the secure source.
    """
    noted = g._get_current_object().__dict__
    noted["began_ns"] = time.perf_counter_ns()
    noted["request_id"] = request_id = f"req_{random.getrandbits(96):024x}"
    REQUEST_ID.set(request_id)


def end_of(counters: Counters, now: Callable[[], datetime]) -> Callable[[Answer], Answer]:
    """Names the id in the answer, counts the request and logs it."""

    def end(response: Answer) -> Answer:
        asked = request._get_current_object()  # type: ignore[attr-defined]
        noted = g._get_current_object().__dict__
        response.last += (("X-Request-Id", noted["request_id"]),)
        took_s = (time.perf_counter_ns() - noted["began_ns"]) / 1_000_000_000
        operation, status = operation_of(asked), response.status_code
        if _leaves_body(asked, status):
            end_connection()
        counters.answered(operation, status, took_s)
        if log.isEnabledFor(logging.INFO):
            _write(_line(asked, noted, operation, status, took_s, now()))
        REQUEST_ID.set("")
        return response

    return end


def _leaves_body(asked: Request, status: int) -> bool:
    """Whether a part of the body may be unread: what succeeds by POST has read it."""
    if asked.method == "POST" and status < 400:
        return False
    return asked.environ.get("CONTENT_LENGTH", "0") != "0" or (
        "HTTP_TRANSFER_ENCODING" in asked.environ
    )


def _line(
    asked: Request,
    noted: dict[str, Any],
    operation: str,
    status: int,
    took_s: float,
    now: datetime,
) -> dict[str, Any]:
    """Has nothing that a client wrote: path, query and headers may hold a key or an address."""
    caller = noted.get("caller")
    return {
        "at": iso(now),
        "level": "info",
        "logger": log.name,
        "message": "request",
        "request_id": noted["request_id"],
        "operation": operation,
        "merchant_id": caller and caller.merchant_id,
        "key_id": caller and caller.key_id,
        "method": asked.method if asked.method in METHODS else "other",
        "status": status,
        "ms": round(took_s * 1000, 2),
    }


def _write(line: dict[str, Any]) -> None:
    with contextlib.suppress(OSError):  # nobody reads it any more
        os.write(STDERR, orjson.dumps(line, option=orjson.OPT_APPEND_NEWLINE))


def operation_of(asked: Request) -> str:
    """The operation's id, or the rule of a page's path; `none` when nothing is served there."""
    return (asked.endpoint or NO_OPERATION).removeprefix("checkout.").removeprefix("merchant.")
