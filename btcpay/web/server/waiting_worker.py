"""gunicorn's threads, which wait for no client: a loop beside them reads, sends and hangs up.

A thread gets a request that has arrived. What is quick the loop answers itself: handing a request
over and back costs as much. The loop sends what the kernel does not take at once of an answer; a
download, longer than any page, is sent by its thread while it is made.
Nothing waits for ever: a request may take WHOLE_S, an answer SEND_S, a client that hangs up
LINGER_S. A proxy whose visitor never reads (Caddy keeps no answers) holds no thread.
"""

import contextlib
import socket
import time
from collections import deque
from concurrent.futures import Future
from functools import partial
from selectors import EVENT_READ, EVENT_WRITE
from typing import Any

from gunicorn.http.errors import LimitRequestHeaders
from gunicorn.workers.gthread import TConn, ThreadWorker

from btcpay.web.server.client_connection import Answer, Arrived, Connection
from btcpay.web.server.request_framing import Arriving

WHOLE_S = 10  # for a whole request: an order is smaller than a kilobyte
SEND_S = 30  # for a whole answer: a page has 20 kB
LINGER_S = 2  # for a client to read the end of the last answer and hang up
AT_ONCE_BYTES = 65_536
CONTINUE = b"HTTP/1.1 100 Continue\r\n\r\n"


