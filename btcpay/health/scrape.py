"""`/metrics`: the collectors' figures for one scraper at a time."""

import logging
import socket
import threading
from collections.abc import Iterable
from http.server import HTTPServer

from prometheus_client import CollectorRegistry, MetricsHandler
from prometheus_client.registry import Collector

log = logging.getLogger(__name__)

POLL_S = 0.5  # within which the thread sees that it must end


class Scrape(MetricsHandler):
    """GET /metrics, in the format that the scraper prefers."""

    timeout = 5  # of one scraper at a time: a silent one must not keep out the next

    def do_GET(self) -> None:
        if self.path.partition("?")[0] == "/metrics":
            super().do_GET()
        else:
            self.send_error(404)


class Scraped(HTTPServer):
    """Answers scrapes on a listening socket that other processes may share, in one thread.

    A thread of its own, with its own connection to the database: requests do not wait for it.
    """

    def __init__(self, collectors: Iterable[Collector], listener: socket.socket) -> None:
        registry = CollectorRegistry()
        for collector in collectors:
            registry.register(collector)
        handler = type("Scrape", (Scrape,), {"registry": registry})
        super().__init__(listener.getsockname()[:2], handler, bind_and_activate=False)
        self.socket.close()
        listener.setblocking(False)  # another process may have taken the connection already
        self.socket = listener
        threading.Thread(target=self.serve_forever, args=[POLL_S], daemon=True).start()

    def end(self) -> None:
        """Ends the thread, after the scrape that is under way."""
        self.shutdown()
        self.server_close()

    def handle_error(self, *_: object) -> None:
        """Logs one line if a scraper went away, or for a fault; the next scrape is served."""
        log.warning("a scrape of the metrics failed", exc_info=True)
