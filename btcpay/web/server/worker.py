"""How gunicorn's logger and worker differ here: JSON lines, and how a worker stops.

Nothing of the service is imported, so that the master stays small.
"""

import contextlib
import logging
from typing import Any

from gunicorn import util
from gunicorn.glogging import Logger
from gunicorn.workers.gthread import ThreadWorker

from btcpay.web.logs import to_json
from btcpay.web.server.client_connection import Answer
from btcpay.web.server.waiting_worker import WaitingWorker


class JsonLogger(Logger):
    """gunicorn's log as JSON lines, without anything that a client sent."""

    def setup(self, cfg: Any) -> None:
        """At the start and at each reload."""
        super().setup(cfg)
        to_json(self.error_log)
        self.error_log.addFilter(withhold_requests)


def withhold_requests(record: logging.LogRecord) -> bool:
    """A log filter: gunicorn quotes the request that it refuses, which may hold a secret.

    The line stays, without the quotation.
    """
    if "nvalid" in str(record.msg):
        record.msg, record.args, record.exc_info = "a malformed request was refused", (), None
    elif str(record.msg).startswith("Error handling request"):
        record.msg, record.args = "a request could not be handled", ()
    return True


def refusal(status_line: bytes) -> bytes:
    """The whole answer with this status line ("HTTP/1.1 414 URI Too Long"): the API's envelope."""
    _, status, reason = status_line.split(b" ", 2)
    code, message = b"invalid_request", b"the request cannot be read: " + reason
    if status == b"500":
        code, message = b"server_error", b"something went wrong on our side"
    body = b'{"error":{"code":"%s","message":"%s"}}\n' % (code, message)
    head = (
        b"%s\r\nConnection: close\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n"
    )
    return head % (status_line, len(body)) + body


class Worker(WaitingWorker):
    """Closes its listening socket as soon as it is told to stop.

    gunicorn's own worker keeps it open until its last request has ended: whoever connects meanwhile
    waits, and is then cut off. A client or proxy that is refused at once can try elsewhere.
    """

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self._is_quitting = False

    def handle_error(self, req: Any, client: Any, addr: Any, exc: BaseException) -> None:
        """Answers a request that reaches no view: gunicorn says the status, we the rest.

        gunicorn's own answer quotes the request, and its head has no end on Python 3.14, whose
        `textwrap.dedent` takes the CR of an empty line.
        """
        answer = Answer()
        super().handle_error(req, answer, addr, exc)
        with contextlib.suppress(OSError):
            util.write_nonblock(client, refusal(answer.data.partition(b"\r\n")[0]))

    def handle_quit(self, sig: int, frame: Any) -> None:
        """Ends the process once, however many signals ask for it.

        Ctrl-C sends SIGINT, and the master SIGQUIT amid that. gunicorn's own handler ends the
        threads' pool, whose lock this very thread may hold: it would wait for itself for ever. The
        pool ends with the interpreter anyway.
        """
        if not self._is_quitting:
            self._is_quitting = True
            super(ThreadWorker, self).handle_quit(sig, frame)

    def set_accept_enabled(self, enabled: bool) -> None:
        """When stopping, takes what the kernel has accepted already: that is still served.

        It may be told to stop before it has begun, and is told again at its end: once is enough.
        """
        super().set_accept_enabled(enabled)
        if not (enabled or self.alive):
            while self.sockets:
                listener = self.sockets.pop()
                while self.took_one(listener):
                    pass
                listener.close()

    def took_one(self, listener: Any) -> bool:
        """Accepts a connection; returns whether there was one, and room for it."""
        before = self.nr_conns
        if before < self.worker_connections:
            self.accept(listener)
        return self.nr_conns > before
