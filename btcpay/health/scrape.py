"""`/metrics`: its folder and socket, made in gunicorn's master, and the answers to scrapers."""

import atexit
import logging
import os
import shutil
import socket
import tempfile
import threading
from collections.abc import Iterable
from http.server import HTTPServer

from prometheus_client import CollectorRegistry, MetricsHandler
from prometheus_client.registry import Collector

log = logging.getLogger(__name__)

FOLDER = "PROMETHEUS_MULTIPROC_DIR"  # the library's own variable
MEMORY = "/dev/shm"
POLL_S = 0.5  # within which the thread sees that it must end


def listen(bind: str) -> socket.socket | None:
    """Opens, in the master, the socket that its workers will share; None if its port is taken.

    A shop must not stop selling because nobody can read its metrics: that is logged instead.
    """
    if not bind:
        return None
    host, _, port = bind.rpartition(":")
    family = socket.AF_INET
    if host.startswith("["):
        family = socket.AF_INET6
    try:
        return socket.create_server((host.strip("[]"), int(port)), family=family)
    except OSError as error:
        logging.getLogger("gunicorn.error").error(
            "no metrics: BLOCKTILL_METRICS_BIND %s: %s", bind, error.strerror
        )
        return None


def make_folder() -> None:
    """Makes, in the master, the folder in which workers count, once. It is removed at the end.

    It lies in memory if possible: on a full disk a write to a mapped file kills its process.
    """
    if FOLDER in os.environ:  # a reload, or an operator who has one
        return
    parent = None
    if os.access(MEMORY, os.W_OK):
        parent = MEMORY
    folder = tempfile.mkdtemp(prefix=f"blocktill-metrics-{os.getpid()}-", dir=parent)
    os.environ[FOLDER] = folder
    atexit.register(_remove, folder, os.getpid())


def _remove(folder: str, owner: int) -> None:
    if os.getpid() == owner:  # not in a worker
        shutil.rmtree(folder, ignore_errors=True)


class ScrapeHandler(MetricsHandler):
    """GET /metrics, in the format that the scraper prefers."""

    # Seconds for a scraper: a silent one must not keep out the next.
    timeout = 5

    def do_GET(self) -> None:
        if self.path.partition("?")[0] == "/metrics":
            super().do_GET()
        else:
            self.send_error(404)


class MetricsServer(HTTPServer):
    """Answers scrapes on a listening socket that other processes may share.

    It has a thread of its own, with its own connection to the database: requests do not wait for
    it.
    """

    def __init__(
        self, collectors: Iterable[Collector], listener: socket.socket
    ) -> None:
        registry = CollectorRegistry()
        for collector in collectors:
            registry.register(collector)
        handler = type("ScrapeHandler", (ScrapeHandler,), {"registry": registry})
        super().__init__(listener.getsockname()[:2], handler, bind_and_activate=False)
        self.socket.close()
        # Another process may have taken the connection already.
        listener.setblocking(False)
        self.socket = listener
        threading.Thread(target=self.serve_forever, args=[POLL_S], daemon=True).start()

    def end(self) -> None:
        """Ends the thread, after the scrape that is under way."""
        self.shutdown()
        self.server_close()

    def handle_error(self, *_: object) -> None:
        """Logs one line if a scraper went away, or for a fault; the next scrape is served."""
        log.warning("a scrape of the metrics failed", exc_info=True)
