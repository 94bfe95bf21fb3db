"""gunicorn's configuration: one worker process with many threads.

This module reads environment variables when it is imported, so only gunicorn may import
it. It checks the settings before gunicorn listens.
"""

import os
import signal
from concurrent.futures import ThreadPoolExecutor
from typing import Any

from gunicorn.glogging import Logger
from gunicorn.workers.gthread import ThreadWorker

from btcpay.health import scrape
from btcpay.settings.logs import Discreet, to_json
from btcpay.settings.settings import read_or_exit
from btcpay.web import process
from btcpay.web.start_checks import check_before_start, too_many

SHARED_MEMORY = "/dev/shm"  # noqa: S108 - no name is guessed: gunicorn uses mkstemp
STOP_SIGNALS = {signal.SIGTERM, signal.SIGINT, signal.SIGQUIT}


class JsonLogger(Logger):  # type: ignore[misc]  # it has no types
    """Writes gunicorn's error log as JSON lines.

    gunicorn's setting `logconfig_dict` could do the same, but with it gunicorn would
    also format an access-log line for each request.
    """

    def setup(self, cfg: Any) -> None:
        super().setup(cfg)
        to_json(self.error_log)
        for handler in self.error_log.handlers:
            handler.addFilter(Discreet())


class Worker(ThreadWorker):  # type: ignore[misc]  # it has no types
    """gunicorn's worker with threads, whose threads get another scheduling policy.

    `btcpay.web.process.run_at_once` says why.
    """

    def get_thread_pool(self) -> ThreadPoolExecutor:
        return ThreadPoolExecutor(self.cfg.threads, initializer=process.run_at_once)


settings = read_or_exit(os.environ)
bind = settings.bind
worker_class = Worker
threads = process.THREADS
# Each worker touches a file once a second. In memory this writes to no disk.
if os.access(SHARED_MEMORY, os.W_OK):
    worker_tmp_dir = SHARED_MEMORY
worker_connections = process.most_connections()
# With TCP_DEFER_ACCEPT, idle connections wait in the backlog.
backlog = 2048
# Seconds. A page polls every two seconds, and the proxies in deploy/ close a little
# earlier.
keepalive = 10
# Seconds that running requests have after SIGTERM. No request takes that long.
graceful_timeout = 30
# No request header may set SCRIPT_NAME or PATH_INFO.
forwarder_headers = ""
# gunicorn is controlled by signals. Its control socket would be in the user's home.
control_socket_disable = True
logger_class = JsonLogger
if settings.metrics_bind:
    scrape.make_folder()


def on_starting(server: Any) -> None:
    """Checks the settings before gunicorn listens. Exits if one is wrong.

    gunicorn calls this hook in the master process, after it has read the command line
    and GUNICORN_CMD_ARGS.
    """
    check_before_start(settings, server.cfg.workers, server.cfg.address)
    if not settings.trusted_proxies:
        server.log.warning("no proxy stands in front: this is for this machine alone")


def nworkers_changed(server: Any, new_value: Any, old_value: Any) -> None:
    """Keeps the old number of worker processes if the settings forbid the new number.

    gunicorn calls this hook in the master process: at the start, when `old_value` is
    None and `on_starting` checks the number; then after a signal or a reload.
    """
    mistake = too_many(settings, new_value)
    if old_value and mistake:
        server.log.error(mistake)
        server.num_workers = old_value


def when_ready(server: Any) -> None:
    """Sets socket options and opens the metrics socket.

    gunicorn calls this hook in the master process when it listens, before a worker
    starts.
    """
    process.drop_dead_connections(listener.sock for listener in server.LISTENERS)
    server.metrics_listener = scrape.listen(settings.metrics_bind)
    # A new worker has the master's signal handlers at first, which would lose a stop
    # signal. So stop signals are blocked during a fork.
    os.register_at_fork(before=_block_stops, after_in_parent=_unblock_stops)


def post_fork(server: Any, worker: Any) -> None:
    """Pins the worker to one processor, if gunicorn has only one worker.

    gunicorn calls this hook in each new worker process.
    """
    if server.cfg.workers == 1:
        process.keep_to_one_processor(str(server.cfg.bind))
        process.let_others_run()
    worker.metrics_listener = getattr(server, "metrics_listener", None)


def post_worker_init(worker: Any) -> None:
    """Sets the worker's signal handlers, and starts its metrics server.

    gunicorn calls this hook in each worker process after it has loaded the application.
    """
    # Ctrl-C in a terminal sends SIGINT to the workers and to the master, which then
    # stops its workers with SIGQUIT. gunicorn's handler of SIGQUIT takes the lock of the
    # thread pool, which the interrupted thread may hold: a deadlock. Its handler of
    # SIGTERM takes no lock.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    signal.signal(signal.SIGQUIT, signal.getsignal(signal.SIGTERM))
    _unblock_stops()
    if worker.metrics_listener:
        serve_metrics = worker.wsgi.extensions["metrics"]
        worker.metrics_server = serve_metrics(worker.metrics_listener)


def pre_request(worker: Any, req: Any) -> None:
    """Remembers the request for this thread, so that its connection can be closed later.

    gunicorn calls this hook before each request, in the thread that serves it.
    """
    process.note_request(req)


def post_request(worker: Any, req: Any, environ: Any, resp: Any) -> None:
    """Closes the connection if the response has `Connection: close`.

    gunicorn calls this hook after each request, in the same thread as `pre_request`.
    """
    if resp and resp.should_close():
        process.close_gracefully(environ["gunicorn.socket"])


def worker_exit(server: Any, worker: Any) -> None:
    """Stops the worker's metrics server and its background threads.

    gunicorn calls this hook in a worker process that stops, after its last request.
    """
    metrics_server = getattr(worker, "metrics_server", None)
    if metrics_server:
        metrics_server.end()
    # The attribute is missing if the application could not be loaded.
    app = getattr(worker, "wsgi", None)
    if app:
        app.extensions["blocktill"].close()


def _block_stops() -> None:
    signal.pthread_sigmask(signal.SIG_BLOCK, STOP_SIGNALS)


def _unblock_stops() -> None:
    signal.pthread_sigmask(signal.SIG_UNBLOCK, STOP_SIGNALS)
