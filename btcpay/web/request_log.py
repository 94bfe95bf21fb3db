"""What each request leaves: its id in the answer, one line in the log, one count."""

import logging
import random
import time
from typing import Any

from flask import Flask, Request, g, request

from btcpay.health.process_metrics import Counters
from btcpay.settings.logs import REQUEST_ID
from btcpay.web.application import Answer
from btcpay.web.process import end_connection

log = logging.getLogger(__name__)

METHODS = {"GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS"}
NO_OPERATION = "none"


def watch(app: Flask, counters: Counters) -> None:
    """Runs before everything else on the way in, and after everything else on the way out."""

    def end(response: Answer) -> Answer:
        asked = request._get_current_object()  # type: ignore[attr-defined]
        noted = g._get_current_object()
        response.last += (("X-Request-Id", noted.request_id),)
        took_s = (time.perf_counter_ns() - noted.began_ns) / 1_000_000_000
        operation, status = operation_of(asked), response.status_code
        if _leaves_body(asked, status):
            end_connection()
        counters.answered(operation, status, took_s)
        if log.isEnabledFor(logging.INFO):
            log.info("request", extra={"fields": _fields(asked, noted, operation, status, took_s)})
        REQUEST_ID.set("")
        return response

    app.before_request(begin)
    app.after_request(end)


def begin() -> None:
    """Gives the request an id of ours: one that a client sends could be another request's.

    It opens nothing, so it need not come from the secure source.
    """
    noted = g._get_current_object()  # each use of Flask's own name costs a search
    noted.began_ns = time.perf_counter_ns()
    noted.request_id = request_id = f"req_{random.getrandbits(96):024x}"
    REQUEST_ID.set(request_id)


def _fields(
    asked: Request, noted: Any, operation: str, status: int, took_s: float
) -> dict[str, Any]:
    """Has nothing that a client wrote: path, query and headers may hold a key or an address."""
    caller = noted.get("caller")
    return {
        "operation": operation,
        "merchant_id": caller and caller.merchant_id,
        "key_id": caller and caller.key_id,
        "method": asked.method if asked.method in METHODS else "other",
        "status": status,
        "ms": round(took_s * 1000, 2),
    }


def _leaves_body(asked: Request, status: int) -> bool:
    """Whether a part of the body may be unread: what succeeds by POST has read it."""
    if asked.method == "POST" and status < 400:
        return False
    return asked.environ.get("CONTENT_LENGTH", "0") != "0" or (
        "HTTP_TRANSFER_ENCODING" in asked.environ
    )


def operation_of(asked: Request) -> str:
    """The operation's id, or the rule of a page's path; `none` when nothing is served there."""
    return (asked.endpoint or NO_OPERATION).removeprefix("checkout.").removeprefix("merchant.")
