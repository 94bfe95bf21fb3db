"""Serves `/metrics` to Prometheus.

gunicorn's master process opens the socket, and creates the folder with the counts. The
worker processes use both.
"""

import atexit
import contextlib
import fcntl
import logging
import os
import selectors
import shutil
import socket
import tempfile
import threading
from collections.abc import Iterable
from http.server import HTTPServer
from pathlib import Path

from prometheus_client import CollectorRegistry, MetricsHandler
from prometheus_client.registry import Collector

log = logging.getLogger(__name__)

FOLDER = "PROMETHEUS_MULTIPROC_DIR"  # a variable of prometheus_client
MEMORY = "/dev/shm"
PREFIX = "blocktill-metrics-"


def listen(bind: str) -> socket.socket | None:
    """Opens the socket on which all worker processes serve metrics.

    Call this function in gunicorn's master process. `bind` is "host:port", with an IPv6
    host in brackets; "" if no metrics are served. Returns None if `bind` is "". Logs the
    error and returns None if the socket cannot be opened: the shop works without metrics.
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
    """Creates the folder into which workers write counts, and removes it at exit.

    Call this function in gunicorn's master process. It stores the folder in the
    environment variable PROMETHEUS_MULTIPROC_DIR. Does nothing if that variable names a
    folder already.

    If possible, the folder is in memory (/dev/shm): on a full disk, the system would
    kill a process that writes to a memory-mapped file.
    """
    if FOLDER in os.environ:  # set before a reload, or by the operator
        return
    parent = tempfile.gettempdir()
    if os.access(MEMORY, os.W_OK):
        parent = MEMORY
    _remove_abandoned(Path(parent))
    folder = None
    while folder is None:  # another process has removed the last one
        folder = _new_locked_folder(parent)
    os.environ[FOLDER] = folder
    atexit.register(_remove, folder, os.getpid())


def _new_locked_folder(parent: str) -> str | None:
    """Creates a folder, and locks it until this process and those that it forks have ended.

    Returns None if another process has removed the folder before this one locked it:
    it seemed to be abandoned.
    """
    folder = tempfile.mkdtemp(prefix=f"{PREFIX}{os.getpid()}-", dir=parent)
    try:
        descriptor = os.open(folder, os.O_RDONLY)  # it has the lock, and stays open
        fcntl.flock(descriptor, fcntl.LOCK_EX)
    except FileNotFoundError:
        return None
    if os.path.isdir(folder):
        return folder
    return None


def _remove_abandoned(parent: Path) -> None:
    """Removes the folders of processes that were killed before they could do so."""
    for folder in parent.glob(f"{PREFIX}*"):
        with contextlib.suppress(OSError):  # in use, or somebody else's
            descriptor = os.open(folder, os.O_RDONLY | os.O_NOFOLLOW)
            try:
                fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
                shutil.rmtree(folder, ignore_errors=True)
            finally:
                os.close(descriptor)


def _remove(folder: str, owner: int) -> None:
    if os.getpid() == owner:  # a worker must not remove it
        shutil.rmtree(folder, ignore_errors=True)


class ScrapeHandler(MetricsHandler):
    """Answers GET /metrics in the format that the scraper prefers; 404 for other paths."""

    # Seconds until a silent scraper is dropped: it must not block the next one.
    timeout = 5

    def do_GET(self) -> None:
        if self.path.partition("?")[0] == "/metrics":
            super().do_GET()
        else:
            self.send_error(404)


class MetricsServer(HTTPServer):
    """Answers scrapes on a listening socket that other processes may share.

    It runs in its own thread, with its own connection to the database, so that requests
    to the service do not wait for scrapes.
    """

    # Seconds that `handle_request` waits for a connection, which another process may
    # have taken.
    timeout = 0

    def __init__(
        self,
        collectors: Iterable[Collector],
        listener: socket.socket,
    ) -> None:
        registry = CollectorRegistry()
        for collector in collectors:
            registry.register(collector)
        # MetricsHandler reads the registry from its class.
        handler = type("ScrapeHandler", (ScrapeHandler,), {"registry": registry})
        address = listener.getsockname()[:2]  # host and port, also for IPv6
        super().__init__(address, handler, bind_and_activate=False)
        self.socket.close()  # HTTPServer has made it; `listener` takes its place
        # accept() must not block: another process may have taken the connection already.
        listener.setblocking(False)
        self.socket = listener
        # `end` writes to this pair of sockets, which wakes `_serve`. HTTPServer's own
        # `serve_forever` would look several times a second whether it has to end.
        self._end_reader, self._end_writer = socket.socketpair()
        self._thread = threading.Thread(target=self._serve, daemon=True)
        self._thread.start()

    def _serve(self) -> None:
        with selectors.DefaultSelector() as selector:
            selector.register(self.socket, selectors.EVENT_READ)
            selector.register(self._end_reader, selectors.EVENT_READ)
            while True:
                ready = [key.fileobj for key, _ in selector.select()]
                if self._end_reader in ready:
                    return
                self.handle_request()

    def end(self) -> None:
        """Stops the thread, after the scrape in progress, and closes the socket."""
        self._end_writer.send(b".")
        self._thread.join()
        self._end_reader.close()
        self._end_writer.close()
        self.server_close()

    def handle_error(self, *_: object) -> None:
        """Logs the exception of a scrape that failed. The server continues."""
        log.warning("a scrape of the metrics failed", exc_info=True)
