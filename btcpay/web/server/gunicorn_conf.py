"""gunicorn's configuration: one process with threads, checked before a socket is opened.

gunicorn imports it, and it reads the environment then: nothing else may import it.
"""

import os

from btcpay.health import metrics_setup
from btcpay.web.server.startup import (
    check_before_start,
    keep_to_one_processor,
    limit_waiting,
    read_or_exit,
    require_free,
    too_many,
)
from btcpay.web.server.worker import JsonLogger

settings = read_or_exit(os.environ)
bind = settings.bind
worker_class = "btcpay.web.server.worker.Worker"  # gthread, whose threads wait for no client
logger_class = JsonLogger
threads = 8
worker_connections = 800  # a process may have 1,024 files open unless it is told otherwise
graceful_timeout = 30  # after SIGTERM, for requests under way: longer than any of ours takes
forwarder_headers = ""  # no header may set SCRIPT_NAME or PATH_INFO
control_socket_disable = True  # signals suffice; the socket would lie in the owner's home
keepalive = 65  # longer than the 60 s for which common reverse proxies keep connections
if settings.metrics_bind:
    metrics_setup.make_folder()


def on_starting(server):
    """Runs in the master, when command line and GUNICORN_CMD_ARGS have had their say."""
    check_before_start(settings, server.cfg.workers)
    inherited = os.environ.keys() & {"GUNICORN_FD", "LISTEN_FDS"}
    if not inherited and not server.cfg.reuse_port:
        require_free(server.cfg.address)


def nworkers_changed(server, new_value, old_value):
    """Runs in the master when a signal or a reload asks for another number of workers."""
    if old_value and (mistake := too_many(settings, new_value)):
        server.log.error(mistake)
        server.num_workers = old_value


def when_ready(server):
    """Runs when the sockets listen, before any worker starts."""
    limit_waiting(listener.sock for listener in server.LISTENERS)
    server.metrics_listener = metrics_setup.listen(settings.metrics_bind)


def post_fork(server, worker):
    """Runs in each worker at its start."""
    keep_to_one_processor(worker.age)
    worker.metrics_listener = getattr(server, "metrics_listener", None)
    worker.most_body_bytes = settings.max_body_bytes + 1  # see btcpay/web/body.py


def post_worker_init(worker):
    """Runs in each worker, when the application is there."""
    worker.quick = worker.wsgi.extensions["quick"]
    if worker.metrics_listener:
        worker.scraped = worker.wsgi.extensions["metrics"](worker.metrics_listener)


def worker_exit(server, worker):
    """Runs in a worker that ends, when its requests have ended."""
    if scraped := getattr(worker, "scraped", None):
        scraped.end()
    if app := getattr(worker, "wsgi", None):  # none when it could not be loaded
        app.extensions["btcpay"].close()
