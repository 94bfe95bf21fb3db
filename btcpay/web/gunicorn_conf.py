"""gunicorn's configuration: one process of many threads, checked before a socket is opened.

It reads the environment when gunicorn imports it, so nothing else may import it.
"""

import os
import signal
import sys
from collections.abc import Sequence
from typing import Any, NoReturn

from gunicorn.glogging import Logger
from peewee import PeeweeException

from btcpay.health import scrape
from btcpay.settings.logs import Discreet, to_json
from btcpay.settings.settings import Settings, read_or_exit
from btcpay.values.errors import DatabaseNotReady
from btcpay.values.hosts import is_here
from btcpay.web import process
from btcpay.web.rate_limits import missing_driver
from storage.database import in_one_line
from storage.versions import open_ready

STOP_SIGNALS = {signal.SIGTERM, signal.SIGINT, signal.SIGQUIT}


class JsonLogger(Logger):  # type: ignore[misc]  # it has no types
    """Logs JSON lines. With a `logconfig_dict` gunicorn would also prepare a line a request."""

    def setup(self, cfg: Any) -> None:
        super().setup(cfg)
        to_json(self.error_log)
        for handler in self.error_log.handlers:
            handler.addFilter(Discreet())


settings = read_or_exit(os.environ)
bind = settings.bind
worker_class = "gthread"
threads = process.THREADS
worker_connections = process.most_connections()
# Idle connections wait in the backlog, by TCP_DEFER_ACCEPT.
backlog = 2048
# Seconds. A page asks every two seconds; the proxies in deploy/ hang up a little earlier.
keepalive = 10
# Seconds after SIGTERM for the requests under way: longer than any of ours takes.
graceful_timeout = 30
# No header may set SCRIPT_NAME or PATH_INFO.
forwarder_headers = ""
# Signals suffice; the socket would lie in the owner's home.
control_socket_disable = True
logger_class = JsonLogger
if settings.metrics_bind:
    scrape.make_folder()


def on_starting(server: Any) -> None:
    """Runs in the master, after the command line and GUNICORN_CMD_ARGS have been read."""
    check_before_start(settings, server.cfg.workers, server.cfg.address)
    if not settings.trusted_proxies:
        server.log.warning("no proxy stands in front: this is for this machine alone")


def nworkers_changed(server: Any, new_value: Any, old_value: Any) -> None:
    """Runs in the master when a signal or a reload asks for another number of workers."""
    mistake = too_many(settings, new_value)
    if old_value and mistake:
        server.log.error(mistake)
        server.num_workers = old_value


def when_ready(server: Any) -> None:
    """Runs when the sockets listen, before any worker starts."""
    process.drop_dead_connections(listener.sock for listener in server.LISTENERS)
    server.metrics_listener = scrape.listen(settings.metrics_bind)
    # A new worker has the master's handlers at first, which would lose a signal there.
    os.register_at_fork(before=_block_stops, after_in_parent=_unblock_stops)


def post_fork(server: Any, worker: Any) -> None:
    """Runs in each worker at its start."""
    if server.cfg.workers == 1:
        process.keep_to_one_processor(str(server.cfg.bind))
    worker.metrics_listener = getattr(server, "metrics_listener", None)


def post_worker_init(worker: Any) -> None:
    """Runs in each worker once the application is loaded."""
    # A terminal interrupts the master too, which then stops us by SIGQUIT. gunicorn's handler of
    # SIGQUIT takes the thread pool's lock, which the interrupted thread may hold. That of SIGTERM
    # takes no lock.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    signal.signal(signal.SIGQUIT, signal.getsignal(signal.SIGTERM))
    _unblock_stops()
    if worker.metrics_listener:
        serve_metrics = worker.wsgi.extensions["metrics"]
        worker.metrics_server = serve_metrics(worker.metrics_listener)


def pre_request(worker: Any, req: Any) -> None:
    """Runs in a thread, before each request."""
    process.note_request(req)


def post_request(worker: Any, req: Any, environ: Any, resp: Any) -> None:
    """Runs in the same thread, after each request."""
    if resp and resp.should_close():
        process.close_gracefully(environ["gunicorn.socket"])


def worker_exit(server: Any, worker: Any) -> None:
    """Runs in a worker that ends, after its last request."""
    metrics_server = getattr(worker, "metrics_server", None)
    if metrics_server:
        metrics_server.end()
    # There is no application if it could not be loaded.
    app = getattr(worker, "wsgi", None)
    if app:
        app.extensions["blocktill"].close()


def _block_stops() -> None:
    signal.pthread_sigmask(signal.SIG_BLOCK, STOP_SIGNALS)


def _unblock_stops() -> None:
    signal.pthread_sigmask(signal.SIG_UNBLOCK, STOP_SIGNALS)


def check_before_start(
    settings: Settings, processes: int, addresses: Sequence[Any]
) -> None:
    """Ends the process with status 2 for a mistake in the settings, 1 for the database."""
    mistakes = (
        too_many(settings, processes),
        missing_driver(settings.rate_limit_store),
        too_open(settings, addresses),
    )
    mistake = next(filter(None, mistakes), "")
    if mistake:
        _exit(mistake, 2)
    try:
        open_ready(settings.database_url, settings.network.name).close()
    except (DatabaseNotReady, OSError) as error:
        _exit(str(error), 1)
    except PeeweeException as error:
        _exit(f"the database cannot be used: {in_one_line(error)}", 1)


def too_many(settings: Settings, processes: int) -> str:
    """The reason why so many processes cannot share this store; empty if they can."""
    if processes <= 1 or settings.rate_limit_store != "memory://":
        return ""
    return (
        f"BLOCKTILL_RATE_LIMIT_STORE accepts memory:// for one process only; {processes} are"
        " asked for: use redis://host:port/n"
    )


def too_open(settings: Settings, addresses: Sequence[Any]) -> str:
    """The reason why these addresses may not be listened on; empty if they may.

    Each address is a host and a port, or the path of a Unix socket.
    """
    hosts = [address[0] for address in addresses if isinstance(address, tuple)]
    is_protected = settings.trusted_proxies or all(map(is_here, hosts))
    if is_protected or not settings.network.main_keys:
        return ""
    return (
        "on mainnet BLOCKTILL_BIND accepts an address of this machine alone: strangers could hold"
        " every thread, so a proxy has to stand in front, and BLOCKTILL_TRUSTED_PROXIES says so"
    )


def _exit(message: str, status: int) -> NoReturn:
    print(f"blocktill: {message}", file=sys.stderr)
    raise SystemExit(status)
