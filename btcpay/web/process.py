"""Limits and tunes what a worker process uses: threads, connections, one processor."""

import contextlib
import os
import resource
import socket
import threading
import time
from collections.abc import Iterable
from typing import Any

THREADS = 64  # slow clients occupy some: sixty of them leave four for all others
CONNECTIONS = 4000  # an idle connection needs a file descriptor, but no thread
FILES_PER_THREAD = 2  # open files of a SQLite connection
OTHER_FILES = 64
IDLE_S = 10  # the kernel probes an idle connection after this time
GONE_S = 30  # a client that does not respond or read for this time is disconnected
HANG_UP_S = 2  # the time for a client to read the end of its response and close
# Limits the threads that wait at the same time for a client to close.
HANG_UPS = threading.Semaphore(THREADS // 8)

# Socket options of Linux; those that another system lacks are skipped. With
# TCP_DEFER_ACCEPT, gunicorn gets a connection only with its first byte. Otherwise each
# idle connection would occupy a thread for five seconds.
KERNEL_OPTIONS = {
    "TCP_DEFER_ACCEPT": IDLE_S,
    "TCP_KEEPIDLE": IDLE_S,
    "TCP_KEEPINTVL": IDLE_S,
    "TCP_USER_TIMEOUT": GONE_S * 1000,
}
_THREAD = threading.local()


def most_connections() -> int:
    """Returns the maximum number of connections of this process.

    It depends on the number of files that the process may open, since gunicorn's worker
    would crash without free file descriptors. The soft limit is set to the hard limit
    first.
    """
    _, most = resource.getrlimit(resource.RLIMIT_NOFILE)
    # Some systems refuse even their own hard limit.
    with contextlib.suppress(ValueError, OSError):
        resource.setrlimit(resource.RLIMIT_NOFILE, (most, most))
    files, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    if files == resource.RLIM_INFINITY:
        return CONNECTIONS
    free_files = files - FILES_PER_THREAD * THREADS - OTHER_FILES
    return min(CONNECTIONS, max(THREADS, free_files))


def drop_dead_connections(listeners: Iterable[socket.socket]) -> None:
    """Sets socket options so that the kernel closes connections of vanished clients.

    Otherwise gunicorn's threads would wait forever for the rest of a request, or for
    the client to read a response. Accepted connections inherit the options of the
    listener.
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
    """Pins this process to one processor, if the system permits it.

    Python's interpreter lock lets one thread run at a time, and passing the lock to
    another processor takes longer than most of a thread's work. The listening address
    `bind` chooses the processor, so that shops on neighbouring ports get different
    ones. docs/developers/decisions/0008-one-processor.md has the measurements.
    """
    # Some systems lack these calls or forbid them.
    with contextlib.suppress(AttributeError, OSError):
        processors = sorted(os.sched_getaffinity(0))
        processor = processors[sum(bind.encode()) % len(processors)]
        os.sched_setaffinity(0, {processor})


def let_others_run() -> None:
    """Sets the calling thread to SCHED_BATCH (sched(7)), if the system permits it.

    When the thread wakes, it does not preempt the one that runs. The main thread needs
    this: it wakes for each request, finds that another thread holds the interpreter
    lock, and both would wait. Its new threads inherit it.
    """
    with contextlib.suppress(AttributeError, OSError):
        os.sched_setscheduler(0, os.SCHED_BATCH, os.sched_param(0))


def run_at_once() -> None:
    """Sets the calling thread back to the normal policy, SCHED_OTHER.

    A request's thread needs this: after each commit it would have to wait for other
    busy processes of the same processor.
    """
    with contextlib.suppress(AttributeError, OSError):
        os.sched_setscheduler(0, os.SCHED_OTHER, os.sched_param(0))


def note_request(request: Any) -> None:
    """Stores gunicorn's request for `end_connection`, which runs in the same thread."""
    _THREAD.request = request


def end_connection() -> None:
    """Makes gunicorn send `Connection: close` with the response.

    Only the server may set this header, not a WSGI application (PEP 3333).
    """
    request = getattr(_THREAD, "request", None)
    if request:
        request.force_close()


def close_gracefully(sock: socket.socket) -> None:
    """Closes the connection for writing, then waits until the client closes it.

    If it were closed at once while the client still sends, the end of the response
    would be lost. This runs in the request's thread, since gunicorn's main loop must
    not wait. The wait ends after HANG_UP_S. It is skipped if too many threads wait
    already (HANG_UPS).
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
