"""Runs the service and the check as two processes, until one of them ends.

Both are forked from this process after it has loaded the program and made the web
application. Memory that no process changes is then shared by all of them: an idle shop
takes a quarter less memory than if each program were started by itself.
"""

import gc
import logging
import os
import sys

from gunicorn import __main__ as gunicorn_command
from gunicorn.app.wsgiapp import WSGIApplication

from btcpay.cli.check.check import check as check_command
from btcpay.cli.children import Children
from btcpay.cli.run_to_exit import run_to_exit
from btcpay.cli.serve import GUNICORN, PROJECT
from btcpay.cli.stop import Stop
from btcpay.settings.logs import to_json

STOP_TIMEOUT_S = 30  # gunicorn's time limit for requests in progress


def supervise(stop: Stop, every_s: int) -> None:
    """Runs the service and the check until `stop` is set.

    The check runs every `every_s` seconds. Raises CommandError if the service or the
    check ends first, and SettingsError or DatabaseNotReady if the web application cannot
    be made. Do not call this function while the process has threads or open connections,
    which do not survive a fork.
    """
    service = load_service()
    check_words = ["--watch", str(every_s)]

    def serve() -> None:
        # `wsgi` sets this level too, but was loaded before the level of gunicorn's log was known.
        logging.root.setLevel(logging.getLogger("gunicorn.error").level)
        to_json(logging.root)
        service.run()

    def check() -> None:
        to_json(logging.root)  # as the service, since both write to one log
        run_to_exit(lambda: check_command(check_words, "blocktill check"))

    # The garbage collector writes to each object that it examines, which would copy the shared
    # memory. It does not examine the frozen objects.
    gc.collect()
    gc.freeze()
    with Children(os.environ, STOP_TIMEOUT_S) as children:
        children.fork("service", serve)
        children.fork("check", check)
        children.watch(stop)


def load_service() -> WSGIApplication:
    """Returns gunicorn's application, after it has loaded `wsgi`.

    gunicorn has the same configuration as with `blocktill serve`.
    """
    _order_path()
    sys.argv = [gunicorn_command.__file__, *GUNICORN]  # gunicorn reads them
    service = WSGIApplication("%(prog)s [OPTIONS] [APP_MODULE]")
    service.cfg.logger_class(service.cfg)  # sets the levels of gunicorn's logs
    handlers = list(logging.root.handlers)
    level = logging.root.level
    formatters = [handler.formatter for handler in handlers]
    service.wsgi()
    # Loading `wsgi` has given this process the log of the service: restores its own.
    logging.root.setLevel(level)
    for handler, formatter in zip(handlers, formatters, strict=True):
        handler.setFormatter(formatter)
    return service


def _order_path() -> None:
    """Puts the program first on `sys.path`, and the current folder last.

    gunicorn would put the current folder first, which may hold another `wsgi.py`.
    """
    here = os.getcwd()
    others = [folder for folder in sys.path if folder not in ("", here)]
    sys.path[:] = [str(PROJECT), *others, here]
