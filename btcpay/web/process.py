"""The resources that a process takes: threads, connections, one processor."""

import contextlib
import os
import resource
import socket
import threading
import time
from collections.abc import Iterable
from typing import Any

THREADS = 64  # slow clients hold some: sixty of them leave four for all others
CONNECTIONS = 4000  # an idle one costs a file, and no thread
FILES_PER_THREAD = 2  # those of a SQLite connection
OTHER_FILES = 64
IDLE_S = 10  # after which the kernel asks whether a client is still there
GONE_S = 30  # after which a silent client, or one that reads nothing, is cut off
HANG_UP_S = 2  # for a client to read the end of its last answer and hang up
# The clients that may be waited for at once, until they hang up.
HANG_UPS = threading.Semaphore(THREADS // 8)

# Linux has these; other systems leave them out. TCP_DEFER_ACCEPT hands a connection to gunicorn
# with its first byte; otherwise each idle one would hold a thread for five seconds.
KERNEL_OPTIONS = {
    "TCP_DEFER_ACCEPT": IDLE_S,
    "TCP_KEEPIDLE": IDLE_S,
    "TCP_KEEPINTVL": IDLE_S,
    "TCP_USER_TIMEOUT": GONE_S * 1000,
}
_THREAD = threading.local()


def most_connections() -> int:
    """The number of connections that a process may have, by the files that it may open.

    gunicorn's worker would end if it ran out of files. The limit is raised as far as it may be.
    """
    _, most = resource.getrlimit(resource.RLIMIT_NOFILE)
    # Not every system allows as much as it says.
    with contextlib.suppress(ValueError, OSError):
        resource.setrlimit(resource.RLIMIT_NOFILE, (most, most))
    files, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    if files == resource.RLIM_INFINITY:
        return CONNECTIONS
    free_files = files - FILES_PER_THREAD * THREADS - OTHER_FILES
    return min(CONNECTIONS, max(THREADS, free_files))


def drop_dead_connections(listeners: Iterable[socket.socket]) -> None:
    """Has the kernel end connections whose client has vanished.

    gunicorn's threads would wait without limit for the rest of a request, or until an answer is
    read. Accepted connections inherit these options from their listener.
    """
    for listener in listeners:
        if listener.family == socket.AF_UNIX:
            continue
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
        for name, value in KERNEL_OPTIONS.items():
            option = getattr(socket, name, None)
            if option is not None:
                listener.setsockopt(socket.IPPROTO_TCP, option, value)


def keep_to_one_processor(bind: str) -> None:
    """Lets this process run on one processor alone, if that is allowed.

    This doubles the rate of get-invoice, measured on two processors: beside plain gunicorn it is
    0.86 and 0.88 with it, and 0.43 and 0.46 without. Python has one interpreter lock, so threads
    never run at once, and handing the lock over to another processor takes longer than most of
    their work. The listening address chooses the processor, so that shops with neighbouring ports
    get different ones.

    With SCHED_BATCH (sched(7)) a thread that wakes up does not interrupt the one at work. By
    default it does, finds that the other still holds the lock, and both wait: one in a hundred
    reads took 10 ms, and takes 3.
    """
    # Not every system has these calls, and they may be forbidden.
    with contextlib.suppress(AttributeError, OSError):
        processors = sorted(os.sched_getaffinity(0))
        processor = processors[sum(bind.encode()) % len(processors)]
        os.sched_setaffinity(0, {processor})
        os.sched_setscheduler(0, os.SCHED_BATCH, os.sched_param(0))


def note_request(request: Any) -> None:
    """Notes gunicorn's request, for `end_connection` in the same thread."""
    _THREAD.request = request


def end_connection() -> None:
    """Has the answer say `Connection: close`, which WSGI leaves to the server."""
    request = getattr(_THREAD, "request", None)
    if request:
        request.force_close()


def close_gracefully(sock: socket.socket) -> None:
    """Closes the connection for writing, and waits until the client hangs up.

    A full close while the client still sends would destroy the end of the answer. gunicorn's loop
    must not wait for that, so this runs in the request's thread.
    """
    with contextlib.suppress(OSError):
        sock.shutdown(socket.SHUT_WR)
    if HANG_UPS.acquire(blocking=False):
        with contextlib.suppress(OSError):
            _wait_for_hang_up(sock)
        HANG_UPS.release()
    with contextlib.suppress(OSError):
        sock.shutdown(socket.SHUT_RD)


def _wait_for_hang_up(sock: socket.socket) -> None:
    until_s = time.monotonic() + HANG_UP_S
    while (left_s := until_s - time.monotonic()) > 0:
        sock.settimeout(left_s)
        if not sock.recv(65_536):
            return
