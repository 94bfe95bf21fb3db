"""The traces of each request: its id in the answer, one line in the log, one count."""

import logging
import random
import time
from collections.abc import Callable
from typing import Any

from flask import g, request

from btcpay.health.counters import Counters
from btcpay.settings.logs import REQUEST_ID
from btcpay.web.paths import NONE
from btcpay.web.process import end_connection

log = logging.getLogger(__name__)

METHODS = {"GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS"}


def trace_requests(
    served: Callable[..., Any], counters: Counters
) -> Callable[..., Any]:
    """The WSGI application, whose requests leave their traces when their answer begins.

    Each gets an id of ours: one that a client sends could be another request's. It opens nothing,
    so it need not come from the secure source.
    """

    def called(environ: dict[str, Any], start: Any) -> Any:
        began_ns = time.perf_counter_ns()
        request_id = f"req_{random.getrandbits(96):024x}"
        REQUEST_ID.set(request_id)

        def begin_answer(
            status_line: str, headers: list[tuple[str, str]], *error: Any
        ) -> Any:
            headers.append(("X-Request-Id", request_id))
            took_s = (time.perf_counter_ns() - began_ns) / 1_000_000_000
            # The operation's id, or the rule of a page's path; `none` when nothing is served there.
            operation = (request.endpoint or NONE).rpartition(".")[2]
            status = int(status_line[:3])
            if _leaves_body(environ, status):
                end_connection()
            counters.count_answer(operation, status, took_s)
            if log.isEnabledFor(logging.INFO):
                fields = _fields(environ["REQUEST_METHOD"], operation, status, took_s)
                log.info("request", extra={"fields": fields})
            REQUEST_ID.set("")
            return start(status_line, headers, *error)

        return served(environ, begin_answer)

    return called


def _fields(method: str, operation: str, status: int, took_s: float) -> dict[str, Any]:
    """Has nothing of a client's own text: path, query and headers may hold a key or an address."""
    caller = g.get("caller")
    return {
        "operation": operation,
        "merchant_id": caller and caller.merchant_id,
        "key_id": caller and caller.key_id,
        "method": method if method in METHODS else "other",
        "status": status,
        "ms": round(took_s * 1000, 2),
    }


def _leaves_body(environ: dict[str, Any], status: int) -> bool:
    """True if part of the body may be unread; a POST that succeeds has read all of it."""
    if environ["REQUEST_METHOD"] == "POST" and status < 400:
        return False
    return (
        environ.get("CONTENT_LENGTH", "0") != "0" or "HTTP_TRANSFER_ENCODING" in environ
    )
