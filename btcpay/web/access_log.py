"""Gives each request an id, a line in the log, and a count in the metrics."""

import logging
import random
import time
from collections.abc import Callable, Sequence
from typing import Any

from flask import g, request

from btcpay.health.counters import Counters
from btcpay.hooks import RequestLog
from btcpay.merchants.keys import ID_PREFIX
from btcpay.settings.logs import REQUEST_ID
from btcpay.web.paths import NONE
from btcpay.web.process import end_connection

log = logging.getLogger(__name__)

METHODS = {"GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS"}


def trace_requests(
    application: Callable[..., Any],
    counters: Counters,
    request_logs: Sequence[RequestLog],
) -> Callable[..., Any]:
    """Wraps the WSGI application: each request gets an id, a log line and a count.

    The request is logged and counted when its response starts. `request_logs` are logs
    that parts (optional plug-ins) keep; a request with an API key is noted there too.

    A client cannot choose the id, since it could choose the id of another request. The
    id gives access to nothing, so a random source that is not cryptographic is good
    enough.
    """

    def serve(environ: dict[str, Any], start: Any) -> Any:
        began_ns = time.perf_counter_ns()
        request_id = f"req_{random.getrandbits(96):024x}"
        REQUEST_ID.set(request_id)

        def begin_answer(
            status_line: str,
            headers: list[tuple[str, str]],
            *error: Any,
        ) -> Any:
            headers.append(("X-Request-Id", request_id))
            took_s = (time.perf_counter_ns() - began_ns) / 1_000_000_000
            # The operation's id in the API, or the route of a page; `none` if there is
            # no view.
            operation = (request.endpoint or NONE).rpartition(".")[2]
            status = int(status_line[:3])
            if _may_leave_body(environ, status):
                end_connection()
            counters.count_answer(operation, status, took_s)
            caller = g.get("caller")
            if caller and caller.key_id.startswith(ID_PREFIX):
                _note(request_logs, caller.key_id, operation, status, took_s)
            if log.isEnabledFor(logging.INFO):
                method = environ["REQUEST_METHOD"]
                fields = _fields(caller, method, operation, status, took_s)
                log.info("request", extra={"fields": fields})
            REQUEST_ID.set("")
            return start(status_line, headers, *error)

        return application(environ, begin_answer)

    return serve


def _note(
    request_logs: Sequence[RequestLog],
    key_id: str,
    operation: str,
    status: int,
    took_s: float,
) -> None:
    """Adds a request with an API key to the parts' logs."""
    error_code = ""
    if status >= 400:
        error_code = g.get("error_code", "")
    for each in request_logs:
        each.note(key_id, operation, status, error_code, took_s)


def _fields(
    caller: Any,
    method: str,
    operation: str,
    status: int,
    took_s: float,
) -> dict[str, Any]:
    """Returns the fields of the request's log line.

    They contain no text that the client sent: the path, the query and the headers may
    contain an API key or an address.
    """
    if method not in METHODS:
        method = "other"
    return {
        "operation": operation,
        "merchant_id": caller and caller.merchant_id,
        "key_id": caller and caller.key_id,
        "method": method,
        "status": status,
        "ms": round(took_s * 1000, 2),
    }


def _may_leave_body(environ: dict[str, Any], status: int) -> bool:
    """True if the application may not have read the whole request body.

    A successful POST request has always read its body.
    """
    if environ["REQUEST_METHOD"] == "POST" and status < 400:
        return False
    has_length = environ.get("CONTENT_LENGTH", "0") != "0"
    return has_length or "HTTP_TRANSFER_ENCODING" in environ
