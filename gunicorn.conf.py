"""gunicorn's configuration: one process with threads, checked before a socket is opened."""

import logging
import os

from btcpay.serving import check_before_start, limit_waiting, read_or_exit, withhold_headers

settings = read_or_exit(os.environ)
bind = settings.bind
worker_class = "gthread"
threads = 8
forwarder_headers = ""  # no header may set SCRIPT_NAME or PATH_INFO
control_socket_disable = True  # signals suffice; the socket would lie in the owner's home
keepalive = 65  # longer than the 60 s for which common reverse proxies keep connections


def on_starting(server):
    """Runs in the master, when command line and GUNICORN_CMD_ARGS have had their say."""
    logging.getLogger("gunicorn.error").addFilter(withhold_headers)
    check_before_start(settings, server.cfg.workers)


def when_ready(server):
    """Runs when the sockets listen, before any worker starts."""
    limit_waiting(listener.sock for listener in server.LISTENERS)
