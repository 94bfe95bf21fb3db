"""The folder and the socket of the metrics: made in gunicorn's master, used by its workers."""

import atexit
import logging
import os
import shutil
import socket
import tempfile

FOLDER = "PROMETHEUS_MULTIPROC_DIR"  # the library's own variable
MEMORY = "/dev/shm"


def listen(bind: str) -> socket.socket | None:
    """In the master: the socket that its workers will share; None when the address is taken.

    A shop must not stop selling because nobody can read its metrics: that is logged instead.
    """
    if not bind:
        return None
    host, _, port = bind.rpartition(":")
    family = socket.AF_INET6 if host.startswith("[") else socket.AF_INET
    try:
        return socket.create_server((host.strip("[]"), int(port)), family=family)
    except OSError as error:
        logging.getLogger("gunicorn.error").error(
            "no metrics: BTCPAY_METRICS_BIND %s: %s", bind, error.strerror
        )
        return None


def make_folder() -> str:
    """In the master: makes the folder in which workers count, once; it is removed at the end.

    It lies in memory if possible: on a full disk a write to a mapped file kills its process.
    """
    if FOLDER not in os.environ:  # a reload, or an operator who has one
        memory = MEMORY if os.access(MEMORY, os.W_OK) else None
        prefix = f"btcpay-metrics-{os.getpid()}-"
        os.environ[FOLDER] = tempfile.mkdtemp(prefix=prefix, dir=memory)
        atexit.register(_remove, os.environ[FOLDER], os.getpid())
    return os.environ[FOLDER]


def _remove(folder: str, owner: int) -> None:
    if os.getpid() == owner:  # not in a worker
        shutil.rmtree(folder, ignore_errors=True)
