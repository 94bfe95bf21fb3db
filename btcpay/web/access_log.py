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
NS_PER_S = 1_000_000_000


def trace_requests(
    application: Callable[..., Any],
    counters: Counters,
    request_logs: Sequence[RequestLog],
) -> Callable[..., Any]:
    """Wraps the WSGI application: each request gets an id, a log line and a count.

    The request is logged and counted when its response starts. `request_logs` are logs
    that parts (optional plug-ins) keep; a request with an API key is noted there too.

    An id that the client sends is ignored: it might be the id of another request. The
    id gives access to nothing, so it need not be cryptographically random.
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
            took_s = (time.perf_counter_ns() - began_ns) / NS_PER_S
            status = int(status_line[:3])
            if _may_leave_body(environ, status):
                end_connection()
            operation = _operation_name()
            counters.count_answer(operation, status, took_s)
            caller = g.get("caller")
            _note_in_parts(request_logs, caller, operation, status, took_s)
            _log_request(caller, environ["REQUEST_METHOD"], operation, status, took_s)
            REQUEST_ID.set("")
            return start(status_line, headers, *error)

        return application(environ, begin_answer)

    return serve


def _operation_name() -> str:
    """Returns the operation's id in the API, or the route of a page.

    Returns `none` if no view serves the request.
    """
    return (request.endpoint or NONE).rpartition(".")[2]


def _note_in_parts(
    request_logs: Sequence[RequestLog],
    caller: Any,
    operation: str,
    status: int,
    took_s: float,
) -> None:
    """Adds the request to the parts' logs if it has an API key."""
    if not caller or not caller.key_id.startswith(ID_PREFIX):
        return
    error_code = ""
    if status >= 400:
        error_code = g.get("error_code", "")
    for request_log in request_logs:
        request_log.note(caller.key_id, operation, status, error_code, took_s)


def _log_request(
    caller: Any,
    method: str,
    operation: str,
    status: int,
    took_s: float,
) -> None:
    """Writes the request's log line.

    The line contains no text that the client sent: the path, the query and the headers
    may contain an API key or an address.
    """
    if not log.isEnabledFor(logging.INFO):
        return
    if method not in METHODS:
        method = "other"
    fields = {
        "operation": operation,
        "merchant_id": caller and caller.merchant_id,
        "key_id": caller and caller.key_id,
        "method": method,
        "status": status,
        "ms": round(took_s * 1000, 2),
    }
    log.info("request", extra={"fields": fields})


def _may_leave_body(environ: dict[str, Any], status: int) -> bool:
    """True if a part of the request's body is possibly still unread.

    A successful POST request has always read its body.
    """
    if environ["REQUEST_METHOD"] == "POST" and status < 400:
        return False
    has_length = environ.get("CONTENT_LENGTH", "0") != "0"
    return has_length or "HTTP_TRANSFER_ENCODING" in environ
