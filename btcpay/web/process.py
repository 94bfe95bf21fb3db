"""The share of the machine that a process takes: threads, connections, one processor."""

import contextlib
import os
import resource
import socket
import threading
import time
from collections.abc import Iterable
from typing import Any

THREADS = 64  # slow clients hold some: sixty of them leave four for all others
CONNECTIONS = 4000  # idle ones cost a file each, and no thread
FILES_PER_THREAD = 2  # a SQLite connection's
OTHER_FILES = 64
IDLE_S = 10  # before the kernel asks whether a client is still there
GONE_S = 30  # for a client that is gone, or takes nothing of its answer
LEAVE_S = 2  # for a client to read the end of its last answer and hang up
LEAVING = threading.Semaphore(THREADS // 8)  # clients waited for at once, at most

# Of Linux; elsewhere they are left out. A connection comes to gunicorn with its first byte, else
# idle ones would hold a thread for five seconds each.
KERNEL_OPTIONS = {
    "TCP_DEFER_ACCEPT": IDLE_S,
    "TCP_KEEPIDLE": IDLE_S,
    "TCP_KEEPINTVL": IDLE_S,
} | {"TCP_USER_TIMEOUT": GONE_S * 1000}
_HERE = threading.local()


def most_connections() -> int:
    """The number of connections that a process may have, by the files that it may open.

    Beyond them gunicorn's worker would end. The limit is raised as far as it may be.
    """
    _, most = resource.getrlimit(resource.RLIMIT_NOFILE)
    with contextlib.suppress(
        ValueError, OSError
    ):  # not every system allows as much as it says
        resource.setrlimit(resource.RLIMIT_NOFILE, (most, most))
    files, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    if files == resource.RLIM_INFINITY:
        return CONNECTIONS
    return min(
        CONNECTIONS, max(THREADS, files - FILES_PER_THREAD * THREADS - OTHER_FILES)
    )


def let_go_of_the_gone(listeners: Iterable[socket.socket]) -> None:
    """Has the kernel end connections whose client has vanished: accepted ones inherit this.

    gunicorn's threads wait without limit for the rest of a request, and for an answer to be taken.
    """
    for listener in listeners:
        if listener.family == socket.AF_UNIX:
            continue
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
        for name, value in KERNEL_OPTIONS.items():
            if option := getattr(socket, name, None):
                listener.setsockopt(socket.IPPROTO_TCP, option, value)


def keep_to_one_processor(bind: str) -> None:
    """Lets this process run on one processor alone, if that is allowed.

    Measured on two processors, it is worth a factor of two: beside plain gunicorn the rate of
    get-invoice is 0.86 and 0.88 with it, and 0.43 and 0.46 without. There is one interpreter lock:
    threads never run at once, and handing the lock over to another processor takes longer than most
    of their work. The listening address chooses the processor, so that shops with neighbouring
    ports get different ones.

    With SCHED_BATCH (sched(7)) a thread that wakes up does not interrupt the one at work. By
    default it does, finds that the other still holds the lock, and both wait: one in a hundred
    reads took 10 ms, and takes 3.
    """
    with contextlib.suppress(
        AttributeError, OSError
    ):  # not of every system; or forbidden
        allowed = sorted(os.sched_getaffinity(0))
        os.sched_setaffinity(0, {allowed[sum(bind.encode()) % len(allowed)]})
        os.sched_setscheduler(0, os.SCHED_BATCH, os.sched_param(0))


def begin(request: Any) -> None:
    """Notes gunicorn's request, for `end_connection` in the same thread."""
    _HERE.request = request


def end_connection() -> None:
    """Has the answer say `Connection: close`, which WSGI leaves to the server."""
    if request := getattr(_HERE, "request", None):
        request.force_close()


def take_leave(sock: socket.socket) -> None:
    """Half closes, and waits for the client to hang up: in a thread, since gunicorn's loop would.

    A full close while bytes still come from the client would destroy the answer's end.
    """
    with contextlib.suppress(OSError):
        sock.shutdown(socket.SHUT_WR)
    if LEAVING.acquire(blocking=False):
        with contextlib.suppress(OSError):
            _wait_for_the_end(sock)
        LEAVING.release()
    with contextlib.suppress(OSError):
        sock.shutdown(socket.SHUT_RD)


def _wait_for_the_end(sock: socket.socket) -> None:
    until_s = time.monotonic() + LEAVE_S
    while (left_s := until_s - time.monotonic()) > 0:
        sock.settimeout(left_s)
        if not sock.recv(65_536):
            return
