"""The traces of each request: its id in the answer, one line in the log, one count."""

import logging
import random
import time
from typing import Any

from flask import Flask, Response, g, request

from btcpay.health.metrics import Counters
from btcpay.settings.logs import REQUEST_ID
from btcpay.web.paths import NONE
from btcpay.web.process import end_connection

log = logging.getLogger(__name__)

METHODS = {"GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS"}


def watch(app: Flask, counters: Counters) -> None:
    """Runs before everything else on the way in, and after everything else on the way out."""

    def end(response: Response) -> Response:
        response.headers.add("X-Request-Id", g.request_id)
        took_s = (time.perf_counter_ns() - g.began_ns) / 1_000_000_000
        # Its id, or the rule of a page's path; `none` when nothing is served there.
        operation, status = (request.endpoint or NONE).rpartition(".")[2], response.status_code
        if _leaves_body(status):
            end_connection()
        counters.answered(operation, status, took_s)
        if log.isEnabledFor(logging.INFO):
            log.info("request", extra={"fields": _fields(operation, status, took_s)})
        REQUEST_ID.set("")
        return response

    app.before_request(begin)
    app.after_request(end)


def begin() -> None:
    """Gives the request an id of ours: one that a client sends could be another request's.

    It opens nothing, so it need not come from the secure source.
    """
    g.began_ns = time.perf_counter_ns()
    g.request_id = f"req_{random.getrandbits(96):024x}"
    REQUEST_ID.set(g.request_id)


def _fields(operation: str, status: int, took_s: float) -> dict[str, Any]:
    """Has nothing that a client wrote: path, query and headers may hold a key or an address."""
    caller = g.get("caller")
    return {
        "operation": operation,
        "merchant_id": caller and caller.merchant_id,
        "key_id": caller and caller.key_id,
        "method": request.method if request.method in METHODS else "other",
        "status": status,
        "ms": round(took_s * 1000, 2),
    }


def _leaves_body(status: int) -> bool:
    """True where a part of the body may be unread: a POST that succeeds has read all."""
    environ = request.environ
    if environ["REQUEST_METHOD"] == "POST" and status < 400:
        return False
    return environ.get("CONTENT_LENGTH", "0") != "0" or "HTTP_TRANSFER_ENCODING" in environ
