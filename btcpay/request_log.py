"""What is told of each request: its id in the answer, one line in the log, one count."""

import logging
import os
import time

from flask import Flask, Response, g, request

from btcpay.counting import Counters
from btcpay.logs import REQUEST_ID

log = logging.getLogger(__name__)

METHODS = {"GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS"}
NO_OPERATION = "none"


def watch(app: Flask, counters: Counters) -> None:
    """Before everything else on the way in, after everything else on the way out."""
    app.before_request(begin)
    app.after_request(lambda response: end(counters, response))


def begin() -> None:
    """Gives the request an id of ours: one that a client sends could be another request's."""
    g.began_ns = time.perf_counter_ns()
    g.request_id = f"req_{os.urandom(12).hex()}"
    REQUEST_ID.set(g.request_id)


def end(counters: Counters, response: Response) -> Response:
    """Names the id in the answer, counts the request and logs it.

    The line has nothing that a client wrote, neither path nor query nor header: each may hold a
    key or an e-mail address.
    """
    response.headers.add("X-Request-Id", g.request_id)
    took_ns = time.perf_counter_ns() - g.began_ns
    counters.answered(operation(), response.status_code, took_ns / 1_000_000_000)
    if log.isEnabledFor(logging.INFO):
        _write(response.status_code, took_ns)
    REQUEST_ID.set("")
    return response


def operation() -> str:
    """The operation's id; the rule of a page's path; `none` where nothing is served."""
    return (request.endpoint or NO_OPERATION).removeprefix("checkout.")


def _write(status: int, took_ns: int) -> None:
    caller = g.get("caller")
    # Made by hand: nobody needs the caller's line, and finding it takes longer than all the rest.
    record = logging.LogRecord(log.name, logging.INFO, __file__, 0, "request", None, None)
    record.fields = {
        "operation": operation(),
        "merchant_id": caller and caller.merchant_id,
        "key_id": caller and caller.key_id,
        "method": request.method if request.method in METHODS else "other",
        "status": status,
        "ms": round(took_ns / 1_000_000, 2),
    }
    log.handle(record)