class WaitingWorker(ThreadWorker):
    """Reads requests in its loop, gives whole ones to its threads, and sends in its loop.

    With gunicorn's own TLS it behaves as gunicorn's worker: there a thread must read and decrypt.
    `most_body_bytes`: how much of a body the service reads. `quick`: how requests begin that wait
    for nobody.
    """

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.most_body_bytes = 0
        self.quick: tuple[bytes, ...] = ()
        self.sending: deque[Connection] = deque()
        self.leaving: deque[TConn] = deque()

    def accept(self, listener: socket.socket) -> None:
        """A new connection waits for its request in the loop."""
        if self.cfg.is_ssl:
            super().accept(listener)
            return
        try:
            sock, address = listener.accept()
        except (BlockingIOError, ConnectionAbortedError):
            return
        self.nr_conns += 1
        self._await(Connection(self.cfg, sock, address, listener.getsockname()))

    def on_client_socket_readable(self, conn: TConn, client: socket.socket) -> None:
        """The next request of a kept connection begins."""
        if not isinstance(conn, Connection):
            super().on_client_socket_readable(conn, client)
            return
        self.keepalived_conns.remove(conn)
        self.poller.modify(client, EVENT_READ, partial(self._read, conn))
        self._begin(conn)
        self._read(conn, client)  # else the loop would come round once more for the same bytes

    def _begin(self, conn: Connection) -> None:
        conn.arriving = Arriving(self.most_body_bytes)
        conn.timeout = time.monotonic() + WHOLE_S
        self.pending_conns.append(conn)

    def _await(self, conn: Connection, begun: bytes = b"") -> None:
        conn.sock.setblocking(False)
        self.poller.register(conn.sock, EVENT_READ, partial(self._read, conn))
        self._begin(conn)
        if begun and self._is_ready_with(conn, begun):
            self._hand_over(conn)  # answered here, a thousand requests at once would nest

    def _read(self, conn: Connection, sock: socket.socket) -> None:
        try:
            data = sock.recv(AT_ONCE_BYTES)
        except BlockingIOError:
            return
        except OSError:
            self._end(conn, self.pending_conns)
            return
        if data:
            if self._is_ready_with(conn, data):
                self._answer(conn)
        elif conn.arriving.data:
            self._hand_over(conn)  # the service says what is missing
        else:
            self._end(conn, self.pending_conns)

    def _is_ready_with(self, conn: Connection, data: bytes) -> bool:
        arriving = conn.arriving
        had_head = arriving.has_head
        arriving.take(data)
        if arriving.expects_continue and not had_head and not arriving.is_ready:
            with contextlib.suppress(OSError):
                conn.sock.send(CONTINUE)
        return arriving.is_ready

    def _answer(self, conn: Connection) -> None:
        """Answers what is quick, here and now; a thread does the rest."""
        if not (conn.arriving.is_whole and conn.arriving.data.startswith(self.quick)):
            self._hand_over(conn)
            return
        self._forget(conn)
        done: Future = Future()
        done.set_result(self.handle(conn))
        self.finish_request(conn, done)

    def _hand_over(self, conn: Connection) -> None:
        self._forget(conn)
        self.enqueue_req(conn)

    def handle(self, conn: TConn) -> Any:
        """Parses what has come, and answers; runs in a thread, or in the loop."""
        if not isinstance(conn, Connection):
            return super().handle(conn)
        if conn.arriving.is_ready and not conn.arriving.has_head:
            conn.sock.setblocking(True)
            self.handle_error(None, conn.sock, conn.client, LimitRequestHeaders("too long"))
            return False
        conn.parser.unreader = Arrived(bytes(conn.arriving.data))
        keeps = super().handle(conn)
        return conn.send() and keeps

    def handle_request(self, req: Any, conn: TConn) -> bool:
        """Answers, and tells the client when the connection ends with this answer."""
        if not isinstance(conn, Connection):
            return super().handle_request(req, conn)
        req._expected_100_continue = False  # the client was told already, or no more is wanted
        if not conn.arriving.is_whole:
            req.force_close()  # what follows would be read as the next request
        sock, answer = conn.sock, Answer(conn.sock)
        conn.sock = answer
        try:
            return super().handle_request(req, conn)
        finally:
            conn.sock, conn.unsent = sock, answer.data

    def _keepalive_after(self, conn: TConn, keepalive: bool) -> bool:
        """Skips what the service left unread; when that has not come yet, the connection ends."""
        if not isinstance(conn, Connection):
            return super()._keepalive_after(conn, keepalive)
        return keepalive and conn.parser.finish_body() and not conn.parser.unreader.ran_dry

    def finish_request(self, conn: TConn, done: Future) -> None:
        """Runs in the loop again: sends the rest of the answer first."""
        if isinstance(conn, Connection) and conn.unsent:
            conn.timeout = time.monotonic() + SEND_S
            self.sending.append(conn)
            self.poller.register(conn.sock, EVENT_WRITE, partial(self._send_on, conn, done))
        else:
            self._go_on(conn, done)

    def _send_on(self, conn: Connection, done: Future, sock: socket.socket) -> None:
        if not conn.send():
            self._end(conn, self.sending)
        elif not conn.unsent:
            self.sending.remove(conn)
            self.poller.unregister(sock)
            self._go_on(conn, done)

    def _go_on(self, conn: TConn, done: Future) -> None:
        """Goes on to the next request, or hangs up."""
        is_over = done.cancelled() or done.exception() or not done.result()
        if is_over:
            self._take_leave(conn)
        elif isinstance(conn, Connection) and (rest := conn.parser.unreader.take_buffered()):
            self._await(conn, rest)
        else:
            super().finish_request(conn, done)

    def _take_leave(self, conn: TConn) -> None:
        """Half closes, then waits for the client to hang up.

        A full close while bytes still come from the client would destroy the answer's end.
        """
        try:
            conn.sock.setblocking(False)
            conn.sock.shutdown(socket.SHUT_WR)
            self.poller.register(conn.sock, EVENT_READ, partial(self._pass_over, conn))
        except OSError:
            self._close(conn)
            return
        conn.timeout = time.monotonic() + LINGER_S
        self.leaving.append(conn)

    def _pass_over(self, conn: TConn, sock: socket.socket) -> None:
        try:
            if sock.recv(AT_ONCE_BYTES):
                return
        except BlockingIOError:
            return
        except OSError:
            pass
        self._end(conn, self.leaving)

    def murder_pending(self) -> None:
        """Ends what has waited too long."""
        now_s = time.monotonic()
        for waiting in (self.sending, self.leaving):
            while waiting and waiting[0].timeout <= now_s:
                self._end(waiting[0], waiting)
        while self.pending_conns and self.pending_conns[0].timeout <= now_s:
            conn = self.pending_conns[0]
            if isinstance(conn, Connection) and conn.arriving.data:
                self._hand_over(conn)
            else:
                self._end(conn, self.pending_conns)

    def _forget(self, conn: TConn) -> None:
        self.pending_conns.remove(conn)
        self.poller.unregister(conn.sock)

    def _end(self, conn: TConn, waiting: deque[Any]) -> None:
        waiting.remove(conn)
        self.poller.unregister(conn.sock)
        self._close(conn)

    def _close(self, conn: TConn) -> None:
        self.nr_conns -= 1
        conn.close()
