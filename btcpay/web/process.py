"""Limits and tunes a worker process: its threads, connections and processor."""

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
RECEIVE_BYTES = 65_536
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
    """Returns how many connections this process may have at the same time.

    Each connection needs a file descriptor, and gunicorn's worker would crash if none
    were free. So the result follows from the process's limit on open files, which this
    function first raises as far as the system permits.
    """
    _, hard_limit = resource.getrlimit(resource.RLIMIT_NOFILE)
    # Some systems refuse even their own hard limit.
    with contextlib.suppress(ValueError, OSError):
        resource.setrlimit(resource.RLIMIT_NOFILE, (hard_limit, hard_limit))
    soft_limit, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    if soft_limit == resource.RLIM_INFINITY:
        return CONNECTIONS
    free_files = soft_limit - FILES_PER_THREAD * THREADS - OTHER_FILES
    return min(CONNECTIONS, max(THREADS, free_files))


def drop_dead_connections(listeners: Iterable[socket.socket]) -> None:
    """Sets socket options so that the kernel closes connections of vanished clients.

    Otherwise gunicorn's threads would wait for ever for the rest of a request, or for
    the client to read a response. Accepted connections inherit the options of the
    listening socket.
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

    Python's interpreter lock lets one thread run at a time, and to pass the lock to
    another processor takes longer than most requests need. The processor is chosen by
    the listening address `bind`, so that services on neighbouring ports use different
    processors. docs/developers/decisions/0008-one-processor.md has the measurements.
    """
    # Some systems lack these calls or forbid them.
    with contextlib.suppress(AttributeError, OSError):
        processors = sorted(os.sched_getaffinity(0))
        processor = processors[_number_of(bind) % len(processors)]
        os.sched_setaffinity(0, {processor})


def _number_of(bind: str) -> int:
    """Returns the port of a listening address, or a number made of a socket's path."""
    port = bind.rpartition(":")[2]
    if port.isdecimal():
        return int(port)
    return sum(bind.encode())


def let_others_run() -> None:
    """Sets the calling thread to the policy SCHED_BATCH, if the system permits it.

    A thread with this policy (see sched(7) of Linux) does not interrupt the running
    thread when it wakes. The main thread needs the policy: it wakes for each request.
    If it interrupted the thread that holds the interpreter lock, both threads would
    wait. Threads that the main thread starts inherit the policy.
    """
    with contextlib.suppress(AttributeError, OSError):
        os.sched_setscheduler(0, os.SCHED_BATCH, os.sched_param(0))


def run_at_once() -> None:
    """Sets the calling thread back to the normal scheduling policy, SCHED_OTHER.

    A thread that serves requests needs this. With SCHED_BATCH it would wait, after each
    commit to the database, for other busy processes on the same processor.
    """
    with contextlib.suppress(AttributeError, OSError):
        os.sched_setscheduler(0, os.SCHED_OTHER, os.sched_param(0))


def note_request(request: Any) -> None:
    """Remembers gunicorn's request, so that `end_connection` finds it in this thread."""
    _THREAD.request = request


def end_connection() -> None:
    """Makes gunicorn send `Connection: close` with the response of this thread's request.

    A WSGI application may not set this header itself (PEP 3333).
    """
    request = getattr(_THREAD, "request", None)
    if request:
        request.force_close()


def close_gracefully(sock: socket.socket) -> None:
    """Closes the connection for writing, then waits until the client closes it.

    If the server closed the connection completely while the client is still sending,
    the client would lose the end of the response. The wait ends after HANG_UP_S
    seconds. There is no wait if too many threads are already waiting (HANG_UPS). Call
    this function in the request's thread, since gunicorn's main loop must not wait.
    """
    with contextlib.suppress(OSError):  # the client has closed it already
        sock.shutdown(socket.SHUT_WR)
    if HANG_UPS.acquire(blocking=False):
        with contextlib.suppress(OSError):
            _wait_for_hang_up(sock)
        HANG_UPS.release()
    with contextlib.suppress(OSError):
        sock.shutdown(socket.SHUT_RD)


def _wait_for_hang_up(sock: socket.socket) -> None:
    """Waits until the client closes the connection, for HANG_UP_S seconds at most.

    Discards what the client still sends. Raises TimeoutError if it sends nothing.
    """
    end_s = time.monotonic() + HANG_UP_S
    left_s: float = HANG_UP_S
    while left_s > 0:
        sock.settimeout(left_s)
        data = sock.recv(RECEIVE_BYTES)
        if not data:  # the client has closed the connection
            return
        left_s = end_s - time.monotonic()
