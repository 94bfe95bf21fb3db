"""`/metrics` for Prometheus: an address of its own, which any worker process may answer."""

import logging
import socket
import threading
from collections.abc import Iterable
from http.server import BaseHTTPRequestHandler, HTTPServer
from typing import Any

from prometheus_client.exposition import choose_encoder
from prometheus_client.registry import Collector, CollectorRegistry

log = logging.getLogger(__name__)

CLIENT_TIMEOUT_S = 5  # one scraper at a time: a silent one must not keep the next one out
POLL_S = 0.5  # how soon the thread sees that it is to end


class Scraped(HTTPServer):
    """Answers scrapes on a listening socket that other processes may share, in one thread.

    A thread of its own, with its own connection to the database: requests do not wait for it.
    """

    def __init__(self, listener: socket.socket, registry: CollectorRegistry) -> None:
        super().__init__(listener.getsockname()[:2], Scrape, bind_and_activate=False)
        self.socket.close()
        listener.setblocking(False)  # another process may have taken the connection already
        self.socket, self.registry = listener, registry
        self._thread = threading.Thread(target=self.serve_forever, args=[POLL_S], daemon=True)
        self._thread.start()

    def end(self) -> None:
        """Ends the thread, after the scrape that is under way."""
        self.shutdown()
        self.server_close()

    def handle_error(self, *_: Any) -> None:
        """Logs one line when a scraper went away, or for a fault; the next scrape is served."""
        log.warning("a scrape of the metrics failed", exc_info=True)


class Scrape(BaseHTTPRequestHandler):
    """GET /metrics, in the format that the scraper prefers."""

    timeout = CLIENT_TIMEOUT_S
    server: Scraped

    def do_GET(self) -> None:
        """Everything that is counted, or 404."""
        if self.path.partition("?")[0] != "/metrics":
            self.send_error(404)
            return
        encode, content_type = choose_encoder(self.headers.get("Accept", ""))
        body = encode(self.server.registry)
        self.send_response(200)
        self.send_header("Content-Type", content_type)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_: Any) -> None:
        """Scrapes come every few seconds and are not logged."""


def serve(collectors: Iterable[Collector], listener: socket.socket) -> Scraped:
    """Starts to answer scrapes with what these collect, in a thread."""
    registry = CollectorRegistry()
    for collector in collectors:
        registry.register(collector)
    return Scraped(listener, registry)
