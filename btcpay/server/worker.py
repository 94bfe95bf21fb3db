"""How gunicorn's logger and worker differ here: JSON lines, and how a worker stops.

Nothing of the service is imported, so that the master stays small.
"""

import logging
from typing import Any

from gunicorn.glogging import Logger
from gunicorn.workers.gthread import ThreadWorker

from btcpay.monitoring.logs import to_json
from btcpay.server.waiting_worker import WaitingWorker


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


class Worker(WaitingWorker):
    """Closes its listening socket as soon as it is told to stop.

    gunicorn's own worker keeps it open until its last request has ended: whoever connects meanwhile
    waits, and is then cut off. A client or proxy that is refused at once can try elsewhere.
    """

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self._is_quitting = False

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
